// Package memory is a session store that keeps logs in memory: the default
// when embedding, for tests and for runs that need no durability.
package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"
	"sync"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Store keeps logs until the process ends or [Store.Delete] is called. The
// zero value is an empty store.
type Store struct {
	mu    sync.Mutex
	logs  map[dsh.SessionID]*record
	order []dsh.SessionID
	below map[dsh.SessionID][]dsh.SessionID // in order, by parent
}

var (
	_ session.Store   = (*Store)(nil)
	_ session.Lineage = (*Store)(nil)
	_ session.Deleter = (*Store)(nil)
)

// New returns an empty store.
func New() *Store { return &Store{} }

// record is one log; handle is the view of one owner.
type record struct {
	header dsh.SessionHeader

	mu      sync.RWMutex
	batches [][]dsh.Event
	next    dsh.Seq
	owner   *handle
	epoch   session.Epoch // of the last owner
}

type handle struct {
	rec   *record
	epoch session.Epoch
}

// own makes a new owner; the caller has the record to itself.
func (r *record) own() *handle {
	r.epoch++
	r.owner = &handle{rec: r, epoch: r.epoch}
	return r.owner
}

// Volatile returns true.
func (*Store) Volatile() bool { return true }

// Create makes an empty log.
func (s *Store) Create(_ context.Context, h dsh.SessionHeader) (session.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.logs[h.ID]; ok {
		return nil, fmt.Errorf("memory: create %s: %w", h.ID, session.ErrExists)
	}
	if s.logs == nil {
		s.logs = map[dsh.SessionID]*record{}
	}
	rec := &record{header: h}
	s.logs[h.ID] = rec
	s.order = append(s.order, h.ID)
	if h.ParentSession != "" {
		if s.below == nil {
			s.below = map[dsh.SessionID][]dsh.SessionID{}
		}
		s.below[h.ParentSession] = append(s.below[h.ParentSession], h.ID)
	}
	return rec.own(), nil
}

// Open opens a log to be continued.
func (s *Store) Open(_ context.Context, id dsh.SessionID) (session.Log, error) {
	s.mu.Lock()
	rec, ok := s.logs[id]
	s.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("memory: open %s: %w", id, session.ErrNotFound)
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.owner != nil {
		return nil, fmt.Errorf("memory: open %s: %w", id, session.ErrInUse)
	}
	return rec.own(), nil
}

// List yields the headers in order of creation.
func (s *Store) List(context.Context) iter.Seq2[dsh.SessionHeader, error] {
	return s.headers(func() []dsh.SessionID { return s.order })
}

// Children yields the headers of the logs of a session's children.
func (s *Store) Children(_ context.Context, parent dsh.SessionID) iter.Seq2[dsh.SessionHeader, error] {
	return s.headers(func() []dsh.SessionID { return s.below[parent] })
}

// headers yields the headers of some logs; some is called with the lock held.
func (s *Store) headers(some func() []dsh.SessionID) iter.Seq2[dsh.SessionHeader, error] {
	return func(yield func(dsh.SessionHeader, error) bool) {
		s.mu.Lock()
		ids := slices.Clone(some())
		s.mu.Unlock()
		for _, id := range ids {
			s.mu.Lock()
			rec, ok := s.logs[id]
			s.mu.Unlock()
			if ok && !yield(rec.header, nil) {
				return
			}
		}
	}
}

// Delete forgets a log. Its owner, if any, can go on reading but not writing.
func (s *Store) Delete(_ context.Context, id dsh.SessionID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec, ok := s.logs[id]
	if !ok {
		return fmt.Errorf("memory: delete %s: %w", id, session.ErrNotFound)
	}
	delete(s.logs, id)
	gone := func(o dsh.SessionID) bool { return o == id }
	s.order = slices.DeleteFunc(s.order, gone)
	if parent := rec.header.ParentSession; parent != "" {
		if s.below[parent] = slices.DeleteFunc(s.below[parent], gone); len(s.below[parent]) == 0 {
			delete(s.below, parent)
		}
	}
	rec.mu.Lock()
	rec.owner = nil
	rec.mu.Unlock()
	return nil
}

func (h *handle) Header() dsh.SessionHeader { return h.rec.header }

func (h *handle) Epoch() session.Epoch { return h.epoch }

func (h *handle) Append(_ context.Context, fence session.Fence, events []dsh.Event) error {
	if len(events) == 0 {
		return nil
	}
	r := h.rec
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.owner != h:
		return fmt.Errorf("memory: append to %s: %w", r.header.ID, session.ErrClosed)
	case fence.Epoch != r.epoch:
		return fmt.Errorf("memory: append to %s: %w", r.header.ID, session.ErrStale)
	case fence.Next != r.next || events[0].Seq != r.next:
		return fmt.Errorf("memory: append %d to %s, which has %d: %w", fence.Next, r.header.ID, r.next, session.ErrConflict)
	}
	r.batches = append(r.batches, events)
	r.next = events[len(events)-1].Last() + 1
	return nil
}

func (h *handle) Sync(context.Context) error { return nil }

func (h *handle) Read(_ context.Context, from dsh.Seq, limit int) ([]dsh.Event, error) {
	r := h.rec
	r.mu.RLock()
	batches, next := r.batches, r.next
	r.mu.RUnlock()
	if from >= next {
		return nil, nil
	}
	b := sort.Search(len(batches), func(i int) bool {
		last := batches[i]
		return last[len(last)-1].Last() >= from
	})
	batch := batches[b]
	at := sort.Search(len(batch), func(i int) bool { return batch[i].Last() >= from })
	if limit > 0 && int(batch[len(batch)-1].Last()-from) >= limit {
		return batch[at:], nil
	}
	var out []dsh.Event
	for _, more := range batches[b:] {
		if limit > 0 && len(out) > 0 && int(out[len(out)-1].Last()-from) >= limit {
			break
		}
		out = append(out, more[at:]...)
		at = 0
	}
	return out, nil
}

func (h *handle) Close() error {
	h.rec.mu.Lock()
	defer h.rec.mu.Unlock()
	if h.rec.owner == h {
		h.rec.owner = nil
	}
	return nil
}
