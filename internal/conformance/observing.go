package conformance

import (
	"errors"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
)

// errNested is what an observer of the log meets that would write to it.
var errNested = errors.New("log appends do not nest")

// observing records what an agent logs and says, and lets the scenario's
// observers act there and then. It runs on the agent's own goroutine.
type observing struct {
	*subject
	pending dsh.Inbox
}

var _ agent.Observer = (*observing)(nil)

// Logged is called right behind each append.
func (o *observing) Logged(ev dsh.Event, do func(loop.Input)) {
	o.record.Logged(ev)
	o.follow(&ev)
	if len(o.world.d.triggers["session-event"]) == 0 {
		return
	}
	event, err := eventJSON(&ev)
	if err != nil {
		return
	}
	data, _ := event["data"].(object)
	for _, t := range o.world.d.moments("session-event", o.shown(ev.Type(), data)) {
		for i := range t.Actions {
			o.act(&t.Actions[i], do, true)
		}
	}
}

// follow keeps account of what is pending.
func (o *observing) follow(ev *dsh.Event) {
	if splice, ok := ev.Data.(dsh.InboxSpliced); ok {
		_ = o.pending.Apply(splice) // a raw one may not fit
	}
}

// Noticed is called with each notice.
func (o *observing) Noticed(n hook.Notice, do func(loop.Input)) {
	o.world.children.settle(n)
	o.record.Noticed(n)
	for _, t := range o.world.d.moments("live", o.shown(n.Type(), noticeJSON(n))) {
		for i := range t.Actions {
			o.act(&t.Actions[i], do, false)
		}
	}
}

// shown returns the moment of an event or a notice, from what it shows.
func (o *observing) shown(typ string, fields object) moment {
	number := func(name string) int { n, _ := fields[name].(float64); return int(n) }
	text := func(name string) string { s, _ := fields[name].(string); return s }
	return moment{
		agent: o.key, typ: typ, turn: number("turn"), step: number("step"),
		callID: text("callId"), tool: text("name"), status: text("status"),
	}
}

// act performs an action inside the agent. What observers throw, and what
// they wait for, changes nothing there.
func (o *observing) act(a *Action, do func(loop.Input), nested bool) {
	d := o.world.d
	if d.environment("hook", o.subject, a) {
		return
	}
	c, ok, err := o.command(a)
	switch {
	case err != nil:
	case !ok:
		err = errors.New(a.Verb() + " cannot be done here")
	case nested && o.logs(c.inside):
		err = errNested
	default:
		if err = o.refusal(c.inside); err == nil {
			do(c.inside)
		}
		d.report("hook", order{a, c}, err)
		return
	}
	if err != nil {
		d.r.Failed("hook", a, err)
	}
}

// logs reports whether a command would append to the log at once.
func (o *observing) logs(in loop.Input) bool {
	switch in := in.(type) {
	case loop.Cancel:
		return !in.KeepInbox && !o.pending.Empty()
	case loop.Clear:
		return !o.pending.Empty()
	}
	return true
}

// refusal returns why the agent is going to refuse a command: one that comes
// from inside has no answer.
func (o *observing) refusal(in loop.Input) error {
	has := func(id dsh.MessageID) bool { _, i := o.pending.Find(id); return i >= 0 }
	switch in := in.(type) {
	case loop.Deliver:
		if has(in.Message.ID) {
			return loop.ErrDuplicate
		}
	case loop.Replace:
		if !has(in.ID) {
			return loop.ErrNotPending
		}
	case loop.Remove:
		if !has(in.ID) {
			return loop.ErrNotPending
		}
	}
	return nil
}
