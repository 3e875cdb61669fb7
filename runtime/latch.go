package runtime

import (
	"context"
	"sync"
)

// latch is a lock that is held while a store works, which may take long: whoever
// waits for it gives up with his context. The zero value is open.
type latch struct {
	mu   sync.Mutex
	held bool
	free chan struct{} // closed when it is let go; nil while nobody waits
}

// take waits for the latch, until ctx ends. Where it is open the ctx does not
// matter.
func (l *latch) take(ctx context.Context) error {
	for {
		l.mu.Lock()
		if !l.held {
			l.held = true
			l.mu.Unlock()
			return nil
		}
		if l.free == nil {
			l.free = make(chan struct{})
		}
		free := l.free
		l.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// let opens the latch.
func (l *latch) let() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	if l.free != nil {
		close(l.free)
		l.free = nil
	}
}
