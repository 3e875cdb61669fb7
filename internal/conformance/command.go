package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/loop"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// Sources of what a scenario says.
var (
	byOracle     = dsh.PluginSource{Plugin: "oracle"}
	byTool       = dsh.PluginSource{Plugin: "oracle-tool"}
	byReview     = dsh.PluginSource{Plugin: "oracle-post"}
	byCompaction = dsh.PluginSource{Plugin: "oracle-compaction"}
)

// A command is what an agent is told: by the API, or by an observer that acts
// inside it.
type command struct {
	outside runtime.Command
	inside  loop.Input
}

// An order is a command and the action that it comes from.
type order struct {
	action  *Action
	command command
}

// tell returns the command of an input.
func tell(in loop.Input) command {
	c := command{inside: in}
	switch in := in.(type) {
	case loop.Deliver:
		if in.Front {
			c.outside = runtime.Prepend(in.Message, in.Target)
		} else {
			c.outside = runtime.Send(in.Message, in.Target, in.Wake)
		}
	case loop.Wake:
		c.outside = runtime.Wake()
	case loop.Replace:
		c.outside = runtime.Replace(in.ID, in.Message)
	case loop.Remove:
		c.outside = runtime.Remove(in.ID)
	case loop.Clear:
		c.outside = runtime.Clear()
	case loop.Cancel:
		c.outside = runtime.Cancel(in.Cause, in.KeepInbox)
	case loop.Append:
		c.outside = runtime.Append(in.Fact, in.Surface, in.Sources)
	default:
		panic(fmt.Sprintf("conformance: %T is no command", in))
	}
	return c
}

func disposing() loop.Input { return loop.Cancel{Cause: dsh.Cause{Kind: dsh.CauseDisposed}} }

// act performs an action that every place may perform: a script, a hook, a
// tool, a stream. What it raises is recorded.
func (d *driver) act(where string, s *subject, a *Action) {
	if d.environment(where, s, a) {
		return
	}
	c, ok, err := s.command(a)
	switch {
	case err != nil:
		d.r.Failed(where, a, err)
	case ok:
		d.send(where, s, []order{{a, c}})
	default:
		d.r.Failed(where, a, fmt.Errorf("%s cannot be done here", a.Verb()))
	}
}

// actions performs what a hook, a tool or a stream does to the agent at hand.
func (d *driver) actions(s *subject, actions []Action) {
	for i := range actions {
		if d.ended() {
			return
		}
		a := &actions[i]
		if a.Batch != nil {
			d.batch("hook", s, a)
			continue
		}
		d.act("hook", s, a)
	}
}

// send tells an agent its orders in one go and records what becomes of them.
func (d *driver) send(where string, s *subject, orders []order) {
	commands := make([]runtime.Command, len(orders))
	for i, o := range orders {
		commands[i] = o.command.outside
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, err := range assign(s.api().Do(ctx, commands...), orders) {
		d.report(where, orders[i], err)
	}
}

// assign finds out which of the orders the errors are about. They come in
// order; of several commands that could have been refused so, it is the last:
// a message can be delivered, or withdrawn, once.
func assign(err error, orders []order) []error {
	errs := problems(err)
	of := make([]error, len(orders))
	if len(errs) == len(orders) {
		return errs
	}
	for i := len(orders) - 1; i >= 0 && len(errs) > 0; i-- {
		if last := errs[len(errs)-1]; orders[i].command.refused(last) {
			of[i], errs = last, errs[:len(errs)-1]
		}
	}
	if len(errs) > 0 {
		of[0] = errors.Join(append(errs, of[0])...) // the agent is gone: nothing was applied
	}
	return of
}

// problems returns the errors that err joins.
func problems(err error) []error {
	switch joined := err.(type) { //nolint:errorlint // The caller knows who joined them.
	case nil:
		return nil
	case interface{ Unwrap() []error }:
		return joined.Unwrap()
	}
	return []error{err}
}

// refused reports whether an error of a batch is this command's: those of the
// inbox name the message.
func (c command) refused(err error) bool {
	names := func(id dsh.MessageID) bool { return strings.Contains(err.Error(), string(id)) }
	switch in := c.inside.(type) {
	case loop.Deliver:
		return errors.Is(err, loop.ErrDuplicate) && names(in.Message.ID)
	case loop.Replace:
		return names(in.ID)
	case loop.Remove:
		return errors.Is(err, loop.ErrNotPending) && names(in.ID)
	case loop.Append:
		return !errors.Is(err, loop.ErrDuplicate) && !errors.Is(err, loop.ErrNotPending)
	}
	return false
}

// report records what became of an order: edits of single messages tell
// whether they found it.
func (d *driver) report(where string, o order, err error) {
	edit := o.action.RemovePending != "" || o.action.ReplacePending != ""
	switch {
	case edit && (err == nil || errors.Is(err, loop.ErrNotPending)):
		d.r.Result("result", o.action, err == nil)
	case err != nil:
		d.r.Failed(where, o.action, err)
	}
}

// environment performs an action that is not about an agent. It returns false
// if the action is none.
func (d *driver) environment(where string, s *subject, a *Action) bool {
	var err error
	switch {
	case a.Release != nil:
		d.gates.Open(a.Release...)
	case a.SetContext != nil:
		s.world.setContext(*a.SetContext)
	case a.SetMode != nil:
		s.world.setMode(*a.SetMode)
	case a.RegisterTool != "":
		err = s.world.register(a.RegisterTool)
	case a.UnregisterTool != "":
		s.world.Tools().Unregister(a.UnregisterTool)
	default:
		return false
	}
	if err != nil {
		d.r.Failed(where, a, err)
	}
	return true
}

// command translates an action. It returns false if the action is no command.
func (s *subject) command(a *Action) (c command, ok bool, err error) {
	in, err := s.input(a)
	if err != nil || in == nil {
		return command{}, false, err
	}
	return tell(in), true, nil
}

func (s *subject) input(a *Action) (loop.Input, error) {
	d := s.world.d
	switch {
	case a.Followup != nil:
		return d.deliver(a, a.Followup, dsh.UserSource{}, loop.Deliver{Target: dsh.NextTurn, Wake: true})
	case a.Steer != nil:
		return d.deliver(a, a.Steer, dsh.UserSource{}, loop.Deliver{Target: dsh.NextStep, Wake: true})
	case a.Inject != nil:
		return d.deliver(a, a.Inject, byOracle, loop.Deliver{Target: dsh.NextStep})
	case a.Send != nil:
		return d.deliver(a, &a.Send.Say, dsh.UserSource{}, loop.Deliver{Target: a.Send.Target, Wake: a.Send.Wakeup})
	case a.PrependPending != nil:
		return d.deliver(a, a.PrependPending, dsh.UserSource{}, loop.Deliver{Target: a.Target, Front: true})
	case a.Resend != "":
		m, err := d.labelled(a.Resend)
		return loop.Deliver{Message: m, Target: dsh.NextTurn, Wake: true}, err
	case a.ReplacePending != "":
		return d.replace(a)
	case a.RemovePending != "":
		m, err := d.labelled(a.RemovePending)
		if err != nil {
			return nil, err
		}
		return loop.Remove{ID: m.ID}, nil
	case a.ClearPending:
		return loop.Clear{}, nil
	case a.Cancel != nil:
		cause := dsh.Cause{Kind: dsh.CauseKind(a.Cancel.Kind), Reason: a.Cancel.Reason}
		return loop.Cancel{Cause: cause, KeepInbox: a.KeepInbox}, nil
	case a.ReplaceSurface != nil:
		return s.replaceSurface(a.ReplaceSurface)
	case a.RewriteToolResult != nil:
		return s.rewriteToolResult(a.RewriteToolResult)
	case a.Append != nil:
		return a.Append.input()
	}
	return nil, nil
}

// deliver fills in the message of a delivery and labels it.
func (d *driver) deliver(a *Action, say *Say, source dsh.Source, in loop.Deliver) (loop.Input, error) {
	m, err := say.Message(source)
	if err != nil {
		return nil, err
	}
	in.Message = agent.Named(m)
	d.label(a.As, in.Message)
	return in, nil
}

func (d *driver) replace(a *Action) (loop.Input, error) {
	old, err := d.labelled(a.ReplacePending)
	if err != nil {
		return nil, err
	}
	if a.With == nil {
		return nil, errors.New("replacePending without a message")
	}
	m, err := a.With.Message(dsh.UserSource{})
	if err != nil {
		return nil, err
	}
	m = agent.Named(m)
	d.label(a.As, m)
	return loop.Replace{ID: old.ID, Message: m}, nil
}

// replaceSurface returns the command that puts a message where a range of the
// surface is. Ranges that do not exist are left for the log to refuse.
func (s *subject) replaceSurface(r *ReplaceSurface) (loop.Input, error) {
	surface, err := s.record.surface()
	if err != nil {
		return nil, err
	}
	end := func(index, seq *int) (dsh.Seq, error) {
		if seq != nil {
			return dsh.Seq(*seq), nil
		}
		if index == nil {
			return 0, errors.New("replaceSurface without a range")
		}
		i := *index
		if i < 0 {
			i += len(surface)
		}
		if i < 0 || i >= len(surface) {
			return 0, fmt.Errorf("the surface has no node %d", *index)
		}
		return surface[i], nil
	}
	first, err := end(r.Start, r.StartSeq)
	if err != nil {
		return nil, err
	}
	last, err := end(r.End, r.EndSeq)
	if err != nil {
		return nil, err
	}
	message := agent.Named(&dsh.Message{
		Role: dsh.RoleUser, Source: byCompaction, Content: []dsh.Block{dsh.Text{Text: r.Text}},
	})
	return loop.Append{
		Fact:    dsh.UserMessage{Message: message},
		Surface: dsh.Replace(first, last),
		Sources: r.Cite.sources(surface, first, last),
	}, nil
}

// sources returns what a replacement of a range of the surface cites.
func (c Cite) sources(surface []dsh.Seq, first, last dsh.Seq) *dsh.Sources {
	switch {
	case c.Omit:
		return nil
	case c.Seqs != nil:
		sources := dsh.Cite()
		for _, seq := range c.Seqs {
			sources = sources.With(dsh.Seq(seq), dsh.Seq(seq))
		}
		return sources
	}
	var sources *dsh.Sources
	within := false
	for _, seq := range surface {
		within = within || seq == first
		if within {
			sources = sources.With(seq, seq)
		}
		if seq == last {
			break
		}
	}
	return sources
}

// rewriteToolResult returns the command that replaces the newest result of a
// call.
func (s *subject) rewriteToolResult(r *RewriteToolResult) (loop.Input, error) {
	events := s.record.Events()
	for i := len(events) - 1; i >= 0; i-- {
		stored, ok := events[i].Data.(dsh.ToolFinished)
		if !ok || len(stored.Message.Content) == 0 {
			continue
		}
		result, ok := stored.Message.Content[0].(dsh.ToolResult)
		if !ok || string(result.CallID) != r.CallID {
			continue
		}
		result.Content = []dsh.Block{dsh.Text{Text: r.Text}}
		if r.IsError != nil {
			result.IsError = *r.IsError
		}
		message := *stored.Message
		message.Content = []dsh.Block{result}
		stored.Message = &message
		seq := events[i].Seq
		return loop.Append{
			Fact:    stored,
			Surface: dsh.Replace(seq, seq),
			Sources: dsh.Cite(seq),
		}, nil
	}
	return nil, fmt.Errorf("call %s has no result", r.CallID)
}

// input returns the command that appends the event as it is written.
func (e *AppendEvent) input() (loop.Input, error) {
	if e.Ignorable {
		return nil, errors.New("an ignorable event cannot be appended")
	}
	event := object{"seq": 0, "time": 0, "type": e.Type, "data": e.Data}
	if e.SurfaceOp != nil {
		event["surfaceOp"] = e.SurfaceOp
	}
	if e.SourceEventSeqs != nil {
		event["sourceEventSeqs"] = *e.SourceEventSeqs
	}
	text, err := json.Marshal(event)
	if err != nil {
		return nil, err
	}
	var ev dsh.Event
	if err := json.Unmarshal(text, &ev); err != nil {
		return nil, err
	}
	return loop.Append{Fact: ev.Data, Surface: ev.Surface, Sources: ev.Sources}, nil
}

// traced gives the refusal of a fork the name that traces have for it.
func traced(err error) error {
	if refused := (*dsh.ForkError)(nil); errors.As(err, &refused) {
		return forkRefusal{refused}
	}
	return err
}

type forkRefusal struct{ *dsh.ForkError }

// TraceName returns the reference's name and the code.
func (f forkRefusal) TraceName() (name, code string) { return "SessionForkError", f.Code }
