package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

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
	return rt.open(ctx, "create", &Agent{rt: rt}, spec, hook.Startup, func(s Spec) (session.Log, []dsh.Event, error) {
		log, err := rt.opts.Store.Create(ctx, dsh.SessionHeader{
			Version: dsh.FormatVersion, ID: s.Session, CreatedAt: time.Now().UnixMilli(), CWD: s.CWD,
		})
		return log, nil, err
	})
}

// Resume makes an agent on a stored session: turns are numbered on, pending
// input waits for the next that wakes, and a turn that was open when the
// session was last written is closed as interrupted. So are those of its
// children, and theirs; the agent finds in its inbox how background children
// settled that it was not told of. A spec without a working directory has the
// session's; one without provider and model has those of the session's last
// request, with its parameters.
func (rt *Runtime) Resume(ctx context.Context, id dsh.SessionID, spec Spec) (*Agent, error) {
	spec.Session = id
	a := &Agent{rt: rt}
	return rt.open(ctx, "resume", a, spec, hook.Resume, func(Spec) (session.Log, []dsh.Event, error) {
		log, err := rt.openLog(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		events, err := log.Read(ctx, 0, 0)
		if err == nil {
			a.loaded = length(events)
			events, err = rt.catchUp(ctx, log, events)
		}
		return log, events, err
	})
}

// Fork makes an agent on a new session that starts with the first boundary
// events of another one ([End] for all of them), which goes on undisturbed, also
// in another process if the store is a [session.Viewer]: then what is written so
// far is all that there is. The boundary must not lie inside a turn. Pending
// input is not taken along. What the spec leaves out is the other session's, as
// in [Runtime.Resume].
func (rt *Runtime) Fork(ctx context.Context, from dsh.SessionID, boundary dsh.Seq, spec Spec) (*Agent, error) {
	return rt.open(ctx, "fork", &Agent{rt: rt}, spec, hook.Startup, func(s Spec) (session.Log, []dsh.Event, error) {
		source, events, err := rt.seed(ctx, from, boundary)
		if err != nil {
			return nil, nil, err
		}
		header := dsh.SessionHeader{
			Version: dsh.FormatVersion, ID: s.Session, CreatedAt: time.Now().UnixMilli(), CWD: cmp.Or(s.CWD, source.CWD),
			ParentSession: from, SeedLength: length(events), HasSeed: true,
		}
		log, err := rt.opts.Store.Create(ctx, header)
		if err != nil {
			return nil, nil, err
		}
		return log, events, session.Extend(ctx, log, events)
	})
}

// seed reads the prefix of a session, live or stored.
func (rt *Runtime) seed(ctx context.Context, from dsh.SessionID, boundary dsh.Seq) (dsh.SessionHeader, []dsh.Event, error) {
	header, events, err := rt.readAll(ctx, from)
	if err != nil {
		return header, nil, err
	}
	if boundary == End {
		boundary = length(events)
	}
	if err := dsh.CheckFork(events, boundary); err != nil {
		return header, nil, err
	}
	return header, dsh.Cut(events, boundary), nil
}

func (rt *Runtime) readAll(ctx context.Context, id dsh.SessionID) (dsh.SessionHeader, []dsh.Event, error) {
	for {
		if a := rt.live(id); a != nil {
			return a.stored(ctx)
		}
		header, events, err := rt.look(ctx, id)
		if errors.Is(err, session.ErrInUse) {
			if waited, _ := rt.revival(id, false); waited || rt.live(id) != nil {
				continue
			}
		}
		return header, events, err
	}
}

// look reads a stored log that no agent has open; where the store lets it, also
// one that somebody else has.
func (rt *Runtime) look(ctx context.Context, id dsh.SessionID) (h dsh.SessionHeader, events []dsh.Event, err error) {
	if v, ok := rt.opts.Store.(session.Viewer); ok {
		log, err := v.View(ctx, id)
		if err != nil {
			return h, nil, err
		}
		events, err = log.Read(ctx, 0, 0)
		return log.Header(), events, err
	}
	err = rt.briefly(ctx, id, func(log session.Log) (err error) {
		h = log.Header()
		events, err = log.Read(ctx, 0, 0)
		return err
	})
	return h, events, err
}

// length returns how many sequence numbers events take.
func length(events []dsh.Event) dsh.Seq {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].Last() + 1
}

// open makes a, which knows its place in the tree, on the log that load gives.
func (rt *Runtime) open(
	ctx context.Context, what string, a *Agent, spec Spec, source hook.Source,
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
	a.gear, a.id, a.session = g, spec.ID, spec.Session
	if a.root == "" {
		a.root = a.id
	}
	if err := a.begin(ctx, spec, source, load); err != nil {
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
	ctx context.Context, spec Spec, source hook.Source, load func(Spec) (session.Log, []dsh.Event, error),
) error {
	log, events, err := load(spec)
	if err == nil {
		if source != hook.Resume {
			a.loaded = length(events)
		}
		if a.child == nil {
			spec.inherit(log.Header(), events)
		}
		a.base = spec.base()
		err = a.start(ctx, source, log, events)
	}
	if err != nil {
		if log != nil {
			_ = log.Close()
		}
		return err
	}
	if run := a.gear.hooks.SessionStart; run != nil {
		l := a.life.Load()
		if err := run(a.as(ctx, l), a.face(l.handle), source); err != nil {
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
		if err := session.Extend(ctx, log, closers); err != nil {
			return err
		}
		events = append(events[:len(events):len(events)], closers...)
	}
	machine, err := loop.Restore(a.machine(), events, log.Header().SeedLength)
	if err != nil {
		return err
	}
	if depth := log.Header().DelegationDepth; depth > a.depth { // of a child that is resumed for itself, once
		a.depth = depth
	}
	if a.child != nil {
		a.child.first, a.child.began = length(events), beginning(events)
		if adopt := a.rt.opts.Delegation.Adopt; adopt != nil {
			a.base.observer = adopt(a.child, log.Header(), events)
		}
	}
	gone := make(chan struct{})
	l := &life{rt: a.rt, log: log, sessionGone: gone, link: &link{}}
	l.session = session.Spawn(a.rt.system.Root, a.rt.props.session, session.Config{
		Log: log, Volatile: a.rt.opts.Store.Volatile(), Loaded: events, Gone: gone, Logger: a.rt.opts.Logger,
		Failed: l.link.broke, Run: a.rt.write,
	})
	a.spawn(l, source, machine)
	return nil
}

// machine returns the configuration of the agent's loop.
func (a *Agent) machine() loop.Config {
	return loop.Config{
		Session: a.session, Call: &a.base.call, MaxParallelCalls: a.base.parallel,
		Volatile: a.rt.opts.Store.Volatile(), Children: true, Requested: a.requested,
	}
}

// spawn starts the agent's actor in l and makes l the agent's life.
func (a *Agent) spawn(l *life, source hook.Source, machine *loop.Machine) {
	cfg := &agent.Config{
		Shared: &a.rt.shared, Initiator: a.initiator(), Machine: machine, Source: source, Session: l.session,
		Tools: a.gear.tools, Hooks: a.gear.hooks, Prompt: &a.base.prompt,
		Face: a.face, Kin: (*family)(a), Observer: a.base.observer,
	}
	if c := a.child; c != nil {
		begun := make(chan struct{})
		defer close(begun)
		cfg.Stopped = func() {
			go func() {
				<-begun // it may break before anybody knows it
				c.finish(l)
			}()
		}
	}
	l.handle = agent.Spawn(a.rt.system.Root, a.rt.props.agent, cfg, l.sessionGone)
	l.link.own(l.handle)
	a.life.Store(l)
}

// reopen gives an agent that failed or is passive a new life on its log.
// Whatever turn was open is closed as interrupted.
func (a *Agent) reopen(ctx context.Context) (*life, error) {
	if err := a.turning.take(ctx); err != nil {
		return nil, err
	}
	defer a.turning.let()
	old := a.life.Load()
	if a.disposed {
		return nil, ErrDisposed
	}
	if old == nil {
		err := a.wake(ctx)
		return a.life.Load(), err
	}
	if !old.failed() {
		return old, nil // somebody else was here first
	}
	if old.link.failure() != nil {
		select {
		case <-old.sessionGone:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case <-old.sessionGone:
		err := a.load(ctx, hook.Resume)
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
	next := &life{rt: old.rt, log: old.log, session: old.session, sessionGone: old.sessionGone, link: old.link}
	a.spawn(next, hook.Resume, machine)
	return next, nil
}

// wake brings a passive agent back; the caller holds the latch.
func (a *Agent) wake(ctx context.Context) error {
	const goesOn = hook.Source("")
	if err := a.load(ctx, goesOn); err != nil {
		return err
	}
	a.requested = false
	a.rt.found(a)
	return nil
}

// load starts a life on the stored log.
func (a *Agent) load(ctx context.Context, source hook.Source) error {
	log, err := a.rt.openLog(ctx, a.session)
	if err != nil {
		return err
	}
	events, err := log.Read(ctx, 0, 0)
	if err == nil {
		a.requested = a.requested && !requestedSince(events, a.slept)
		err = a.start(ctx, source, log, events)
	}
	if err != nil {
		_ = log.Close()
	}
	return err
}

// requestedSince reports whether somebody sent a request behind the first n
// events.
func requestedSince(events []dsh.Event, n dsh.Seq) bool {
	for i := len(events) - 1; i >= 0 && events[i].Seq >= n; i-- {
		if _, ok := events[i].Data.(dsh.RequestHeader); ok {
			return true
		}
	}
	return false
}
