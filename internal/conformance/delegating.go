package conformance

import (
	"context"
	"errors"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/toolset/subagent"
)

// delegation performs an action about children, by the API that Go programs
// have. It returns false if the action is none.
func (d *driver) delegation(s *subject, a *Action) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch {
	case a.StartRun != nil:
		d.service("startRun", a.StartRun.As, func(ctx context.Context) (any, error) { return startRun(ctx, s, a.StartRun) })
	case a.StartContinuable != nil:
		d.service("startContinuable", a.StartContinuable.As, func(ctx context.Context) (any, error) {
			return startContinuable(ctx, s, a.StartContinuable)
		})
	case a.FollowupChild != nil:
		f := a.FollowupChild
		d.service("followupChild", f.As, func(ctx context.Context) (any, error) {
			m := agent.Named(delegation.Relay(delegation.CoordinatorSource, s.agent.Session(), dsh.Text{Text: f.Text}))
			err := s.agent.Message(ctx, dsh.SessionID(childNames(f.Child)), m, delegation.Gear{})
			return object{"messageId": string(m.ID)}, err
		})
	case a.InterruptChild != nil:
		d.noted("interruptChild", a.InterruptChild.As, nil, d.interruptChild(ctx, s, a.InterruptChild))
	case a.DrainDescendants:
		d.noted("drainDescendants", "", nil, s.agent.Drain(ctx))
	case a.ListChildren:
		list, err := s.agent.Children(ctx, false)
		d.noted("listChildren", "", rows(list), err)
	case a.Abort != "":
		if abort := d.aborts[a.Abort]; abort != nil {
			abort()
		}
	default:
		return false
	}
	return true
}

// service performs a call that takes its time; its context can be aborted by
// its label.
func (d *driver) service(where, as string, call func(ctx context.Context) (any, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	d.aborts[as] = cancel
	d.running.Go(func() {
		defer cancel()
		result, err := call(ctx)
		if !d.ended() {
			d.noted(where, as, result, err)
		}
	})
}

// noted records what became of an action about children.
func (d *driver) noted(where, as string, result any, err error) {
	entry := object{"where": where}
	if as != "" {
		entry["as"] = as
	}
	if err != nil {
		entry["error"] = errorJSON(tracedChild(err))
	} else {
		entry["result"] = result
	}
	d.r.Noted(entry)
}

// childSpec returns what a child is to be that an action starts.
func (r *StartRun) childSpec(s *subject) (delegation.Spec, error) {
	transport := r.Provider
	if transport == "" {
		transport = "spawn"
	}
	if !s.world.options.Subagents.has(transport) {
		return delegation.Spec{}, delegation.Errorf(delegation.CodeNoProvider, "there is no transport %s", transport)
	}
	spec := delegation.Spec{
		Label: r.Label, Fork: transport == "fork", Persona: r.Persona, MaxDepth: r.MaxDepth, LateDescriptor: true,
	}
	if r.ToolFilter != nil {
		spec.Filter = delegation.Filter(*r.ToolFilter)
	}
	return spec, route(&spec, r.AgentOptions)
}

func spawn(ctx context.Context, s *subject, spec delegation.Spec) (*runtime.Child, error) {
	if spec.Fork {
		return s.agent.Fork(ctx, spec)
	}
	return s.agent.Spawn(ctx, spec)
}

func startRun(ctx context.Context, s *subject, r *StartRun) (any, error) {
	spec, err := r.childSpec(s)
	if err != nil {
		return nil, err
	}
	var capture *subagent.Capture
	if len(r.OutputSchema) > 0 {
		if capture, err = subagent.Structured(r.OutputSchema); err != nil {
			return nil, err
		}
		capture.Equip(&spec)
	}
	c, err := spawn(ctx, s, spec)
	if err != nil {
		return nil, err
	}
	o, err := c.Run(ctx, r.Prompt)
	if err != nil {
		return nil, err
	}
	if capture != nil {
		capture.Seal(&o)
	}
	result := object{"output": blocksJSON(o.Output), "stopReason": stopReason(o)}
	if o.Structured != nil {
		result["structured"] = generic(o.Structured)
	}
	return result, nil
}

func startContinuable(ctx context.Context, s *subject, r *StartRun) (any, error) {
	spec, err := r.childSpec(s)
	if err != nil {
		return nil, err
	}
	if !s.world.options.Subagents.Persistence {
		return nil, delegation.Errorf(delegation.CodeNoStore, "sessions are not kept")
	}
	spec.Background = true
	c, err := spawn(ctx, s, spec)
	if err != nil {
		return nil, err
	}
	m := agent.Named(dsh.UserText(r.Prompt))
	if err := c.Begin(ctx, m); err != nil {
		return nil, err
	}
	return object{"childId": string(c.Session()), "messageId": string(m.ID)}, nil
}

// interruptChild interrupts as a user who holds the child's address, or as an
// agent.
func (d *driver) interruptChild(ctx context.Context, s *subject, i *InterruptChild) error {
	id := childNames(i.Child)
	if i.Parent == "" {
		return s.agent.InterruptChild(ctx, dsh.SessionID(id))
	}
	child := s.world.find(id)
	if child == nil {
		return nil
	}
	if string(child.record.Header.ParentSession) != childNames(i.Parent) {
		return delegation.Errorf(delegation.CodeUnauthorized, "%s is not a sub-agent of %s", id, i.Parent)
	}
	err := child.agent.Cancel(ctx, dsh.Cause{Kind: dsh.CauseUser}, runtime.KeepInbox)
	if errors.Is(err, runtime.ErrDisposed) {
		return nil
	}
	return err
}

// rows returns a list of children as the reference's service has it.
func rows(list []delegation.Entry) any {
	out := []any{}
	for _, e := range list {
		if e.Problem != "" {
			out = append(out, object{"kind": "diagnostic", "id": string(e.ID), "reason": e.Problem})
			continue
		}
		row := object{
			"kind": "child", "id": string(e.ID), "mode": string(e.Mode), "activity": "inactive", "hasChildren": e.HasChildren,
		}
		if e.Label != "" {
			row["label"] = e.Label
		}
		if e.Status == delegation.Running {
			row["activity"] = "running"
		}
		out = append(out, row)
	}
	return out
}

// tracedChild gives a refusal the name that traces have for it.
func tracedChild(err error) error {
	var refused *delegation.Error
	if !errors.As(err, &refused) {
		return childError{err, "TypeError", ""}
	}
	switch refused.Code {
	case delegation.CodeDepth:
		return childError{err, "SubagentDepthError", ""}
	case delegation.CodeFilter:
		return childError{err, "Error", ""}
	case delegation.CodeSchema:
		return childError{err, "JsonSchemaError", refused.Code}
	}
	return childError{err, delegation.ErrorName, refused.Code}
}

type childError struct {
	error
	name, code string
}

// TraceName returns the reference's name and the code.
func (e childError) TraceName() (name, code string) { return e.name, e.code }

// Unwrap returns the error itself.
func (e childError) Unwrap() error { return e.error }
