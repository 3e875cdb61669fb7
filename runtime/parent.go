package runtime

import (
	"context"
	"errors"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// self is an agent as its hooks and tools have it: what they may do with it and
// with its children.
type self struct {
	*agent.Handle
	a *Agent
}

var (
	_ hook.Agent        = (*self)(nil)
	_ delegation.Parent = (*self)(nil)
)

func (a *Agent) face(h *agent.Handle) hook.Agent { return &self{Handle: h, a: a} }

// initiator returns who the agent acts for.
func (a *Agent) initiator() dsh.Initiator {
	i := dsh.Initiator{Agent: a.id, Session: a.session, Root: a.root, Depth: a.depth}
	if a.parent != nil {
		i.Parent = a.parent.id
	}
	return i
}

func (a *Agent) as(ctx context.Context, l *life) context.Context {
	return hook.WithAgent(dsh.WithInitiator(ctx, a.initiator()), a.face(l.handle))
}

// Initiator returns who the agent is in its tree.
func (a *Agent) Initiator() dsh.Initiator { return a.initiator() }

// As runs a function as an agent: its context names the agent as the initiator,
// as that of a tool of the agent does.
func As(ctx context.Context, a *Agent, run func(ctx context.Context) error) error {
	l, err := a.alive(ctx)
	if err != nil {
		return err
	}
	return run(a.as(ctx, l))
}

// Outside runs a function on nobody's behalf: its context names no agent.
func Outside(ctx context.Context, run func(ctx context.Context) error) error {
	return run(hook.Outside(ctx))
}

// Of returns the agent on whose behalf code runs; ok is false outside any.
func Of(ctx context.Context) (a *Agent, ok bool) {
	h, _ := hook.AgentFrom(ctx)
	s, ok := h.(*self)
	if !ok {
		return nil, false
	}
	return s.a, true
}

// ID returns the agent's ID.
func (s *self) ID() dsh.AgentID { return s.a.id }

// Session returns the ID of the agent's session.
func (s *self) Session() dsh.SessionID { return s.a.session }

// Initiator returns who the agent acts for.
func (s *self) Initiator() dsh.Initiator { return s.a.initiator() }

// try asks the life that the handle speaks to, or else the agent: a hook may keep
// what it was given for longer than the agent stayed in memory.
func (s *self) try(life, later func() error) error {
	if s.Handle == nil {
		return later()
	}
	if err := life(); !errors.Is(err, agent.ErrGone) || !s.Rested() {
		return err
	}
	return later()
}

// Followup queues a message for a turn of its own.
func (s *self) Followup(ctx context.Context, m *dsh.Message) error {
	return s.try(func() error { return s.Handle.Followup(ctx, m) }, func() error { return s.a.Followup(ctx, m) })
}

// Steer queues a message for the nearest step and wakes the agent.
func (s *self) Steer(ctx context.Context, m *dsh.Message) error {
	return s.try(func() error { return s.Handle.Steer(ctx, m) }, func() error { return s.a.Steer(ctx, m) })
}

// Inject queues a message for the nearest step.
func (s *self) Inject(ctx context.Context, m *dsh.Message) error {
	return s.try(func() error { return s.Handle.Inject(ctx, m) }, func() error { return s.a.Inject(ctx, m) })
}

// Cancel aborts what runs.
func (s *self) Cancel(ctx context.Context, cause dsh.Cause, keepInbox bool) error {
	return s.try(func() error { return s.Handle.Cancel(ctx, cause, keepInbox) },
		func() error { return s.a.Cancel(ctx, cause, keepInbox) })
}

// Append logs a fact.
func (s *self) Append(ctx context.Context, fact dsh.Fact, op dsh.SurfaceOp, sources *dsh.Sources) (seq dsh.Seq, err error) {
	by := func(appends func(context.Context, dsh.Fact, dsh.SurfaceOp, *dsh.Sources) (dsh.Seq, error)) func() error {
		return func() (err error) {
			seq, err = appends(ctx, fact, op, sources)
			return err
		}
	}
	if s.Handle == nil {
		return s.a.Append(ctx, fact, op, sources)
	}
	err = s.try(by(s.Handle.Append), by(s.a.Append))
	return seq, err
}

// Delegate makes a child.
func (s *self) Delegate(ctx context.Context, spec delegation.Spec) (delegation.Child, error) {
	c, err := s.a.delegate(ctx, spec)
	if err != nil {
		return nil, err // not a nil *Child in an interface
	}
	return c, nil
}

// Message gives a background child a turn.
func (s *self) Message(ctx context.Context, id dsh.SessionID, m *dsh.Message, gear delegation.Gear) error {
	return s.a.Message(ctx, id, m, gear)
}

// Interrupt cancels the turn of a descendant.
func (s *self) Interrupt(ctx context.Context, id dsh.SessionID) error {
	return s.a.InterruptChild(ctx, id)
}

// Report hands a message to the agent's parent.
func (s *self) Report(ctx context.Context, m *dsh.Message, quiet bool) (dsh.MessageID, error) {
	return s.a.Report(ctx, m, quiet)
}

// Children lists children.
func (s *self) Children(ctx context.Context, deep bool) ([]delegation.Entry, error) {
	return s.a.Children(ctx, deep)
}

// Message gives a background child of the agent a turn of its own. A child that
// has settled lives again, on its log and with this gear. When Message returns
// nil the message is durable.
func (a *Agent) Message(ctx context.Context, id dsh.SessionID, m *dsh.Message, gear delegation.Gear) error {
	m = agent.Named(m)
	for {
		live := a.rt.live(id)
		if live == nil {
			waited, over := a.rt.revival(id, true)
			if waited {
				continue // somebody else brought it back
			}
			err := a.revive(ctx, id, m, gear)
			over()
			if errors.Is(err, session.ErrInUse) && a.rt.live(id) != nil {
				continue
			}
			return err
		}
		c := live.child
		switch {
		case c == nil || live.parentSession() != a.session:
			return notYours(id)
		case !c.spec.Background:
			return notContinuable(id)
		}
		err := c.Followup(ctx, m)
		if !errors.Is(err, ErrDisposed) && !errors.Is(err, agent.ErrGone) {
			return err
		}
		if err := c.waitGone(ctx); err != nil { // it is just settling
			return err
		}
	}
}

func notYours(id dsh.SessionID) error {
	return delegation.Errorf(delegation.CodeUnauthorized, "%s is not a sub-agent of this agent", id)
}

func notContinuable(id dsh.SessionID) error {
	return delegation.Errorf(delegation.CodeNotResumable, "%s is a one-shot sub-agent; it takes no more messages, start a new one", id)
}

// parentSession returns the session of the agent that asked for this one.
func (a *Agent) parentSession() dsh.SessionID { return a.life.Load().log.Header().ParentSession }

// revive resumes a background child that has settled and gives it a message.
func (a *Agent) revive(ctx context.Context, id dsh.SessionID, m *dsh.Message, gear delegation.Gear) error {
	spec, log, events, err := a.settledChild(ctx, id)
	if err != nil {
		return err
	}
	spec.Gear = gear
	c := newChild(a, spec)
	taken := false
	_, err = a.bear(ctx, c, a.revivedSpec(spec), nil, hook.Resume, func(Spec) (session.Log, []dsh.Event, error) {
		taken = true
		return log, events, nil
	})
	if err != nil {
		if !taken {
			err = errors.Join(err, log.Close())
		}
		return err
	}
	if err := c.Begin(ctx, m); err != nil {
		return errors.Join(err, c.Dispose(context.WithoutCancel(ctx)))
	}
	return nil
}

// revivedSpec returns what a child is that lives again: its descriptor decides,
// not what its parent is by now.
func (a *Agent) revivedSpec(s delegation.Spec) Spec {
	spec := a.childSpec(s)
	spec.MaxTokens, spec.ReasoningEffort, spec.Temperature, spec.Stop = 0, "", nil, nil
	return spec
}

// settledChild opens the log of a background child and reads what it is.
func (a *Agent) settledChild(
	ctx context.Context, id dsh.SessionID,
) (spec delegation.Spec, log session.Log, events []dsh.Event, err error) {
	log, err = a.rt.openLog(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		err = delegation.Errorf(delegation.CodeNotResumable, "there is no sub-agent %s", id)
	}
	if err != nil {
		return spec, nil, nil, err
	}
	opened := log
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	header := log.Header()
	if header.Origin != "subagent" || header.ParentSession != a.session {
		return spec, nil, nil, notYours(id)
	}
	if events, err = log.Read(ctx, 0, 0); err != nil {
		return spec, nil, nil, err
	}
	d, ok, err := delegation.ReadDescriptor(events, header.SeedLength)
	switch {
	case err != nil:
		return spec, nil, nil, delegation.Errorf(delegation.CodeNotResumable, "sub-agent %s: %w", id, err)
	case !ok || d.Mode != delegation.Continuable:
		return spec, nil, nil, notContinuable(id)
	}
	spec = delegation.Spec{
		ID: id, Label: d.Label, Background: true, Fork: d.Transport == delegation.ByFork,
		Provider: d.Provider, Model: d.Model, Persona: d.Persona,
	}
	if d.Filter != nil {
		spec.Filter = *d.Filter
	}
	return spec, log, events, nil
}

// InterruptChild cancels the turn of a descendant and keeps its inbox. Where
// there is no turn to cancel nothing happens.
func (a *Agent) InterruptChild(ctx context.Context, id dsh.SessionID) error {
	live := a.rt.live(id)
	if live == nil {
		return nil
	}
	for up := live.parent; up != nil; up = up.parent {
		if up == a {
			err := live.Cancel(ctx, dsh.Cause{Kind: dsh.CauseParent}, KeepInbox)
			if errors.Is(err, ErrDisposed) || errors.Is(err, agent.ErrGone) {
				return nil // it was faster
			}
			return err
		}
	}
	return notYours(id)
}

// Report hands a message to the agent's live parent: into its next step, which
// wakes it, or, if quiet, with whatever wakes it next.
func (a *Agent) Report(ctx context.Context, m *dsh.Message, quiet bool) (dsh.MessageID, error) {
	unavailable := delegation.Errorf(delegation.CodeParentGone, "the agent that asked for this one is not there any more")
	if a.child == nil {
		return "", unavailable
	}
	parent := a.rt.live(a.parentSession())
	if parent == nil {
		return "", unavailable
	}
	m = agent.Named(m)
	command := Steer(m)
	if quiet {
		command = Inject(m)
	}
	err := parent.Do(ctx, command)
	if errors.Is(err, ErrDisposed) || errors.Is(err, agent.ErrGone) {
		return "", unavailable
	}
	return m.ID, err
}
