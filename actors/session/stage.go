package session

import (
	"context"
	"errors"
	"iter"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Stager is a [Store] that can make a log with all its events at once or not
// at all.
type Stager interface {
	Store
	// Stage makes the log with header h and the events of batches, durably,
	// where nobody sees it yet. The ID must be free ([ErrExists]). An error
	// leaves no log.
	Stage(ctx context.Context, h dsh.SessionHeader, batches iter.Seq2[[]dsh.Event, error]) (Staged, error)
}

// Staged is a log that was made whole. One of its methods is to be called, once.
type Staged interface {
	// Commit puts the log into its store.
	Commit() error
	// Discard forgets it.
	Discard() error
}

// Stage makes a log in any store. One that is no [Stager] shows the log while it
// is being made; it is taken out again if that fails and the store can delete.
func Stage(
	ctx context.Context, store Store, h dsh.SessionHeader, batches iter.Seq2[[]dsh.Event, error],
) (Staged, error) {
	if s, ok := store.(Stager); ok {
		return s.Stage(ctx, h, batches)
	}
	log, err := store.Create(ctx, h)
	if err != nil {
		return nil, err
	}
	s := &shown{store: store, log: log}
	for events, err := range batches {
		if err == nil {
			err = Extend(ctx, log, events)
		}
		if err != nil {
			return nil, errors.Join(err, s.Discard())
		}
	}
	if err := log.Sync(ctx); err != nil {
		return nil, errors.Join(err, s.Discard())
	}
	return s, nil
}

// shown is a staged log of a store that cannot hide one.
type shown struct {
	store Store
	log   Log
}

func (s *shown) Commit() error { return s.log.Close() }

func (s *shown) Discard() error {
	err := s.log.Close()
	if d, ok := s.store.(Deleter); ok { // also if the making was cancelled
		err = errors.Join(err, d.Delete(context.Background(), s.log.Header().ID))
	}
	return err
}
