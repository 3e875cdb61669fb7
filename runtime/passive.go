package runtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/actors/session"
)

// An agent is passive when it has no life: its log is closed, its actors are
// gone and what is left is its entry in the registry. Whoever needs it to be
// alive brings it back, on its log and as the same agent: no hook is told, and
// nothing is logged. See [Options.PassivateAfter].

// defaultPassivateAfter is how long an agent is idle before it is passivated.
const defaultPassivateAfter = 10 * time.Minute

// atOnce is how many agents are passivated at the same time, so that their logs
// become durable together.
const atOnce = 64

// passivation looks for agents that have been idle for long. It has a timer only
// while there are some that may become so.
type passivation struct {
	rt    *Runtime
	after time.Duration   // negative for never
	ctx   context.Context //nolint:containedctx // ends with the runtime.
	end   context.CancelFunc

	mu      sync.Mutex
	timer   *time.Timer
	due     time.Time // of the timer
	closed  bool
	looking sync.WaitGroup
}

func (p *passivation) init(rt *Runtime, after time.Duration) {
	if after == 0 {
		after = defaultPassivateAfter
	}
	p.rt, p.after = rt, after
	p.ctx, p.end = context.WithCancel(context.Background())
}

// arm sees to it that the agents are looked at when one that is idle from now on
// has been so for long enough.
func (p *passivation) arm() { p.armFor(p.after) }

func (p *passivation) armFor(wait time.Duration) {
	if p.after < 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	due := time.Now().Add(wait)
	switch {
	case p.closed:
	case p.timer == nil:
		p.timer, p.due = time.AfterFunc(wait, p.look), due
	case due.Before(p.due) && p.timer.Stop(): // who was looked at is due before who has just come to rest
		p.timer.Reset(wait)
		p.due = due
	}
}

// close ends the looking and waits for it.
func (p *passivation) close() {
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.end()
	p.looking.Wait()
}

// look passivates the agents that have been idle for long. One that is not ready
// for it is looked at again when it next comes to rest.
func (p *passivation) look() {
	p.mu.Lock()
	p.timer = nil
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.looking.Add(1)
	p.mu.Unlock()
	defer p.looking.Done()
	now, soonest := time.Now(), time.Duration(-1)
	var some sync.WaitGroup
	var failed atomic.Bool
	slots := make(chan struct{}, atOnce)
	for _, a := range p.rt.Agents() {
		l := a.life.Load()
		if l == nil || a.child != nil {
			continue
		}
		since, idle := l.handle.IdleSince()
		if !idle {
			continue
		}
		if left := p.after - now.Sub(since); left > 0 {
			if soonest < 0 || left < soonest {
				soonest = left
			}
			continue
		}
		slots <- struct{}{}
		some.Go(func() {
			defer func() { <-slots }()
			if err := a.Passivate(p.ctx); err != nil && !errors.Is(err, ErrBusy) && !errors.Is(err, ErrDisposed) {
				p.rt.opts.Logger.Warn("agent stays in memory", zap.String("agent", string(a.id)), zap.Error(err))
				failed.Store(true) // it is at rest, so that nothing else would look again
			}
		})
	}
	some.Wait()
	if failed.Load() && soonest < 0 {
		soonest = p.after
	}
	if soonest >= 0 {
		p.armFor(soonest)
	}
}

// Passivate makes the agent give its memory back at once, if it is idle, nobody
// follows it and none of its children works; else it returns [ErrBusy]. An agent
// that somebody else made as a child stays. The next call to the agent brings it
// back; until then its session may be opened by somebody else, and calls fail
// with [ErrInUse] as long as it is.
func (a *Agent) Passivate(ctx context.Context) error {
	if err := a.turning.take(ctx); err != nil {
		return err
	}
	defer a.turning.let()
	l := a.life.Load()
	switch {
	case a.disposed:
		return ErrDisposed
	case l == nil:
		return nil
	case a.child != nil || a.followers.Load() > 0 || l.failed():
		return ErrBusy
	}
	synced := make(chan session.Synced, 1)
	a.rt.system.Root.Send(l.session, session.Sync{Reply: synced})
	durable, err := await(ctx, a, l, synced)
	if err != nil {
		return err
	}
	if durable.Err != nil {
		return durable.Err // nothing is given up that is only in memory
	}
	reply := make(chan agent.Passivated, 1)
	l.handle.Send(agent.Passivate{Next: durable.Next, Reply: reply})
	// The agent answers at once, and once it has agreed there is no way back.
	answer, err := await(context.WithoutCancel(ctx), a, l, reply)
	if err != nil {
		return err
	}
	if !answer.OK {
		return ErrBusy
	}
	<-l.handle.Gone()
	<-l.sessionGone
	a.slept, a.requested, a.pending = durable.Next, answer.Requested, answer.Pending
	a.life.Store(nil)
	return l.handle.Closed()
}

// Passive reports whether the agent is passivated.
func (a *Agent) Passive() bool {
	l := a.life.Load()
	return l == nil || l.handle.Rested()
}
