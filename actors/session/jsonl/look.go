package jsonl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Look is what one look at a log found.
type Look struct {
	Header dsh.SessionHeader
	Path   string
	// Events is what can be read of the log, packed: all of it or, if there is
	// damage, what comes before.
	Events []dsh.Event
	// Tail is what lies behind the last whole write.
	Tail Tail
	// Err is why Open and OpenReader refuse the log, or nil.
	Err error
}

// Look reads what can be read of a log, whoever owns it and whatever is wrong
// with it. It reads the file once and changes nothing. A header as List yields
// it says where the log is; one with nothing but an ID will do.
func (s *Store) Look(h dsh.SessionHeader) Look {
	look := Look{Header: h}
	if look.Err = s.look(&look); look.Err != nil {
		look.Err = fmt.Errorf("jsonl: look at %s: %w", h.ID, look.Err)
	}
	return look
}

func (s *Store) look(l *Look) (err error) {
	if l.Path, err = s.locate(&l.Header); err != nil {
		return err
	}
	data, err := os.ReadFile(l.Path)
	if err != nil {
		return err
	}
	h, scan, err := load(l.Path, s.box, data)
	if scan == nil {
		return err
	}
	if err == nil {
		err = s.checkPlace(l.Path, &h)
	}
	l.Header, l.Events = h, scan.out.all()
	if size := int64(len(data)); err == nil && size > scan.end {
		l.Events = before(l.Events, scan.endNext)
		l.Tail = scan.tail(size)
	}
	return err
}

// before returns the events before seq; a run that goes on behind it is cut.
func before(events []dsh.Event, seq dsh.Seq) []dsh.Event {
	for n := len(events); n > 0; n-- {
		switch last := &events[n-1]; {
		case last.Last() < seq:
			return events[:n]
		case last.Seq < seq:
			run := last.Data.(dsh.ChunkRun) // nothing else spans more than one
			run.Chunks = run.Chunks[:seq-last.Seq]
			last.Data = run
			return events[:n]
		}
	}
	return nil
}

// locate returns where a log is, by its header if that tells.
func (s *Store) locate(h *dsh.SessionHeader) (string, error) {
	if dir, err := s.dirOf(h); err == nil {
		path := filepath.Join(dir, s.box.name())
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return s.pathOf(h.ID)
}

// Owner returns the process that owns the log with header h, which tells where
// the log is as it does for Look; ok is false if nobody does. Who asks is not
// taken for an owner, but for an instant if one has crashed.
func (s *Store) Owner(h dsh.SessionHeader) (holder Holder, ok bool, err error) {
	path, err := s.locate(&h)
	var mine *InUseError
	if errors.As(err, &mine) {
		return mine.Holder, true, nil
	}
	var by *Holder
	if err == nil {
		by, err = owner(filepath.Dir(path))
	}
	switch {
	case err != nil:
		return Holder{}, false, fmt.Errorf("jsonl: owner of %s: %w", h.ID, err)
	case by == nil:
		return Holder{}, false, nil
	}
	return *by, true, nil
}
