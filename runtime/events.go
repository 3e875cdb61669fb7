package runtime

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// readLimit is about how many events a reader takes at once.
const readLimit = 512

// life is the actors behind an agent, from one start to the next.
type life struct {
	rt          *Runtime
	handle      *agent.Handle
	session     *actor.PID
	sessionGone <-chan struct{}
	log         session.Log
	link        *link
}

// link is between a session and the agent that has it at the time: one that
// failed has a successor.
type link struct {
	mu   sync.Mutex
	tell func(session.Failed) // nil until the agent is there
	err  error                // why the session broke
}

// broke is what the session calls when it breaks.
func (k *link) broke(err error) {
	k.mu.Lock()
	k.err = err
	tell := k.tell
	k.mu.Unlock()
	if tell != nil {
		tell(session.Failed{Err: err})
	}
}

// own makes h the agent that is told, also of what was earlier.
func (k *link) own(h *agent.Handle) {
	k.mu.Lock()
	k.tell = func(f session.Failed) { h.Send(f) }
	err := k.err
	k.mu.Unlock()
	if err != nil {
		h.Send(session.Failed{Err: err})
	}
}

// failure returns why the session broke, or nil.
func (k *link) failure() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// failed reports whether the agent stopped by itself.
func (l *life) failed() bool {
	select {
	case <-l.handle.Gone():
		return l.handle.Failure() != nil
	default:
		return false
	}
}

// Events yields the events that the log holds now, from a sequence number on.
func (a *Agent) Events(ctx context.Context, from dsh.Seq) iter.Seq2[dsh.Event, error] {
	return a.events(ctx, from, false)
}

// Follow yields the events from a sequence number on and waits for more, until
// ctx ends (which it yields as an error), the agent is disposed or the caller
// breaks off. A reader keeps its own place: one that is slow loses nothing and
// slows nobody.
func (a *Agent) Follow(ctx context.Context, from dsh.Seq) iter.Seq2[dsh.Event, error] {
	return a.events(ctx, from, true)
}

func (a *Agent) events(ctx context.Context, from dsh.Seq, wait bool) iter.Seq2[dsh.Event, error] {
	return func(yield func(dsh.Event, error) bool) {
		a.followers.Add(1)
		defer a.unfollow()
		for {
			l, err := a.readable(ctx)
			var packed []dsh.Event
			switch {
			case err == nil:
				packed, err = l.read(ctx, from, wait)
			case errors.Is(err, ErrDisposed): // as a passive one
				packed, err = a.packed(ctx)
				wait = false
			}
			if err != nil {
				yield(dsh.Event{}, err)
				return
			}
			if len(packed) == 0 {
				if wait && l != nil && l.handle.Rested() {
					continue
				}
				if wait && l != nil && l.link.failure() != nil {
					yield(dsh.Event{}, a.lost(l))
				}
				return
			}
			for ev := range dsh.Expand(packed) {
				if ev.Seq < from {
					continue
				}
				if !yield(ev, nil) {
					return
				}
				from = ev.Seq + 1
			}
			if l == nil {
				return
			}
		}
	}
}

// readable returns a life to read from, which may be over.
func (a *Agent) readable(ctx context.Context) (*life, error) {
	if l := a.life.Load(); l != nil && !l.handle.Rested() {
		return l, nil
	}
	return a.alive(ctx)
}

func (a *Agent) unfollow() {
	if a.followers.Add(-1) == 0 {
		a.rt.rest.arm()
	}
}

// packed returns all events of the session.
func (a *Agent) packed(ctx context.Context) ([]dsh.Event, error) {
	_, events, err := a.stored(ctx)
	return events, err
}

// stored returns the session, and does not bring a passive agent back for it.
func (a *Agent) stored(ctx context.Context) (dsh.SessionHeader, []dsh.Event, error) {
	for {
		if l := a.life.Load(); l != nil {
			events, err := l.packed(ctx)
			return l.log.Header(), events, err
		}
		header, events, err := a.rt.look(ctx, a.session)
		if errors.Is(err, ErrInUse) && a.settled(ctx) != nil {
			continue
		}
		return header, events, err
	}
}

// settled returns the life of an agent that nobody is bringing back any more.
func (a *Agent) settled(ctx context.Context) *life {
	if a.turning.take(ctx) != nil {
		return nil
	}
	defer a.turning.let()
	return a.life.Load()
}

// read returns packed events that cover from and what follows, waiting for
// some if asked to. None means that there are none (any more).
func (l *life) read(ctx context.Context, from dsh.Seq, wait bool) ([]dsh.Event, error) {
	reply := make(chan session.Available, 1)
	l.rt.system.Root.Send(l.session, session.Read{From: from, Reply: reply, Wait: wait})
	var a session.Available
	select {
	case a = <-reply:
	case <-l.sessionGone:
		return l.log.Read(ctx, from, readLimit)
	case <-ctx.Done():
		l.rt.system.Root.Send(l.session, session.Unread{Reply: reply})
		return nil, ctx.Err()
	}
	if a.Stored || a.Closed {
		return l.log.Read(ctx, from, readLimit)
	}
	return a.Events, nil
}

// packed returns all events of the session.
func (l *life) packed(ctx context.Context) ([]dsh.Event, error) {
	var all []dsh.Event
	for {
		more, err := l.read(ctx, length(all), false)
		if err != nil || len(more) == 0 {
			return all, err
		}
		all = append(all, more...)
	}
}

// Notices yields the agent's live notices from now on, until ctx ends, the
// agent is disposed or the caller breaks off. A reader that falls more than
// buffer notices behind loses some; what must not be lost is in the log.
func (a *Agent) Notices(ctx context.Context, buffer int) iter.Seq[hook.Notice] {
	notices := make(chan hook.Notice, max(buffer, 1))
	l := a.subscribe(ctx, notices)
	return func(yield func(hook.Notice) bool) {
		if l == nil {
			return
		}
		defer func() { l.handle.Send(agent.Unsubscribe{Notices: notices}) }()
		for {
			select {
			case n := <-notices:
				if !yield(n) {
					return
				}
				continue
			default:
			}
			select {
			case n := <-notices:
				if !yield(n) {
					return
				}
			case <-ctx.Done():
				return
			case <-l.handle.Gone():
				if !l.handle.Rested() {
					return
				}
				if next := a.subscribe(ctx, notices); next != nil {
					l = next
					continue
				}
				return
			}
		}
	}
}

// subscribe makes the agent send its notices to a channel. It returns the life
// that does, or nil if there is none.
func (a *Agent) subscribe(ctx context.Context, notices chan<- hook.Notice) *life {
	l := a.life.Load()
	if l == nil || l.handle.Rested() {
		var err error
		if l, err = a.alive(ctx); err != nil {
			return nil
		}
	}
	l.handle.Send(agent.Subscribe{Notices: notices})
	return l
}
