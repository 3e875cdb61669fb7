package main

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// interrupts tells what the signals so far mean: the first asks to stop, the
// second to quit.
type interrupts struct {
	soft chan struct{} // closed by the first signal
	hard chan struct{} // closed by the second

	// deaf is set while Ctrl-C is meant for another program at the terminal.
	deaf atomic.Bool

	mu     sync.Mutex
	signal os.Signal // the last
	done   chan struct{}
	ended  sync.WaitGroup
}

// watch takes signals until end is called. A nil channel has none.
func watch(signals <-chan os.Signal) *interrupts {
	in := &interrupts{soft: make(chan struct{}), hard: make(chan struct{}), done: make(chan struct{})}
	in.ended.Go(func() {
		for _, closing := range []chan struct{}{in.soft, in.hard} {
			if !in.next(signals) {
				return
			}
			close(closing)
		}
	})
	return in
}

// next waits for a signal; it returns false at the end.
func (in *interrupts) next(signals <-chan os.Signal) bool {
	for {
		select {
		case s := <-signals:
			if s == os.Interrupt && in.deaf.Load() {
				continue
			}
			in.mu.Lock()
			in.signal = s
			in.mu.Unlock()
			return true
		case <-in.done:
			return false
		}
	}
}

func (in *interrupts) end() {
	close(in.done)
	in.ended.Wait()
}

// last returns the last signal, nil if there was none.
func (in *interrupts) last() os.Signal {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.signal
}

// code returns the exit code of a command that the last signal ended.
func (in *interrupts) code() int {
	if s, ok := in.last().(syscall.Signal); ok {
		return 128 + int(s)
	}
	return exitInterrupted
}

// user reports whether the last signal came from somebody at the keyboard.
func (in *interrupts) user() bool { return in.last() == os.Interrupt }
