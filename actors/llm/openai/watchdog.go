package openai

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// never is further away than any request lasts.
const never = 10 * 365 * 24 * time.Hour

// watchdog ends a request that does not come on. It has one timer and no
// goroutine. A byte only moves the deadline; the timer looks at it when it
// fires and sleeps on if it has moved.
//
// The clock stands while the consumer is busy with a chunk: the time between
// pause and resume counts for no limit.
type watchdog struct {
	cancel context.CancelCauseFunc
	limits Options

	mu       sync.Mutex
	timer    *time.Timer
	wakes    time.Time     // when the timer fires; zero if it is not set
	phase    string        // what is waited for
	limit    time.Duration // of the phase
	deadline time.Time     // of the phase
	since    time.Time     // since when the clock runs
	left     time.Duration // of the total, at since
	paused   bool
	stopped  bool
	stall    error
	quiet    *listener // nil if nobody listens
}

// Phases of a watchdog.
const (
	phaseFirstByte = "no first byte"
	phaseIdle      = "no byte"
	phaseTokens    = "no byte within the answer"
)

func newWatchdog(o Options, cancel context.CancelCauseFunc) *watchdog {
	now := time.Now()
	d := &watchdog{cancel: cancel, limits: o, since: now, left: limited(o.TotalTimeout)}
	d.enter(phaseFirstByte, o.FirstByteTimeout, now)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = time.AfterFunc(never, d.wake)
	d.arm(now)
	return d
}

func limited(d time.Duration) time.Duration {
	if d <= 0 {
		return never
	}
	return min(d, never)
}

func (d *watchdog) enter(phase string, limit time.Duration, now time.Time) {
	d.phase, d.limit = phase, limit
	d.deadline = now.Add(limited(limit))
}

// byte notes that something arrived.
func (d *watchdog) byte() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.phase == phaseFirstByte {
		d.enter(phaseIdle, d.limits.IdleTimeout, now)
	}
	d.deadline = now.Add(limited(d.limit))
	if d.quiet != nil {
		d.quiet.byte = now
	}
	d.arm(now)
}

// pause stops the clock.
func (d *watchdog) pause() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused = true
	d.left -= time.Since(d.since)
}

// resume lets the clock run again, for the silence from the start. A chunk was
// yielded, so the answer has begun.
func (d *watchdog) resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.paused, d.since = false, now
	d.enter(phaseTokens, d.limits.TokenIdleTimeout, now)
	if d.quiet != nil {
		d.quiet.chunk, d.quiet.byte, d.quiet.next = now, now, d.quiet.first
	}
	d.arm(now)
}

// stop ends the watch.
func (d *watchdog) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	d.timer.Stop()
	if d.quiet != nil {
		d.quiet.timer.Stop()
	}
}

// stalled returns why the watchdog ended the request, or nil.
func (d *watchdog) stalled() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stall
}

// due returns when the nearer of the two limits ends.
func (d *watchdog) due() (at time.Time, total bool) {
	if end := d.since.Add(d.left); end.Before(d.deadline) {
		return end, true
	}
	return d.deadline, false
}

// arm sets the timer if it would not fire in time.
func (d *watchdog) arm(now time.Time) {
	at, _ := d.due()
	if d.stopped || !d.wakes.IsZero() && !at.Before(d.wakes) {
		return
	}
	d.wakes = at
	d.timer.Reset(at.Sub(now))
}

// wake runs when the timer fires.
func (d *watchdog) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.wakes = time.Time{}
	at, total := d.due()
	switch {
	case d.stopped || d.paused || d.stall != nil:
		return // resume sets the timer again
	case now.Before(at):
		d.arm(now)
		return
	case total:
		d.stall = fmt.Errorf("%w: the request took longer than %v", ErrStalled, d.limits.TotalTimeout)
	default:
		d.stall = fmt.Errorf("%w: %s for %v", ErrStalled, d.phase, d.limit)
	}
	d.cancel(d.stall)
}
