package openai

import "time"

// Quiet tells of a request that is silent.
type Quiet struct {
	// For is how long nothing of the answer has come: since the last chunk, or
	// since the request.
	For time.Duration
	// Silent is how long no byte has come. It is shorter than For while
	// keep-alives come.
	Silent time.Duration
	// Left is when a timeout ends the request, unless a byte comes.
	Left time.Duration
}

// listener tells of silence. The watchdog's lock guards it. Its timer is not
// set anew with every chunk but looks, when it fires, how long it has been.
type listener struct {
	tell  func(Quiet)
	first time.Duration
	next  time.Duration // of silence before the next word
	chunk time.Time     // the last one, or the request
	byte  time.Time
	timer *time.Timer
}

// listen makes the watchdog tell of silence until it is stopped.
func (d *watchdog) listen(tell func(Quiet)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := limited(d.limits.QuietAfter)
	now := time.Now()
	d.quiet = &listener{tell: tell, first: first, next: first, chunk: now, byte: now}
	d.quiet.timer = time.AfterFunc(first, d.hush)
}

// hush runs when the listener's timer fires.
func (d *watchdog) hush() {
	d.mu.Lock()
	l, now := d.quiet, time.Now()
	if d.stopped || d.stall != nil {
		d.mu.Unlock()
		return
	}
	quiet := now.Sub(l.chunk)
	told := quiet >= l.next && !d.paused
	q := Quiet{For: quiet, Silent: now.Sub(l.byte)}
	if told {
		at, _ := d.due()
		q.Left = at.Sub(now)
		l.next *= 2
	}
	wait := l.next - quiet
	if wait <= 0 {
		wait = l.first // paused: look again
	}
	l.timer.Reset(wait)
	d.mu.Unlock()
	if told {
		l.tell(q)
	}
}
