package runtime

import (
	"context"
	"iter"

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
		for {
			packed, err := a.life.Load().read(ctx, from, wait)
			if err != nil {
				yield(dsh.Event{}, err)
				return
			}
			if len(packed) == 0 {
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
		}
	}
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
	l := a.life.Load()
	notices := make(chan hook.Notice, max(buffer, 1))
	l.handle.Send(agent.Subscribe{Notices: notices})
	return func(yield func(hook.Notice) bool) {
		defer l.handle.Send(agent.Unsubscribe{Notices: notices})
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
				return
			}
		}
	}
}
