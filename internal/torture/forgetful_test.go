package torture

import (
	"context"
	"sync"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// forgetful is a store that keeps what was not synced in memory, so that a
// kill loses what a power failure may lose.
type forgetful struct{ session.Store }

func (f forgetful) Create(ctx context.Context, h dsh.SessionHeader) (session.Log, error) {
	return forget(f.Store.Create(ctx, h))
}

func (f forgetful) Open(ctx context.Context, id dsh.SessionID) (session.Log, error) {
	return forget(f.Store.Open(ctx, id))
}

func forget(log session.Log, err error) (session.Log, error) {
	if err != nil {
		return nil, err
	}
	return &forgetfulLog{Log: log}, nil
}

// forgetfulLog is not read behind its first append.
type forgetfulLog struct {
	session.Log
	mu       sync.Mutex
	unsynced []dsh.Event
}

func (l *forgetfulLog) Append(_ context.Context, events []dsh.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsynced = append(l.unsynced, events...)
	return nil
}

func (l *forgetfulLog) Sync(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Log.Append(ctx, l.unsynced); err != nil {
		return err
	}
	l.unsynced = nil
	return l.Log.Sync(ctx)
}
