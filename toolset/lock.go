package toolset

import (
	"context"
	"sync"
)

// changing orders the changes of each file in this process. It is shared by
// all toolsets, since agents with one each may work in the same directory.
var changing = keyedLock{turns: map[string]*turn{}}

// A keyedLock is a lock for each key, kept only while somebody wants it.
type keyedLock struct {
	mu    sync.Mutex
	turns map[string]*turn
}

type turn struct {
	free    chan struct{} // holds a token while nobody has the lock
	waiting int           // including who has it
}

// lock waits for the key; ctx ends the wait. unlock is called once.
func (l *keyedLock) lock(ctx context.Context, key string) (unlock func(), err error) {
	l.mu.Lock()
	t := l.turns[key]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		l.turns[key] = t
	}
	t.waiting++
	l.mu.Unlock()

	select {
	case <-t.free:
		return func() { t.free <- struct{}{}; l.leave(key, t) }, nil
	case <-ctx.Done():
		l.leave(key, t)
		return nil, ctx.Err()
	}
}

func (l *keyedLock) leave(key string, t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.waiting--; t.waiting == 0 {
		delete(l.turns, key)
	}
}
