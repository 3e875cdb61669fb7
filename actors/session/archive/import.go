package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// batchEvents and batchBytes bound what is written to a store at once; the size of
// an event is what it takes in the document. One event may be larger.
const (
	batchEvents = 4096
	batchBytes  = 1 << 20
)

// Options of an import. The zero value keeps everything as it was.
type Options struct {
	// As is another ID for the session; only a document of one session can get
	// one.
	As dsh.SessionID
}

// Imported is a session that was imported.
type Imported struct {
	Header dsh.SessionHeader
	Events dsh.Seq
}

// ErrSeveral refuses another ID for a document of several sessions.
var ErrSeveral = errors.New("a document of several sessions cannot be imported under another ID")

// Import puts the sessions of a document into a store, durably. IDs and links to
// parents stay as they are; an ID that the store has already refuses the document
// ([session.ErrExists]).
//
// The document is read twice, first to see that it is right. What cannot be read
// again from where it is, such as a pipe, is kept in a temporary file meanwhile.
func Import(ctx context.Context, store session.Store, r io.Reader, opts Options) ([]Imported, error) {
	src, release, err := again(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("archive: import: %w", err)
	}
	defer release()
	start, err := src.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, fmt.Errorf("archive: import: %w", err)
	}
	check := &checker{ids: map[dsh.SessionID]bool{}}
	several, err := decode(readingOf(ctx, src), check)
	switch {
	case err != nil:
		return nil, err
	case len(check.found) == 0:
		return nil, fmt.Errorf("archive: import: %w: it holds no session", ErrFormat)
	case several && opts.As != "":
		return nil, fmt.Errorf("archive: import: %w", ErrSeveral)
	case opts.As != "":
		check.found[0].Header.ID = opts.As
	}
	if err := free(ctx, store, check.found); err != nil {
		return nil, fmt.Errorf("archive: import: %w", err)
	}
	if _, err := src.Seek(start, io.SeekStart); err != nil {
		return nil, fmt.Errorf("archive: import: %w", err)
	}
	if err := put(ctx, store, readingOf(ctx, src), check.found); err != nil {
		return nil, fmt.Errorf("archive: import: %w", err)
	}
	return check.found, nil
}

// free returns an error if the store has one of the sessions.
func free(ctx context.Context, store session.Store, found []Imported) error {
	taken := map[dsh.SessionID]bool{}
	for h, err := range store.List(ctx) {
		if err == nil || h.ID != "" { // what cannot be read has its ID, too
			taken[h.ID] = true
		}
	}
	for _, s := range found {
		if taken[s.Header.ID] {
			return fmt.Errorf("%w: %s", session.ErrExists, s.Header.ID)
		}
	}
	return ctx.Err()
}

// put stages all sessions of a document and then commits them.
func put(ctx context.Context, store session.Store, r io.Reader, want []Imported) (err error) {
	var all []session.Staged
	defer func() {
		for _, s := range all {
			err = errors.Join(err, s.Discard())
		}
	}()
	next, stop := iter.Pull2(parts(r))
	defer stop()
	for _, w := range want {
		if p, err, _ := next(); err != nil {
			return err
		} else if p.kind != beginning {
			return errChanged
		}
		var n dsh.Seq
		staged, err := session.Stage(ctx, store, w.Header, batches(next, &n))
		if err != nil {
			return err
		}
		all = append(all, staged)
		if n != w.Events {
			return errChanged
		}
	}
	for i, s := range all {
		if err := s.Commit(); err != nil {
			all = all[i+1:]
			return fmt.Errorf("%d of %d sessions were imported: %w", i, len(want), err)
		}
	}
	all = nil
	return nil
}

// errChanged says that the second reading was not like the first.
var errChanged = errors.New("the document was changed while it was read")

// batches yields the events of the session that begins, and counts them.
func batches(next func() (part, error, bool), n *dsh.Seq) iter.Seq2[[]dsh.Event, error] {
	return func(yield func([]dsh.Event, error) bool) {
		for {
			p, err, ok := next()
			switch {
			case err == nil && !ok:
				err = errChanged
			case err == nil && p.kind == ending:
				return
			}
			*n += dsh.Seq(len(p.events))
			if !yield(p.events, err) || err != nil {
				return
			}
		}
	}
}

// A part is what a document is read in: the beginning of a session, events of it,
// and its end.
type part struct {
	kind   partKind
	events []dsh.Event
}

type partKind int

const (
	some partKind = iota
	beginning
	ending
)

// parts yields a document. An error ends it.
func parts(r io.Reader) iter.Seq2[part, error] {
	return func(yield func(part, error) bool) {
		b := &batcher{yield: yield}
		if _, err := decode(r, b); err != nil && !b.stopped {
			yield(part{}, err)
		}
	}
}

// batcher is a reader that hands events on in batches.
type batcher struct {
	yield   func(part, error) bool
	stopped bool
	events  []dsh.Event
	size    int
}

var errStopped = errors.New("nobody reads on")

func (b *batcher) hand(p part) error {
	if b.stopped = !b.yield(p, nil); b.stopped {
		return errStopped
	}
	return nil
}

func (b *batcher) header(dsh.SessionHeader) error { return b.hand(part{kind: beginning}) }

func (b *batcher) event(ev dsh.Event, size int) error {
	b.events = append(b.events, ev)
	b.size += size
	if len(b.events) < batchEvents && b.size < batchBytes {
		return nil
	}
	return b.flush()
}

func (b *batcher) flush() error {
	events := b.events
	b.events, b.size = nil, 0
	if len(events) == 0 {
		return nil
	}
	return b.hand(part{kind: some, events: events})
}

func (b *batcher) end() error {
	if err := b.flush(); err != nil {
		return err
	}
	return b.hand(part{kind: ending})
}

// reading is a reader that ends with its context.
type reading struct {
	done <-chan struct{}
	err  func() error
	r    io.Reader
}

func readingOf(ctx context.Context, r io.Reader) io.Reader { return reading{ctx.Done(), ctx.Err, r} }

func (r reading) Read(p []byte) (int, error) {
	select {
	case <-r.done:
		return 0, r.err()
	default:
		return r.r.Read(p)
	}
}

// again returns r as something that can be read twice, and what to do when it was.
func again(ctx context.Context, r io.Reader) (io.ReadSeeker, func(), error) {
	if s, ok := r.(io.ReadSeeker); ok && seekable(s) {
		return s, func() {}, nil
	}
	f, err := os.CreateTemp("", "dsh-actor-import-*.json")
	if err != nil {
		return nil, nil, err
	}
	release := func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	if _, err = io.Copy(f, readingOf(ctx, r)); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return f, release, nil
}

// seekable reports whether s can be read from where it is once more.
func seekable(s io.ReadSeeker) bool {
	if f, ok := s.(*os.File); ok {
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	_, err := s.Seek(0, io.SeekCurrent)
	return err == nil
}
