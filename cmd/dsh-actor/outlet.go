package main

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// An outlet is a writer that goroutines share and that can be shut while one
// of them is stuck in it. After the first error it takes nothing any more.
type outlet struct {
	terminal bool

	mu     sync.Mutex
	w      io.Writer
	err    error
	closed atomic.Bool
	broken chan struct{} // closed at the first error
}

var errShut = errors.New("output is shut")

func newOutlet(w io.Writer) *outlet {
	return &outlet{w: w, terminal: isTerminal(w), broken: make(chan struct{})}
}

// Write writes p as a whole or fails for good.
func (o *outlet) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.write(p)
}

func (o *outlet) write(p []byte) (int, error) {
	if o.closed.Load() {
		return 0, errShut
	}
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	if err != nil {
		o.err = err
		close(o.broken)
	}
	return n, err
}

// WriteString is Write for a string.
func (o *outlet) WriteString(s string) (int, error) { return o.Write([]byte(s)) }

// failure returns the error that broke the outlet, or nil.
func (o *outlet) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// tell writes s unless somebody is in the middle of writing.
func (o *outlet) tell(s string) {
	if o.mu.TryLock() {
		defer o.mu.Unlock()
		_, _ = o.write([]byte(s))
	}
}

// shut makes later writes fail. It does not wait for one that is stuck.
func (o *outlet) shut() { o.closed.Store(true) }

// coloured reports whether an outlet shows colours.
func (a *app) coloured(o *outlet) bool {
	return o.terminal && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

// isTerminal reports whether a stream is a character device: a terminal, or
// something that is as good as one.
func isTerminal(stream any) bool {
	f, ok := stream.(interface{ Stat() (os.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
