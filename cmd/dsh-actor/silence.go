package main

import (
	"sync"
	"time"
)

// A silence notices that nothing comes: after its first time, and again each
// time that it has doubled.
type silence struct {
	mu    sync.Mutex
	since time.Time
	first time.Duration
	next  time.Duration // of silence before the next notice
	timer *time.Timer
	tell  func(time.Duration)
	ended bool
	busy  sync.WaitGroup
}

// begin starts to listen; tell is called on another goroutine.
func (s *silence) begin(first time.Duration, tell func(time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.first, s.next, s.tell = time.Now(), first, first, tell
	s.timer = time.AfterFunc(first, s.due)
}

// broken tells that something came.
func (s *silence) broken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.next = time.Now(), s.first
}

// end returns when tell is called no more.
func (s *silence) end() {
	s.mu.Lock()
	s.ended = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.busy.Wait()
}

// due looks how long it has been silent. The timer is not set anew with every
// event but only here.
func (s *silence) due() {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	quiet := time.Since(s.since)
	told := quiet >= s.next
	if told {
		s.busy.Add(1)
		s.next *= 2
	}
	s.timer.Reset(max(s.next-quiet, time.Millisecond))
	s.mu.Unlock()
	if told {
		defer s.busy.Done()
		s.tell(quiet)
	}
}
