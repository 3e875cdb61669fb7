package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
)

// End is the fork boundary behind everything that a session holds.
const End dsh.Seq = math.MaxInt64

// Create makes an agent on a new session. The session-start hooks have run
// when it returns.
func (rt *Runtime) Create(ctx context.Context, spec Spec) (*Agent, error) {
	return rt.open(ctx, "create", spec, hook.Startup, func(s Spec) (session.Log, []dsh.Event, error) {
		log, err := rt.opts.Store.Create(ctx, dsh.SessionHeader{
			Version: dsh.FormatVersion, ID: s.Session, CreatedAt: time.Now().UnixMilli(), CWD: s.CWD,
		})
		return log, nil, err
	})
}

// Resume makes an agent on a stored session: turns are numbered on, pending
// input waits for the next that wakes, and a turn that was open when the
// session was last written is closed as interrupted.
func (rt *Runtime) Resume(ctx context.Context, id dsh.SessionID, spec Spec) (*Agent, error) {
	spec.Session = id
	return rt.open(ctx, "resume", spec, hook.Resume, func(Spec) (session.Log, []dsh.Event, error) {
		log, err := rt.opts.Store.Open(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		events, err := log.Read(ctx, 0, 0)
		return log, events, err
	})
}

// Fork makes an agent on a new session that starts with the first boundary
// events of another one ([End] for all of them), which goes on undisturbed.
// The boundary must not lie inside a turn. Pending input is not taken along.
func (rt *Runtime) Fork(ctx context.Context, from dsh.SessionID, boundary dsh.Seq, spec Spec) (*Agent, error) {
	return rt.open(ctx, "fork", spec, hook.Startup, func(s Spec) (session.Log, []dsh.Event, error) {
		events, err := rt.seed(ctx, from, boundary)
		if err != nil {
			return nil, nil, err
		}
		header := dsh.SessionHeader{
			Version: dsh.FormatVersion, ID: s.Session, CreatedAt: time.Now().UnixMilli(), CWD: s.CWD,
			ParentSession: from, SeedLength: length(events), HasSeed: true,
		}
		log, err := rt.opts.Store.Create(ctx, header)
		if err != nil {
			return nil, nil, err
		}
		return log, events, log.Append(ctx, events)
	})
}

// seed reads the prefix of a session, live or stored.
func (rt *Runtime) seed(ctx context.Context, from dsh.SessionID, boundary dsh.Seq) ([]dsh.Event, error) {
	events, err := rt.readAll(ctx, from)
	if err != nil {
		return nil, err
	}
	if boundary == End {
		boundary = length(events)
	}
	if err := dsh.CheckFork(events, boundary); err != nil {
		return nil, err
	}
	return dsh.Cut(events, boundary), nil
}

func (rt *Runtime) readAll(ctx context.Context, id dsh.SessionID) ([]dsh.Event, error) {
	for _, a := range rt.Agents() {
		if a.session == id {
			return a.life.Load().packed(ctx)
		}
	}
	log, err := rt.opts.Store.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	events, err := log.Read(ctx, 0, 0)
	if cerr := log.Close(); err == nil {
		err = cerr
	}
	return events, err
}

// length returns how many sequence numbers events take.
func length(events []dsh.Event) dsh.Seq {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].Last() + 1
}

// open makes an agent on the log that load gives.
func (rt *Runtime) open(
	ctx context.Context, what string, spec Spec, source hook.Source,
	load func(Spec) (session.Log, []dsh.Event, error),
) (_ *Agent, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("runtime: %s: %w", what, err)
		}
	}()
	spec, err = spec.withDefaults()
	if err != nil {
		return nil, err
	}
	g, err := rt.gear(spec)
	if err != nil {
		return nil, err
	}
	if err := rt.reserve(spec.ID); err != nil {
		return nil, err
	}
	a := &Agent{rt: rt, spec: spec, gear: g, id: spec.ID, session: spec.Session}
	if err := a.begin(ctx, source, load); err != nil {
		_ = rt.settle(spec.ID, nil)
		return nil, err
	}
	if err := rt.settle(spec.ID, a); err != nil {
		_ = a.dispose(ctx, true)
		return nil, err
	}
	return a, nil
}

// begin starts an agent's first life and runs its session-start hooks.
func (a *Agent) begin(
	ctx context.Context, source hook.Source, load func(Spec) (session.Log, []dsh.Event, error),
) error {
	log, events, err := load(a.spec)
	if err == nil {
		err = a.start(ctx, source, log, events)
	}
	if err != nil {
		if log != nil {
			_ = log.Close()
		}
		return err
	}
	if run := a.gear.hooks.SessionStart; run != nil {
		if err := run(ctx, a.life.Load().handle, source); err != nil {
			return fmt.Errorf("session-start: %w", errors.Join(err, a.dispose(ctx, true)))
		}
	}
	return nil
}

// start spawns the actors of a life on a log that holds events.
func (a *Agent) start(ctx context.Context, source hook.Source, log session.Log, events []dsh.Event) error {
	for i := range events {
		if err := dsh.CheckKnown(&events[i]); err != nil {
			return err
		}
	}
	if closers := dsh.Closers(events); len(closers) > 0 {
		if err := log.Append(ctx, closers); err != nil {
			return err
		}
		events = append(events[:len(events):len(events)], closers...)
	}
	machine, err := loop.Restore(a.machine(), events, log.Header().SeedLength)
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	l := &life{rt: a.rt, log: log, sessionGone: gone}
	l.session = a.rt.system.Root.Spawn(session.Props(session.Config{
		Log: log, Volatile: a.rt.opts.Store.Volatile(), Loaded: events, Gone: gone, Logger: a.rt.opts.Logger,
		Owner: func() *actor.PID { return l.handle.PID() },
	}, a.rt.workers.Inline()))
	a.spawn(l, source, machine)
	return nil
}

// machine returns the configuration of the agent's loop.
func (a *Agent) machine() loop.Config {
	return loop.Config{
		Session: a.session, Call: a.spec.call(), MaxParallelCalls: a.spec.MaxParallelToolCalls,
		Volatile: a.rt.opts.Store.Volatile(),
	}
}

// spawn starts the agent's actor in l and makes l the agent's life.
func (a *Agent) spawn(l *life, source hook.Source, machine *loop.Machine) {
	l.handle = agent.Spawn(a.rt.system, &agent.Config{
		Initiator: dsh.Initiator{Agent: a.id, Session: a.session, Root: a.id},
		Machine:   machine, Source: source, Session: l.session, Pool: a.rt.pool,
		Streams:   a.rt.streams,
		Providers: a.rt.provider, Tools: a.gear.tools, Hooks: a.gear.hooks,
		System: a.spec.System, CWD: a.spec.CWD, Observer: a.spec.Observer, Logger: a.rt.opts.Logger,
	}, l.sessionGone, a.rt.workers.Mailbox())
	a.life.Store(l)
}

// reopen gives an agent that failed a new life on its log. Whatever turn was
// open is closed as interrupted.
func (a *Agent) reopen(ctx context.Context) (*life, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.life.Load()
	if a.disposed {
		return nil, ErrDisposed
	}
	if !old.failed() {
		return old, nil // somebody else was here first
	}
	select {
	case <-old.sessionGone:
		log, err := a.rt.opts.Store.Open(ctx, a.session)
		if err != nil {
			return nil, err
		}
		events, err := log.Read(ctx, 0, 0)
		if err == nil {
			err = a.start(ctx, hook.Resume, log, events)
		}
		if err != nil {
			_ = log.Close()
		}
		return a.life.Load(), err
	default:
	}
	events, err := old.packed(ctx)
	if err != nil {
		return nil, err
	}
	closers := dsh.Closers(events)
	if len(closers) > 0 {
		a.rt.system.Root.Send(old.session, session.Append{Events: closers})
		events = append(events[:len(events):len(events)], closers...)
	}
	machine, err := loop.Restore(a.machine(), events, old.log.Header().SeedLength)
	if err != nil {
		return nil, err
	}
	next := &life{rt: old.rt, log: old.log, session: old.session, sessionGone: old.sessionGone}
	a.spawn(next, hook.Resume, machine)
	return next, nil
}
