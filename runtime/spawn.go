package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// Spawn makes a child that begins with an empty history. It waits for its first
// message. Ctx is about the making only.
func (a *Agent) Spawn(ctx context.Context, spec ChildSpec) (*Child, error) {
	spec.Fork = false
	return a.delegate(ctx, spec)
}

// Fork makes a child that begins with the agent's history through its last
// completed turn; where there is none yet, it begins with nothing.
func (a *Agent) Fork(ctx context.Context, spec ChildSpec) (*Child, error) {
	spec.Fork = true
	return a.delegate(ctx, spec)
}

// delegate makes a child on a new session.
func (a *Agent) delegate(ctx context.Context, spec ChildSpec) (*Child, error) {
	if err := spec.Check(); err != nil {
		return nil, fmt.Errorf("runtime: child: %w", err)
	}
	if name := a.rt.opts.Delegation.NewID; spec.ID == "" && name != nil {
		spec.ID = name()
	} else if spec.ID == "" {
		spec.ID = dsh.SessionID(uuid.NewString())
	}
	var seed []dsh.Event
	if spec.Fork {
		var err error
		if seed, err = a.completed(ctx); err != nil {
			return nil, fmt.Errorf("runtime: fork of %s: %w", a.id, err)
		}
	}
	c := newChild(a, spec)
	own := a.childSpec(spec)
	return a.bear(ctx, c, own, spec.MaxDepth, hook.Startup, func(s Spec) (session.Log, []dsh.Event, error) {
		header := dsh.SessionHeader{
			Version: dsh.FormatVersion, ID: s.Session, CreatedAt: time.Now().UnixMilli(), CWD: s.CWD,
			ParentSession: a.session, Origin: "subagent", DelegationDepth: a.depth + 1,
			SeedLength: length(seed), HasSeed: len(seed) > 0,
		}
		log, err := a.rt.opts.Store.Create(ctx, header)
		if err != nil {
			return nil, nil, err
		}
		events := c.begin(seed)
		if len(events) == 0 {
			return log, nil, nil
		}
		return log, events, session.Extend(ctx, log, events)
	})
}

// bear makes the agent of a child, if the limits leave room for it.
func (a *Agent) bear(
	ctx context.Context, c *Child, spec Spec, maxDepth *int, source hook.Source,
	load func(Spec) (session.Log, []dsh.Event, error),
) (*Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, delegation.Errorf(delegation.CodeCancelled, "cancelled before the sub-agent existed: %w", err)
	}
	c.Agent = &Agent{rt: a.rt, parent: a, child: c, root: a.root, depth: a.depth + 1}
	if err := a.admit(c, maxDepth); err != nil {
		return nil, err
	}
	if _, err := a.rt.open(ctx, "child", c.Agent, spec, source, load); err != nil {
		c.release(dsh.Usage{})
		c.conclude()
		c.leave()
		if errors.Is(err, session.ErrExists) || errors.Is(err, ErrExists) {
			err = delegation.Errorf(delegation.CodeDuplicate, "%w", err)
		}
		return nil, err
	}
	if c.mine.Load() {
		err := delegation.Errorf(delegation.CodeCancelled, "%s was cancelled while its sub-agent was made", a.id)
		return nil, errors.Join(err, c.Dispose(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// completed returns the agent's events through the end of its last turn.
func (a *Agent) completed(ctx context.Context) ([]dsh.Event, error) {
	events, err := a.packed(ctx)
	if err != nil {
		return nil, err
	}
	for i := len(events) - 1; i >= 0; i-- {
		if _, ends := events[i].Data.(dsh.TurnEnd); ends {
			return events[: i+1 : i+1], nil
		}
	}
	return nil, nil
}

// begin returns what the child's log holds before its first life: the seed and,
// unless it is to come later, the descriptor.
func (c *Child) begin(seed []dsh.Event) []dsh.Event {
	if c.spec.LateDescriptor && !c.spec.Background {
		return seed
	}
	events := seed[:len(seed):len(seed)]
	now := time.Now().UnixMilli()
	if len(events) > 0 {
		events = append(events, dsh.Event{Seq: length(events), Time: now, Data: dsh.EndSeed{}})
	}
	return append(events, dsh.Event{Seq: length(events), Time: now, Data: c.descriptor().Fact()})
}

// descriptor returns what is stored of the child.
func (c *Child) descriptor() delegation.Descriptor {
	d := delegation.Descriptor{Mode: delegation.OneShot, Transport: c.spec.Transport(), Label: c.spec.Label}
	if !c.spec.Background {
		return d
	}
	own := c.owner.childSpec(c.spec)
	d.Mode, d.Provider, d.Model, d.Persona = delegation.Continuable, own.Provider, own.Model, c.spec.Persona
	if !c.spec.Filter.IsZero() {
		filter := c.spec.Filter
		d.Filter = &filter
	}
	return d
}

// childSpec returns what a child is as an agent: its parent's options, changed
// by its own. What only the parent has is not inherited.
func (a *Agent) childSpec(s delegation.Spec) Spec {
	call, p := a.base.call, a.base.call.Parameters
	spec := Spec{
		ID: dsh.AgentID(s.ID), Session: s.ID, CWD: a.base.prompt.CWD, System: a.base.prompt.System,
		Provider: call.Provider, Model: call.Model, ReasoningEffort: call.ReasoningEffort,
		Temperature: call.Temperature, MaxTokens: call.MaxTokens, Stop: call.Stop,
		TopP: p.TopP, Seed: p.Seed, Logprobs: p.Logprobs, TopLogprobs: p.TopLogprobs, body: p.Body,
		ExtraHeaders: a.base.headers, MaxParallelToolCalls: a.base.parallel,
		Tools: s.Tools, Hooks: s.Hooks, Sections: s.Sections,
		Context: []hook.Section{{
			Name: delegation.ContextName, Text: delegation.ContextText, Order: delegation.ContextOrder,
		}},
		filter: s.Filter,
	}
	override(&spec.Provider, s.Provider)
	override(&spec.Model, s.Model)
	override(&spec.ReasoningEffort, s.ReasoningEffort)
	override(&spec.System, s.Persona)
	if s.MaxTokens != 0 {
		spec.MaxTokens = s.MaxTokens
	}
	if s.LateDescriptor && !s.Background {
		d := delegation.Descriptor{Mode: delegation.OneShot, Transport: s.Transport(), Label: s.Label}
		spec.Hooks = append([]any{&lateDescriptor{fact: d.Fact()}}, spec.Hooks...)
	}
	return spec
}

func override(field *string, by string) {
	if by != "" {
		*field = by
	}
}

// lateDescriptor logs a child's descriptor once its first step is let in.
type lateDescriptor struct {
	fact   dsh.Fact
	logged bool // steps are asked about one at a time
}

// PreStep logs the descriptor behind everyone else's consent.
func (l *lateDescriptor) PreStep(ctx context.Context, s hook.Step, next hook.PreStepFunc) (hook.Decision, error) {
	d, err := next(ctx, s)
	if err == nil && !d.Reject && !l.logged {
		l.logged = true
		_, err = s.Agent.Append(ctx, l.fact, dsh.SurfaceOp{}, nil)
	}
	return d, err
}
