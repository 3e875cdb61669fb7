package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/dsh-actor/dsh-actor/actors/session/verify"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Check looks at a session's log, wherever in the root it lies, and says what is
// the matter with it. It reads all of it and changes nothing; of a log that is
// written meanwhile it tells how it was. An error means that there is
// nothing to look at (session.ErrNotFound), or that the root cannot be read.
func (s *Store) Check(ctx context.Context, id dsh.SessionID) (Report, error) {
	claims, err := s.claims(ctx, id)
	if err != nil {
		return Report{}, fmt.Errorf("jsonl: check %s: %w", id, err)
	}
	r := s.inspect(&claims[0]).Report
	if len(claims) > 1 {
		r.duplicate(claims[1].Path)
	}
	return r, nil
}

// CheckAll checks everything that [Store.Survey] returns, in the order of the
// paths. An error means that the root cannot be read and ends the list.
func (s *Store) CheckAll(ctx context.Context) iter.Seq2[Report, error] {
	return func(yield func(Report, error) bool) {
		finds, err := s.survey(ctx)
		if err != nil {
			yield(Report{}, fmt.Errorf("jsonl: check: %w", err))
			return
		}
		claims := map[dsh.SessionID][]string{}
		for i := range finds {
			if f := &finds[i]; !f.leftover() {
				claims[f.ID] = append(claims[f.ID], f.Path)
			}
		}
		for i := range finds {
			if err := ctx.Err(); err != nil {
				yield(Report{}, fmt.Errorf("jsonl: check: %w", err))
				return
			}
			r := s.inspect(&finds[i]).Report
			for _, other := range claims[r.ID] {
				if other != r.Path {
					r.duplicate(other)
					break
				}
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// duplicate notes that another log has the same ID, if this one is not in its place:
// there it is that which counts, unless the store finds the other one as well.
func (r *Report) duplicate(other string) {
	if r.Verdict == Misplaced {
		r.Verdict = Duplicate
		r.Err = fmt.Errorf("%w: %s and %s are the same session", ErrCorrupt, r.Path, other)
	}
}

// inspection is a report and what it rests on.
type inspection struct {
	Report
	find *find
	scan *scanner // nil if there is no header
	data []byte   // of the file, once it is loaded
}

// inspect looks at what was found.
func (s *Store) inspect(f *find) *inspection {
	in := &inspection{Report: Report{Path: f.Path, ID: f.ID, Stray: f.stray}, find: f}
	switch {
	case f.err != nil:
		return in.is(Unreadable, f.err)
	case f.later != "":
		return in.is(Newer, laterError(f.Path, f.later))
	}
	in.Holder, _ = owner(f.dir()) // who may not ask is told of nobody
	if f.box == nil {
		return in.is(Leftover, nil)
	}
	for range 5 { // its owner may cut it meanwhile
		var lost, err error
		if err, lost = in.read(); errors.Is(lost, io.EOF) {
			continue
		} else if lost != nil {
			return in.is(Unreadable, lost)
		}
		return in.judge(s, err)
	}
	return in.is(Unreadable, io.ErrUnexpectedEOF)
}

// laterError says that the log at path has a later version.
func laterError(path, version string) error {
	return fmt.Errorf("%s: %w: version %s is newer than %d, the one this build reads",
		path, dsh.ErrVersion, version, dsh.FormatVersion)
}

func (in *inspection) is(v Verdict, err error) *inspection {
	in.Verdict, in.Err = v, err
	return in
}

// read scans the file. It returns what is wrong with the log, or why the file
// cannot be read.
func (in *inspection) read() (wrong, lost error) {
	f, err := os.Open(in.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	in.Size, in.data, in.scan, in.Damage = info.Size(), nil, nil, nil
	h, n, err := readFirst(in.Path, in.find.box, f, in.Size)
	var at *LogError
	if err != nil && !errors.As(err, &at) {
		return nil, err
	} else if err != nil {
		if !errors.Is(err, dsh.ErrVersion) {
			in.Damage = &Damage{Line: 1, Reason: at.Err, Closed: -1}
		}
		return err, nil
	}
	in.Header, in.ID = &h, h.ID
	in.scan = newScanner(in.Path, in.find.box, &h, n)
	in.scan.verify = &verify.Fold{Inherited: h.SeedLength}
	in.scan.taken = spot{unit: in.scan.end, line: 1}
	in.scan.closed = in.scan.taken
	err = in.scan.file(f, in.scan.end, in.Size)
	if err != nil && !errors.As(err, &at) {
		return nil, err
	}
	in.Events, in.Whole = in.scan.next, in.scan.end
	if err != nil {
		in.Damage, lost = in.damage(at)
		return err, lost
	}
	in.Turn, in.Closers = in.scan.verify.Turn(), in.scan.verify.Closers()
	in.Findings = in.scan.verify.Findings()
	in.Tail = in.scan.tail(in.Size)
	return nil, nil
}

// load reads the file as a whole.
func (in *inspection) load() error {
	if in.data != nil {
		return nil
	}
	f, err := os.Open(in.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	in.data = make([]byte, in.Size)
	_, err = f.ReadAt(in.data, 0)
	return err
}

// damage tells of the error that ended the scan.
func (in *inspection) damage(at *LogError) (*Damage, error) {
	if err := in.load(); err != nil {
		return nil, err
	}
	kept := in.kept(in.scan.closed)
	return &Damage{
		Line: at.Line, Reason: at.Err, Events: in.scan.next, Closed: in.scan.closed.next,
		LostBytes: in.Size - int64(len(kept)), Lost: in.lines() - in.scan.closed.line,
	}, nil
}

// kept returns what the file would be if it ended at a spot. It is loaded.
func (in *inspection) kept(at spot) []byte {
	file := in.data[:at.unit:at.unit]
	if at.bytes == 0 {
		return file
	}
	lines, n, err := in.find.box.unwrap(in.data[at.unit:])
	if err == nil && len(lines) == at.bytes {
		end := at.unit + int64(n)
		return in.data[:end:end]
	}
	return in.find.box.wrap(file, lines[:at.bytes])
}

// lines returns how many lines there are, as far as they can be counted.
func (in *inspection) lines() int {
	n := 0
	for rest := in.data; len(rest) > 0; {
		lines, size, err := in.find.box.unwrap(rest)
		n += bytes.Count(lines, []byte{'\n'})
		if err != nil {
			return n
		}
		rest = rest[size:]
	}
	return n
}

// judge finds the verdict; err is what reading the log met.
func (in *inspection) judge(s *Store, err error) *inspection {
	switch {
	case errors.Is(err, dsh.ErrVersion):
		return in.is(Newer, err)
	case in.find.box != s.box:
		return in.is(Foreign, fmt.Errorf("%s: %w: the store keeps %s", in.Path, ErrEncoding, s.box.name()))
	case errors.Is(err, errNoHeader) && stillborn(in.Path, s.box):
		return in.is(Empty, err)
	case errors.Is(err, ErrCorrupt):
		return in.is(Corrupt, err)
	case errors.Is(err, dsh.ErrUnknownEvent):
		return in.is(Unknown, err)
	case err != nil:
		return in.is(Invalid, err)
	}
	if err := s.checkPlace(in.Path, in.Header); err != nil {
		in.Place, _ = s.dirOf(in.Header)
		return in.is(Misplaced, err)
	}
	if _, err := s.find(in.ID); errors.Is(err, dsh.ErrVersion) {
		return in.is(Newer, err)
	} else if err != nil { // it finds several, or cannot see whether there are
		return in.is(Duplicate, err)
	}
	switch {
	case in.Holder != nil:
		return in.is(InUse, nil)
	case in.Tail.Bytes > 0:
		return in.is(Torn, nil)
	case in.Turn != 0:
		return in.is(OpenTurn, nil)
	}
	return in.is(Sound, nil)
}
