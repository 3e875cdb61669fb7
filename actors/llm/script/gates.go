package script

import (
	"context"
	"sync"
)

// Gates are named latches: closed until they are opened, then open for good.
// The zero value has every gate closed. Gates are safe for concurrent use and
// must not be copied. In a testing/synctest bubble they must be used from
// inside only.
type Gates struct {
	mu    sync.Mutex
	gates map[string]chan struct{} // closed when the gate is open
	all   bool
}

// Open opens gates. Opening an open one does nothing.
func (g *Gates) Open(names ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range names {
		open(g.gate(name))
	}
}

// OpenAll opens every gate, also those that nobody has named yet. It is how a
// test lets go of everything that still waits.
func (g *Gates) OpenAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = true
	for _, c := range g.gates {
		open(c)
	}
}

// Wait blocks until the gate is open and returns true, or until ctx ends and
// returns false. An open gate wins over an ended context.
func (g *Gates) Wait(ctx context.Context, name string) bool {
	g.mu.Lock()
	c := g.gate(name)
	g.mu.Unlock()
	select {
	case <-c:
		return true
	default:
	}
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}

// gate returns the channel of a gate. The caller holds the lock.
func (g *Gates) gate(name string) chan struct{} {
	c, ok := g.gates[name]
	if !ok {
		c = make(chan struct{})
		if g.gates == nil {
			g.gates = make(map[string]chan struct{})
		}
		g.gates[name] = c
		if g.all {
			close(c)
		}
	}
	return c
}

func open(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
