package dispatch

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// stall is how long work may wait for a worker before another one is added.
const stall = 5 * time.Millisecond

// A Pool runs functions on workers. The zero value is not ready; see [New].
type Pool struct {
	// Handled, if set before the first actor is spawned, counts the messages
	// that its actors handle. It is for tests that hold their number down.
	Handled *atomic.Int64

	limit int  // workers that are kept
	waits bool // what is run may wait: nothing is queued

	mu      sync.Mutex
	idle    []*worker
	workers int
	queue   []func() // waits for a worker, oldest first
	since   time.Time
	closed  bool
}

// worker is a goroutine that waits for its next function.
type worker struct{ next chan func() }

// New returns a pool that keeps a few workers per processor.
func New() *Pool { return &Pool{limit: 4 * runtime.GOMAXPROCS(0)} }

// NewWaiting returns a pool for functions that wait, for a disk or for somebody:
// each has a goroutine at once, and only a few are kept for the next. It is for
// those that would otherwise begin with a fresh stack and outgrow it.
func NewWaiting() *Pool { return &Pool{limit: 16 * runtime.GOMAXPROCS(0), waits: true} }

// Run runs f on a worker, soon. It never waits.
func (p *Pool) Run(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		w.next <- f // has room: the worker is idle
		return
	}
	if p.workers < p.limit || p.waits || p.stalled() {
		p.workers++
		w := &worker{next: make(chan func(), 1)}
		go p.work(w, f)
		return
	}
	if len(p.queue) == 0 {
		p.since = time.Now()
	}
	p.queue = append(p.queue, f)
}

// stalled reports whether work has waited for too long. The workers are then
// taken to be stuck, and the clock starts again.
func (p *Pool) stalled() bool {
	if len(p.queue) == 0 || time.Since(p.since) < stall {
		return false
	}
	p.since = time.Now()
	return true
}

func (p *Pool) work(w *worker, f func()) {
	for f != nil {
		f()
		f = p.next(w)
	}
}

// next returns what a worker does after its last function: what waits, or
// whatever comes when it does. It returns nil to a worker that is not needed
// any more.
func (p *Pool) next(w *worker) func() {
	p.mu.Lock()
	if len(p.queue) > 0 {
		f := p.queue[0]
		p.queue[0] = nil
		if p.queue = p.queue[1:]; len(p.queue) == 0 {
			p.queue = nil
		} else {
			p.since = time.Now()
		}
		p.mu.Unlock()
		return f
	}
	if p.closed || p.workers > p.limit {
		p.workers--
		p.mu.Unlock()
		return nil
	}
	p.idle = append(p.idle, w)
	p.mu.Unlock()
	return <-w.next
}

// Close ends the workers that are idle, and each other one when it becomes so.
// What is run afterwards still runs.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, w := range p.idle {
		w.next <- nil
		p.workers--
	}
	p.idle = nil
}
