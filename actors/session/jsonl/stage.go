package jsonl

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

var _ session.Stager = (*Store)(nil)

// staged is a log that is whole and has no name yet. Its owner has the lock.
type staged struct {
	store     *Store
	id        dsh.SessionID
	path      string
	temporary string
	file      file // nil once all is written
	held      *lock
}

// Stage makes a log in a file that no store looks at, a batch of events in each
// write. It holds the log's lock until it is committed or discarded.
func (s *Store) Stage(
	ctx context.Context, h dsh.SessionHeader, batches iter.Seq2[[]dsh.Event, error],
) (session.Staged, error) {
	g, err := s.stage(ctx, h, batches)
	if err != nil {
		return nil, fmt.Errorf("jsonl: create %s: %w", h.ID, err)
	}
	return g, nil
}

func (s *Store) stage(ctx context.Context, h dsh.SessionHeader, batches iter.Seq2[[]dsh.Event, error]) (_ *staged, err error) {
	created, err := s.create(h) // so that nobody else does
	if err != nil {
		return nil, err
	}
	defer s.forget(created)
	dir, _, err := s.makeDir(&h)
	if err != nil {
		return nil, err
	}
	g := &staged{store: s, id: h.ID, path: created.path, temporary: temporaryName(created.path)}
	if g.held, err = acquire(dir, h.ID, 0); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.discard())
		}
	}()
	since := s.syncer.failures.Load()
	if err = s.makeRoom(g.path); err != nil {
		return nil, err
	}
	if g.file, err = s.disk.create(g.temporary); err != nil {
		return nil, err
	}
	if err = g.fill(ctx, created, batches); err != nil {
		return nil, err
	}
	if err = s.persist(g.file, nil, s.reaches(g.file.Stat()), since); err != nil {
		return nil, err
	}
	err = g.file.Close() // there may be many
	g.file = nil
	return g, err
}

// fill writes header and events. The log numbers them.
func (g *staged) fill(ctx context.Context, l *log, batches iter.Seq2[[]dsh.Event, error]) error {
	unit := l.box.wrap(nil, append(l.header.AppendJSON(nil), '\n'))
	if err := writeAt(g.file, unit, 0); err != nil {
		return err
	}
	at := int64(len(unit))
	for events, err := range batches {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			l.next, err = l.follow(events)
		}
		if err != nil {
			return err
		}
		if len(events) == 0 {
			continue
		}
		unit = l.box.wrap(unit[:0], appendLines(nil, events))
		if err := writeAt(g.file, unit, at); err != nil {
			return err
		}
		at += int64(len(unit))
	}
	return nil
}

// Commit gives the log its name.
func (g *staged) Commit() error {
	err := g.store.disk.claim(g.temporary, g.path)
	if exists(err) {
		err = fmt.Errorf("%w: %s", session.ErrExists, g.path)
	}
	if err == nil {
		if err = g.store.nameDurably(g.path); err != nil {
			_ = g.store.disk.remove(g.path) // it was not promised to anybody
		}
	}
	if err = errors.Join(err, g.discard()); err != nil {
		return fmt.Errorf("jsonl: create %s: %w", g.id, err)
	}
	return nil
}

// Discard removes what was written.
func (g *staged) Discard() error {
	if err := g.discard(); err != nil {
		return fmt.Errorf("jsonl: discard %s: %w", g.id, err)
	}
	return nil
}

// discard gives the temporary name and the lock up. A name that cannot be
// removed is swept by who opens the log next.
func (g *staged) discard() error {
	if g.file != nil {
		_ = g.file.Close() // it is given up
	}
	_ = g.store.disk.remove(g.temporary)
	return g.held.release()
}
