package replay

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// sent remembers what was computed for the last request: the next one's
// messages usually begin with the same ones. Within a generation of the history
// messages are only appended.
type sent struct {
	strict struct {
		dsh.RequestCheck
		n, generation int
	}
	chain struct {
		dsh.MessageChain
		generation int
	}
	header *dsh.Header
	digest dsh.RequestDigest
}

// check is [dsh.CheckRequest].
func (s *sent) check(m mark) error {
	c := &s.strict
	if c.generation != m.generation || c.n > len(m.messages) {
		c.RequestCheck, c.n, c.generation = dsh.RequestCheck{}, 0, m.generation
	}
	for ; c.n < len(m.messages); c.n++ {
		c.Add(m.messages[c.n])
	}
	return c.Err()
}

// compare says how the request that was sent differs from the derived one.
func (s *sent) compare(d dsh.RequestSent, header *dsh.Header, m mark) []string {
	var found []string
	if header != nil {
		if s.header != header {
			s.header, s.digest = header, header.Digest()
		}
		for _, part := range []struct {
			name         string
			sent, yields dsh.Digest
		}{
			{"configuration", d.Digest.Config, s.digest.Config},
			{"system prompt", d.Digest.System, s.digest.System},
			{"list of tools", d.Digest.Tools, s.digest.Tools},
		} {
			if part.sent != part.yields {
				found = append(found, fmt.Sprintf("the %s that was sent is not the one that the log yields", part.name))
			}
		}
	}
	if text := s.compareMessages(d, m); text != "" {
		found = append(found, text)
	}
	return found
}

// compareMessages says which messages differ, as far as digests can tell.
func (s *sent) compareMessages(d dsh.RequestSent, m mark) string {
	c := &s.chain
	if c.generation != m.generation {
		c.MessageChain, c.generation = dsh.MessageChain{}, m.generation
	}
	for i := c.Len(); i < len(m.messages); i++ {
		c.Add(m.messages[i])
	}
	n := len(m.messages)
	switch {
	case d.Messages == n && d.Digest.Messages == c.Digest(n):
		return ""
	case 0 <= d.Messages && d.Messages < n && d.Digest.Messages == c.Digest(d.Messages):
		return fmt.Sprintf("only the first %d of the %d messages that the log yields were sent", d.Messages, n)
	case d.Messages != n:
		return fmt.Sprintf("%d messages were sent, and the log yields %d others", d.Messages, n)
	}
	return fmt.Sprintf("the %d messages that were sent are not all those that the log yields", n)
}
