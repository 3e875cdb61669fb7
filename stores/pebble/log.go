package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	kv "github.com/cockroachdb/pebble/v2"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// maxPending is how many bytes a log keeps in memory because they are not
// durable yet; more are made durable without being asked for.
const maxPending = 1 << 20

// log is a log and its owner.
//
// Invariants: pending is what was appended since the last sync, which is what a
// failure may lose; the engine has it if generation is the engine's. Batches
// are written at keys that their numbers give, so that writing one again is the
// same as writing it once.
type log struct {
	db     *database
	header dsh.SessionHeader
	epoch  session.Epoch

	own        sync.Mutex // one call of the owner at a time
	closed     bool
	inDB       bool // the header is durable
	pending    []record
	size       int // of pending
	generation int

	mu   sync.RWMutex
	next dsh.Seq
}

// record is a batch as it is stored.
type record struct{ key, value []byte }

var _ session.Log = (*log)(nil)

// Header returns what the log says of its session.
func (l *log) Header() dsh.SessionHeader { return l.header }

// Epoch returns the ownership's.
func (l *log) Epoch() session.Epoch { return l.epoch }

// Append adds events.
func (l *log) Append(_ context.Context, fence session.Fence, events []dsh.Event) error {
	l.own.Lock()
	defer l.own.Unlock()
	err := l.admits(fence)
	if err == nil && len(events) > 0 {
		err = l.append(events)
	}
	if err != nil {
		return fmt.Errorf("pebble: append to %s: %w", l.header.ID, err)
	}
	return nil
}

// admits returns why a writer is refused. That no other process owns the log is
// seen to by the lock of the database.
func (l *log) admits(fence session.Fence) error {
	switch {
	case l.closed:
		return session.ErrClosed
	case fence.Epoch != l.epoch:
		return session.ErrStale
	case fence.Next != l.next:
		return fmt.Errorf("event %d where %d is due: %w", fence.Next, l.next, session.ErrConflict)
	}
	return nil
}

func (l *log) append(events []dsh.Event) error {
	next := l.next
	for i := range events {
		ev := &events[i]
		if ev.Seq != next {
			return fmt.Errorf("event %d where %d is due: %w", ev.Seq, next, session.ErrConflict)
		}
		if err := dsh.CheckKnown(ev); err != nil {
			return err
		}
		next += ev.Span()
	}
	add := record{batchKey(l.header.ID, l.next), batch(events)}
	if err := l.write(add); err != nil {
		return err
	}
	l.pending = append(l.pending, add)
	l.size += len(add.value)
	l.mu.Lock()
	l.next = next
	l.mu.Unlock()
	if l.size > maxPending {
		_ = l.sync() // the next Sync tries again, and tells
	}
	return nil
}

// write puts records into the engine, behind those that a failure may have
// lost.
func (l *log) write(records ...record) error {
	return l.db.use(func(engine *kv.DB, generation int) error {
		b := engine.NewBatch()
		if !l.inDB {
			l.introduce(b)
		}
		if generation != l.generation {
			for _, r := range l.pending {
				_ = b.Set(r.key, r.value, nil) // a batch in memory takes everything
			}
		}
		for _, r := range records {
			_ = b.Set(r.key, r.value, nil)
		}
		if err := b.Commit(kv.NoSync); err != nil {
			return err
		}
		l.generation = generation
		return b.Close()
	})
}

// introduce writes what makes the log exist.
func (l *log) introduce(b *kv.Batch) {
	id := l.header.ID
	_ = b.Set(headerKey(id), l.header.AppendJSON(nil), nil)
	_ = b.Set(epochKey(id), binary.BigEndian.AppendUint64(nil, uint64(l.epoch)), nil)
}

// Sync makes what was appended durable. The engine makes syncs that come
// together with one sync of its log.
func (l *log) Sync(context.Context) error {
	l.own.Lock()
	defer l.own.Unlock()
	err := session.ErrClosed
	if !l.closed {
		err = l.sync()
	}
	if err != nil {
		return fmt.Errorf("pebble: sync %s: %w", l.header.ID, err)
	}
	return nil
}

func (l *log) sync() error {
	if len(l.pending) == 0 {
		return nil
	}
	err := l.db.use(func(engine *kv.DB, generation int) error {
		if generation != l.generation {
			return errLost
		}
		return engine.LogData(nil, kv.Sync)
	})
	if errors.Is(err, errLost) {
		if err = l.write(); err == nil {
			return l.sync()
		}
	}
	if err != nil {
		return err
	}
	l.inDB, l.pending, l.size = true, nil, 0
	return nil
}

// errLost says that what is to be made durable was written to an engine that
// failed since.
var errLost = errors.New("written before a failure")

// Read returns packed events.
func (l *log) Read(_ context.Context, from dsh.Seq, limit int) ([]dsh.Event, error) {
	events, err := l.read(max(from, 0), limit)
	if err != nil {
		return nil, fmt.Errorf("pebble: read %s: %w", l.header.ID, err)
	}
	return events, nil
}

func (l *log) read(from dsh.Seq, limit int) (events []dsh.Event, err error) {
	l.mu.RLock()
	through := l.next
	l.mu.RUnlock()
	if from >= through {
		return nil, nil
	}
	if limit > 0 {
		through = min(through, from+dsh.Seq(limit))
	}
	id := l.header.ID
	err = l.db.look(func(engine *kv.DB) error {
		events = nil
		it, err := engine.NewIter(&kv.IterOptions{
			LowerBound: batchKey(id, 0), UpperBound: batchKey(id, through),
		})
		if err != nil {
			return err
		}
		for ok := it.SeekLT(batchKey(id, from+1)); ok && err == nil; ok = it.Next() {
			var value []byte
			if value, err = it.ValueAndErr(); err != nil {
				break
			}
			var batch []dsh.Event
			if batch, err = eventsOf(it.Key(), value); err == nil {
				events = appendBetween(events, batch, from, through)
			}
		}
		return errors.Join(err, it.Error(), it.Close())
	})
	if err == nil && len(events) == 0 {
		err = fmt.Errorf("event %d is not in the database any more", from)
	}
	return events, err
}

// appendBetween appends the events of batch that cover from and what follows,
// up to through.
func appendBetween(events, batch []dsh.Event, from, through dsh.Seq) []dsh.Event {
	for i := range batch {
		if batch[i].Last() >= from && batch[i].Seq < through {
			events = append(events, batch[i])
		}
	}
	return events
}

// Close gives the log up. The engine keeps what is not durable in the process;
// so that it outlives the process it is made durable.
func (l *log) Close() error {
	l.own.Lock()
	defer l.own.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	err := l.sync()
	l.pending = nil
	l.db.disown(l)
	if err != nil {
		return fmt.Errorf("pebble: close %s: %w", l.header.ID, err)
	}
	return nil
}
