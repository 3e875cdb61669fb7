package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Reader reads a log that somebody else may own and go on writing. It changes
// nothing, not even what a crash left, and needs no permission to write.
type Reader struct {
	view
	store *Store

	fresh sync.Mutex // guards the rest
	size  int64      // of the file when it was last looked at
	tail  Tail
}

var (
	_ session.Log    = (*Reader)(nil)
	_ session.Viewer = (*Store)(nil)
)

// Tail is what lies behind the last whole write of a log: one that is under
// way, or what a crash left. The zero Tail is none.
type Tail struct {
	// Bytes is how long it is; Recoverable how many events can be read of it.
	Bytes       int64
	Recoverable int
	Line        int
	Reason      error
}

// OpenReader opens a log for reading, whoever owns it. A log that Open would
// refuse as corrupt, foreign or newer is refused here, too.
func (s *Store) OpenReader(_ context.Context, id dsh.SessionID) (*Reader, error) {
	r, err := s.openReader(id)
	if err != nil {
		return nil, fmt.Errorf("jsonl: read %s: %w", id, err)
	}
	return r, nil
}

// View is OpenReader for whoever knows stores only.
func (s *Store) View(ctx context.Context, id dsh.SessionID) (session.Log, error) {
	r, err := s.OpenReader(ctx, id)
	if err != nil {
		return nil, err // and no log that is not nil
	}
	return r, nil
}

func (s *Store) openReader(id dsh.SessionID) (*Reader, error) {
	path, err := s.pathOf(id)
	if err != nil {
		return nil, err
	}
	r := &Reader{store: s}
	r.path, r.box = path, s.box
	r.open = func() (readFile, error) { return os.Open(path) }
	if err := r.reload(); err != nil {
		return nil, err
	}
	return r, s.checkPlace(path, &r.header)
}

// Epoch returns 0: a reader owns nothing.
func (r *Reader) Epoch() session.Epoch { return 0 }

// Append refuses.
func (r *Reader) Append(context.Context, session.Fence, []dsh.Event) error {
	return fmt.Errorf("jsonl: append to %s: %w", r.header.ID, ErrReadOnly)
}

// Sync does nothing: there is nothing to make durable.
func (r *Reader) Sync(context.Context) error { return nil }

// Close does nothing: a reader holds nothing.
func (r *Reader) Close() error { return nil }

// Read returns packed events, also those that were appended since the reader
// was opened.
func (r *Reader) Read(_ context.Context, from dsh.Seq, limit int) ([]dsh.Event, error) {
	err := r.refresh()
	if err == nil {
		var events []dsh.Event
		if events, err = r.read(from, limit); err == nil {
			return events, nil
		}
	}
	return nil, fmt.Errorf("jsonl: read %s: %w", r.header.ID, err)
}

// Tail returns what the last look at the file found behind its last whole
// write.
func (r *Reader) Tail() Tail {
	r.fresh.Lock()
	defer r.fresh.Unlock()
	return r.tail
}

// Next returns the number of the event behind the last whole write, as of the last
// look at the file.
func (r *Reader) Next() dsh.Seq {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.next
}

// Path returns where the log is.
func (r *Reader) Path() string { return r.path }

// reload reads the log from its beginning. If its owner cuts it meanwhile, it tries
// again, a few times.
func (r *Reader) reload() (err error) {
	for range 5 {
		if err = r.scan(); !errors.Is(err, io.EOF) {
			return err
		}
	}
	return err
}

func (r *Reader) scan() error {
	f, err := os.Open(r.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h, scan, err := scanFile(r.path, r.box, f, info.Size())
	if err != nil {
		return err
	}
	if r.decoder == nil {
		r.header, r.decoder = h, scan.decoder
	}
	r.see(scan, info.Size())
	return nil
}

// see takes over what a scan found.
func (r *Reader) see(scan *scanner, size int64) {
	r.mu.Lock()
	r.index, r.end, r.next = scan.index, scan.end, scan.endNext
	r.mu.Unlock()
	r.size, r.tail = size, scan.tail(size)
}

// tail returns what lies behind the last whole unit of a file of this size.
func (s *scanner) tail(size int64) Tail {
	if size <= s.end {
		return Tail{}
	}
	return Tail{Bytes: size - s.end, Recoverable: int(s.next - s.endNext), Line: s.problemLine, Reason: s.problem}
}

// refresh takes note of what was written since. A file that became shorter was
// repaired and is read anew.
func (r *Reader) refresh() error {
	r.fresh.Lock()
	defer r.fresh.Unlock()
	f, err := os.Open(r.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.Size() == r.size:
		return nil
	case info.Size() < r.size:
		return r.reload()
	}
	data := make([]byte, info.Size()-r.end)
	if n, err := f.ReadAt(data, r.end); err != nil && !errors.Is(err, io.EOF) {
		return err
	} else if n < len(data) {
		return r.reload()
	}
	scan := &scanner{
		path: r.path, box: r.box, decoder: r.decoder, blind: true, next: r.next,
		end: r.end, endNext: r.next, index: r.index[:len(r.index):len(r.index)],
	}
	if err := scan.units(data); err != nil {
		return err
	}
	r.see(scan, info.Size())
	return nil
}
