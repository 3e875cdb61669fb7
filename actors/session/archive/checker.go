package archive

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/actors/session/verify"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// checker is a reader that verifies sessions and counts their events.
type checker struct {
	found  []Imported
	ids    map[dsh.SessionID]bool
	verify verify.Fold
}

func (c *checker) header(h dsh.SessionHeader) error {
	if c.ids[h.ID] {
		return fmt.Errorf("%w: there are two sessions with this ID", ErrFormat)
	}
	c.ids[h.ID] = true
	c.verify = verify.Fold{Inherited: h.SeedLength}
	c.found = append(c.found, Imported{Header: h})
	return nil
}

func (c *checker) event(ev dsh.Event, _ int) error {
	if err := c.verify.Apply(&ev); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return nil
}

func (c *checker) end() error {
	last := &c.found[len(c.found)-1]
	last.Events = c.verify.Next()
	if last.Header.SeedLength > last.Events {
		return fmt.Errorf("%w: the seed has %d events, the session only %d", ErrFormat, last.Header.SeedLength, last.Events)
	}
	return nil
}
