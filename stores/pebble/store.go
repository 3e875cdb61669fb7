package pebble

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	kv "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Store is a [session.Store] in a directory. It is safe for concurrent use.
// Several stores of one process in one directory share it; another process is
// refused with [session.ErrInUse]. Close it when its logs are closed.
type Store struct {
	db     *database
	closed atomic.Bool
}

var _ session.Store = (*Store)(nil)

// Open returns the store in dir, which is made if it is not there.
func Open(dir string) (*Store, error) { return open(dir, vfs.Default) }

func open(dir string, disk vfs.FS) (*Store, error) {
	dir, err := filepath.Abs(dir)
	var db *database
	if err == nil {
		db, err = share(dir, disk)
	}
	if err != nil {
		return nil, fmt.Errorf("pebble: open %s: %w", dir, err)
	}
	return &Store{db: db}, nil
}

// Close closes the store. Logs of it that are open can neither be written nor
// read any more.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if err := s.db.release(); err != nil {
		return fmt.Errorf("pebble: close: %w", err)
	}
	return nil
}

// Volatile returns false.
func (*Store) Volatile() bool { return false }

// Create makes a log without events. It is in the database from the first
// append on; one that is closed before leaves no trace.
func (s *Store) Create(_ context.Context, h dsh.SessionHeader) (session.Log, error) {
	l, err := s.create(h)
	if err != nil {
		return nil, fmt.Errorf("pebble: create %s: %w", h.ID, err)
	}
	return l, nil
}

func (s *Store) create(h dsh.SessionHeader) (*log, error) {
	if h.Version != dsh.FormatVersion {
		return nil, fmt.Errorf("%w: version %d", dsh.ErrVersion, h.Version)
	}
	if err := checkID(h.ID); err != nil {
		return nil, err
	}
	l, err := s.own(h.ID)
	if errors.Is(err, session.ErrInUse) {
		err = session.ErrExists
	}
	if err != nil {
		return nil, err
	}
	l.header, l.epoch = h, nextEpoch(0)
	switch _, err := s.db.get(headerKey(h.ID)); {
	case errors.Is(err, kv.ErrNotFound):
		return l, nil
	case err == nil:
		err = session.ErrExists
		fallthrough
	default:
		s.db.disown(l)
		return nil, err
	}
}

// own makes a log that nobody else has, or returns [session.ErrInUse].
func (s *Store) own(id dsh.SessionID) (*log, error) {
	if s.closed.Load() {
		return nil, errStoreClosed
	}
	s.db.owners.Lock()
	defer s.db.owners.Unlock()
	if _, ok := s.db.owned[id]; ok {
		return nil, session.ErrInUse
	}
	l := &log{db: s.db}
	s.db.owned[id] = l
	l.header.ID = id
	return l, nil
}

// disown gives a log up.
func (d *database) disown(l *log) {
	d.owners.Lock()
	defer d.owners.Unlock()
	if d.owned[l.header.ID] == l {
		delete(d.owned, l.header.ID)
	}
}

// nextEpoch returns one that is larger than last, also if that was lost because
// it was never synced: it is a time in milliseconds.
func nextEpoch(last session.Epoch) session.Epoch {
	return max(last+1, session.Epoch(time.Now().UnixMilli()))
}

// Open opens a log to be continued.
func (s *Store) Open(_ context.Context, id dsh.SessionID) (session.Log, error) {
	l, err := s.own(id)
	if err == nil {
		if err = l.load(); err != nil {
			s.db.disown(l)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("pebble: open %s: %w", id, err)
	}
	return l, nil
}

// get returns a copy of the value at key.
func (d *database) get(key []byte) (value []byte, err error) {
	err = d.look(func(engine *kv.DB) error {
		v, closer, err := engine.Get(key)
		if err != nil {
			return err
		}
		value = slices.Clone(v)
		return closer.Close()
	})
	return value, err
}

// load reads what is known of a log without its events, and begins an
// ownership.
func (l *log) load() error {
	id := l.header.ID
	line, err := l.db.get(headerKey(id))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return session.ErrNotFound
	case err != nil:
		return err
	}
	if l.header, err = headerOf(id, line); err != nil {
		l.header.ID = id
		return err
	}
	if l.next, err = l.end(); err != nil {
		return err
	}
	last, err := l.db.get(epochKey(id))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	l.inDB = true
	if len(last) == 8 {
		l.epoch = session.Epoch(binary.BigEndian.Uint64(last))
	}
	l.epoch = nextEpoch(l.epoch)
	return l.db.use(func(engine *kv.DB, generation int) error {
		l.generation = generation
		return engine.Set(epochKey(id), binary.BigEndian.AppendUint64(nil, uint64(l.epoch)), kv.NoSync)
	})
}

// headerOf reads a stored header.
func headerOf(id dsh.SessionID, line []byte) (h dsh.SessionHeader, err error) {
	err = h.UnmarshalJSON(line)
	switch {
	case errors.Is(err, dsh.ErrVersion):
	case err != nil:
		err = fmt.Errorf("%w: header: %w", jsonl.ErrCorrupt, err)
	case h.ID != id:
		err = fmt.Errorf("%w: the header is that of %s", jsonl.ErrCorrupt, h.ID)
	}
	return h, err
}

// end returns the number behind the last event stored.
func (l *log) end() (next dsh.Seq, err error) {
	err = l.db.look(func(engine *kv.DB) error {
		it, err := engine.NewIter(bounds(keyOf(batchKind, l.header.ID)))
		if err != nil {
			return err
		}
		if it.Last() {
			value, verr := it.ValueAndErr()
			count, _, cerr := countOf(value)
			if err = errors.Join(verr, cerr); err == nil {
				next = seqOf(it.Key()) + count
			}
		}
		return errors.Join(err, it.Close())
	})
	return next, err
}

// bounds are those of the keys that begin with prefix.
func bounds(prefix []byte) *kv.IterOptions {
	upper := slices.Clone(prefix)
	for i := len(upper) - 1; i >= 0; i-- {
		if upper[i]++; upper[i] != 0 {
			return &kv.IterOptions{LowerBound: prefix, UpperBound: upper[:i+1]}
		}
	}
	return &kv.IterOptions{LowerBound: prefix}
}

// List yields the headers of all logs, oldest first, and then what is wrong
// with others.
func (s *Store) List(ctx context.Context) iter.Seq2[dsh.SessionHeader, error] {
	return func(yield func(dsh.SessionHeader, error) bool) {
		headers, bad, err := s.list(ctx)
		for _, h := range headers {
			if !yield(h, nil) {
				return
			}
		}
		for _, b := range bad {
			if !yield(dsh.SessionHeader{ID: b.id}, fmt.Errorf("pebble: list: %s: %w", b.id, b.err)) {
				return
			}
		}
		if err != nil {
			yield(dsh.SessionHeader{}, fmt.Errorf("pebble: list: %w", err))
		}
	}
}

// badLog is a log that is not listed.
type badLog struct {
	id  dsh.SessionID
	err error
}

func (s *Store) list(ctx context.Context) (headers []dsh.SessionHeader, bad []badLog, err error) {
	if s.closed.Load() {
		return nil, nil, errStoreClosed
	}
	err = s.db.look(func(engine *kv.DB) error {
		headers, bad = nil, nil
		it, err := engine.NewIter(bounds([]byte{headerKind}))
		if err != nil {
			return err
		}
		for ok := it.First(); ok && ctx.Err() == nil; ok = it.Next() {
			id := dsh.SessionID(it.Key()[1:])
			line, err := it.ValueAndErr()
			var h dsh.SessionHeader
			if err == nil {
				h, err = headerOf(id, line)
			}
			if err != nil {
				bad = append(bad, badLog{id, err})
				continue
			}
			headers = append(headers, h)
		}
		return errors.Join(ctx.Err(), it.Error(), it.Close())
	})
	slices.SortFunc(headers, func(a, b dsh.SessionHeader) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return headers, bad, err
}
