package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/tool"
)

// scripted is a tool of the scenario in one world.
type scripted struct {
	w *world
	*Tool
}

var _ tool.Classifier = (*scripted)(nil)

// Classify returns the mode that the tool has now.
func (t *scripted) Classify(json.RawMessage) tool.Mode {
	switch t.w.mode(t.Tool) {
	case "parallel":
		return tool.Parallel
	case "throws":
		panic("the classifier throws")
	}
	return tool.Exclusive
}

// Execute plays the body of a call. One that does not return anything has a
// result without content.
func (t *scripted) Execute(ctx context.Context, call tool.Call) (result tool.Result, err error) {
	initiator, _ := dsh.InitiatorFrom(ctx)
	s, d := t.w.subject(initiator.Agent), t.w.d
	for _, step := range t.Body(call.ID) {
		s.hold()
		switch {
		case step.Wait != "":
			d.gates.Wait(context.WithoutCancel(ctx), step.Wait)
		case step.WaitOrAbort != "":
			if !d.gates.Wait(ctx, step.WaitOrAbort) {
				return result, errors.New("tool saw abort")
			}
		case step.ConcludeTurn:
			result.Conclude = true
		case step.DeferContext != nil:
			result.Context = append(result.Context, texts(byTool, []string{*step.DeferContext})...)
		case step.SetMode != nil:
			t.w.setMode(*step.SetMode)
		case step.Do != nil:
			d.actions(s, step.Do)
		case step.Fail != nil:
			return result, &tool.Error{Code: step.Fail.Code, Message: step.Fail.Message}
		case step.Throw != nil:
			return result, errors.New(*step.Throw)
		case step.Return != nil:
			s.hold()
			result.Content = step.Return.Content()
			return result, nil
		}
	}
	s.hold()
	return result, nil
}

func (w *world) mode(t *Tool) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if mode, changed := w.modes[t.Name]; changed {
		return mode
	}
	return t.Mode
}

func (w *world) setMode(m SetMode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.modes[m.Tool] = m.Mode
}

// setContext changes a section of the runtime context, or adds it.
func (w *world) setContext(c Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.IndexFunc(w.contexts, func(o Context) bool { return o.Name == c.Name }); i >= 0 {
		w.contexts[i].Text = c.Text
		return
	}
	w.contexts = append(w.contexts, c)
}

// register adds a tool of the scenario to the world.
func (w *world) register(name string) error {
	for i := range w.d.Tools {
		if t := &w.d.Tools[i]; t.Name == name {
			return w.Tools().Register(&scripted{w, t})
		}
	}
	return fmt.Errorf("the scenario has no tool %q", name)
}
