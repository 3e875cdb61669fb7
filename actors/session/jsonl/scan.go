package jsonl

import (
	"errors"
	"fmt"
	"io"

	"github.com/dsh-actor/dsh-actor/actors/session/verify"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// scanner reads a log from its first byte and judges damage. Lines are taken
// as long as they are right and numbered on. The first that is not may be what
// a crash left, and then nothing behind it was ever promised to anybody; but
// the end of a turn behind it shows that there was more, and the log is
// corrupt.
type scanner struct {
	path    string
	box     box
	decoder *decoder
	// checked is the surface of what was taken; nil leaves it unchecked.
	checked *dsh.History
	out     gatherer
	// blind leaves what is taken out of out.
	blind bool
	// verify, if there is one, folds what is taken instead of checked and out.
	verify *verify.Fold
	// taken is behind the last line that was taken, closed behind the last
	// where it has no turn open.
	taken, closed spot

	line int     // lines seen
	next dsh.Seq // of the next event
	// problem is what is wrong with the first line that was not taken.
	problem     error
	problemLine int

	// end is the end of the last unit that was taken as a whole, endNext the
	// number of the event behind it. Events beyond were recovered.
	end     int64
	endNext dsh.Seq
	index   index
}

// spot is a place between two lines: so many bytes of lines into the unit that
// begins at offset unit of the file.
type spot struct {
	unit  int64
	bytes int
	next  dsh.Seq
	line  int
}

// units reads the units of data, which begin at offset s.end of the file.
func (s *scanner) units(data []byte) error {
	for len(data) > 0 {
		lines, n, err := s.box.unwrap(data)
		torn := errors.Is(err, errTorn)
		if err != nil && !torn {
			return damage(s.path, 0, fmt.Errorf("behind line %d, at byte %d: %w", s.line, s.end, err))
		}
		first := s.next
		for rest := lines; len(rest) > 0; {
			var line []byte
			line, rest = cutLine(rest)
			if err := s.take(line); err != nil {
				return err
			}
			s.note(len(lines) - len(rest))
		}
		if torn {
			if s.problem == nil {
				s.problem, s.problemLine = errTorn, s.line+1
			}
			return nil
		}
		data = data[n:]
		if s.problem == nil {
			s.index.add(first, s.end)
			s.end += int64(n)
			s.endNext = s.next
		}
	}
	return nil
}

// window is how much of a file is read at once, unless a unit is larger.
const window = 1 << 20

// file reads the units of a file of this size from offset at on, as units does,
// and holds no more of it than it must. One that is cut meanwhile is io.EOF.
func (s *scanner) file(f io.ReaderAt, at, size int64) error {
	var part []byte // of the file, from at on
	for at < size {
		have := int64(len(part))
		more := make([]byte, min(size-at, max(window, 2*have)))
		copy(more, part)
		if _, err := f.ReadAt(more[have:], at+have); err != nil {
			return err
		}
		if part = more; at+int64(len(part)) == size {
			return s.units(part)
		}
		n := s.box.complete(part)
		if err := s.units(part[:n]); err != nil {
			return err
		}
		part, at = part[n:], at+int64(n)
	}
	return nil
}

// note remembers where lines were taken, up to so many bytes into the unit.
func (s *scanner) note(bytes int) {
	if s.verify == nil || s.problem != nil {
		return
	}
	s.taken = spot{unit: s.end, bytes: bytes, next: s.next, line: s.line}
	if s.verify.Turn() == 0 {
		s.closed = s.taken
	}
}

// take takes one line. An error refuses the log.
func (s *scanner) take(line []byte) error {
	s.line++
	if s.problem == nil {
		refused, err := s.try(line)
		if refused != nil {
			return &LogError{Path: s.path, Line: s.line, Err: refused}
		}
		if err == nil {
			return nil
		}
		s.problem, s.problemLine = err, s.line
	}
	if endsTurn(line) {
		return damage(s.path, s.problemLine, fmt.Errorf("%w; line %d ends a turn, so this is not the end of the log",
			s.problem, s.line))
	}
	return nil
}

// try adds the events of a line, all or none. An event that is sound but must
// not be in a log refuses it.
func (s *scanner) try(line []byte) (refused, err error) {
	var gap error
	begins := true
	err = s.decoder.line(line, func(ev dsh.Event) {
		if begins && ev.Seq != s.next {
			gap = fmt.Errorf("event %d where %d is due", ev.Seq, s.next)
		}
		if begins = false; gap != nil || refused != nil {
			return
		}
		if refused = s.check(&ev); refused == nil {
			if s.verify == nil && !s.blind {
				s.out.add(ev)
			}
			s.next++
		}
	})
	if err == nil {
		err = gap
	}
	return refused, err
}

func (s *scanner) check(ev *dsh.Event) error {
	if s.verify != nil {
		return s.verify.Apply(ev)
	}
	if err := dsh.CheckKnown(ev); err != nil || s.checked == nil {
		return err
	}
	return s.checked.Apply(ev)
}

// readHeader reads the header that data begins with. It is n bytes long.
func readHeader(path string, b box, data []byte) (h dsh.SessionHeader, n int, err error) {
	lines, n, err := b.unwrap(data)
	if err != nil {
		return h, 0, damage(path, 1, fmt.Errorf("%w: %w", errNoHeader, err))
	}
	line, rest := cutLine(lines)
	err = h.UnmarshalJSON(line)
	switch {
	case errors.Is(err, dsh.ErrVersion):
		return h, 0, &LogError{Path: path, Line: 1, Err: err}
	case err != nil:
		return h, 0, damage(path, 1, fmt.Errorf("%w: %w", errNoHeader, err))
	case len(rest) > 0:
		return h, 0, damage(path, 1, fmt.Errorf("%w: its frame holds more", errNoHeader))
	}
	return h, n, nil
}

// errNoHeader says that a file does not begin like a log.
var errNoHeader = errors.New("no session header")

// load reads a whole log.
func load(path string, b box, data []byte) (dsh.SessionHeader, *scanner, error) {
	h, n, err := readHeader(path, b, data)
	if err != nil {
		return h, nil, err
	}
	s := newScanner(path, b, &h, n)
	return h, s, s.units(data[n:])
}

// scanFile is load for a file of this size, and keeps none of the events.
func scanFile(path string, b box, f io.ReaderAt, size int64) (dsh.SessionHeader, *scanner, error) {
	h, n, err := readFirst(path, b, f, size)
	if err != nil {
		return h, nil, err
	}
	s := newScanner(path, b, &h, n)
	s.blind = true
	return h, s, s.file(f, int64(n), size)
}

// readFirst is readHeader for a file of this size.
func readFirst(path string, b box, f io.ReaderAt, size int64) (h dsh.SessionHeader, n int, err error) {
	first := make([]byte, min(size, headerSize))
	if _, err := f.ReadAt(first, 0); err != nil && !errors.Is(err, io.EOF) {
		return h, 0, err
	}
	h, n, err = readHeader(path, b, first)
	if !errors.Is(err, errTorn) || int64(len(first)) == size {
		return h, n, err
	}
	if first, err = io.ReadAll(io.NewSectionReader(f, 0, size)); err != nil {
		return h, 0, err
	}
	return readHeader(path, b, first)
}

// newScanner returns the scanner of a log whose header is n bytes long.
func newScanner(path string, b box, h *dsh.SessionHeader, n int) *scanner {
	return &scanner{
		path: path, box: b, decoder: &decoder{id: h.ID}, checked: &dsh.History{}, line: 1, end: int64(n),
	}
}
