package replay

import (
	"slices"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// call is a tool call of the step's answer.
type call struct {
	dsh.ToolCall
	seq   dsh.Seq // of its tool/call
	begun bool
	done  bool
}

func owing(calls []call) bool {
	return slices.ContainsFunc(calls, func(c call) bool { return !c.done })
}

// toolStarted looks whether a call is one that the model asked for, as it asked
// for it, and whether it is its turn.
func (f *fold) toolStarted(ev *dsh.Event, d dsh.ToolStarted) {
	if !f.within(ev, d.Turn, d.Step) {
		return
	}
	calls := f.step.calls
	i := slices.IndexFunc(calls, func(c call) bool { return c.ID == d.CallID })
	if i < 0 {
		f.find(ev, KindCall, "call %q starts, and the answer asks for no such call", d.CallID)
		return
	}
	c := &calls[i]
	next := slices.IndexFunc(calls, func(c call) bool { return !c.begun })
	switch {
	case c.begun:
		f.find(ev, KindCall, "call %q starts a second time", d.CallID)
	case next != i:
		f.find(ev, KindCall, "call %q starts where call %q is next", d.CallID, calls[next].ID)
	}
	if c.Name != d.Name {
		f.find(ev, KindCall, "call %q runs the tool %q, and the model asked for %q", d.CallID, d.Name, c.Name)
	}
	// Older writers made empty arguments an empty object.
	if c.Arguments != d.Arguments && (c.Arguments != "" || d.Arguments != "{}") {
		f.find(ev, KindCall, "call %q runs with the arguments %s, and the model wrote %s",
			d.CallID, brief(d.Arguments), brief(c.Arguments))
	}
	c.begun, c.seq = true, ev.Seq
}

// toolFinished looks whether a result answers a call whose turn it is.
func (f *fold) toolFinished(ev *dsh.Event, d dsh.ToolFinished) {
	if ev.Surface.Kind() == dsh.SurfaceReplace || !f.within(ev, d.Turn, d.Step) {
		return // the surface looks after an old result that was shortened
	}
	result, ok := onlyResult(d.Message)
	if !ok {
		f.find(ev, KindResult, "a result message does not hold exactly one result")
		return
	}
	calls := f.step.calls
	i := slices.IndexFunc(calls, func(c call) bool { return c.ID == result.CallID })
	if i < 0 {
		f.find(ev, KindResult, "a result for call %q, which nobody made", result.CallID)
		return
	}
	c := &calls[i]
	next := slices.IndexFunc(calls, func(c call) bool { return !c.done })
	switch {
	case c.done:
		f.find(ev, KindResult, "a second result for call %q", c.ID)
	case next != i:
		f.find(ev, KindResult, "the result for call %q stands where the one for %q is due", c.ID, calls[next].ID)
	case c.begun && !ev.Sources.Equal(dsh.Cite(c.seq)):
		f.find(ev, KindResult, "the result for call %q cites %s, and its tool/call is %d", c.ID, list(ev.Sources), c.seq)
	case !c.begun && (d.Error == nil || *d.Error != dsh.ToolNotStarted):
		f.find(ev, KindResult, "a result for call %q, which has no tool/call", c.ID)
	}
	c.done = true
}

func onlyResult(m *dsh.Message) (dsh.ToolResult, bool) {
	if len(m.Content) != 1 {
		return dsh.ToolResult{}, false
	}
	r, ok := m.Content[0].(dsh.ToolResult)
	return r, ok
}

// missing notes calls that a step which ends leaves without a result.
func (f *fold) missing(ev *dsh.Event) {
	for _, c := range f.step.calls {
		if !c.done {
			f.find(ev, KindResult, "the step ends, and call %q has no result", c.ID)
		}
	}
}
