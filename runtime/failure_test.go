package runtime_test

import (
	"context"
	"slices"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

// breaker makes the agent's own actor panic once.
type breaker struct{ at string }

func (b *breaker) Logged(ev dsh.Event, _ func(observed)) {
	if ev.Type() == b.at {
		b.at = ""
		panic("injected")
	}
}

func (*breaker) Noticed(hook.Notice, func(observed)) {}

// A bug of ours tells everyone who waits, takes nothing else down, and the
// agent goes on from its log.
func TestAFailedActorIsReopenedFromItsLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, runtime.Options{}, script.Text("lost", 1), script.Text("other", 1), script.Text("back", 1))
		other := w.agent(t, runtime.Spec{})
		a := w.agent(t, runtime.Spec{Observer: &breaker{at: dsh.TypeStepEnd}})
		if _, err := a.Run(t.Context(), "first"); err == nil {
			t.Fatal("the caller was not told")
		}
		if o, err := other.Run(t.Context(), "hi"); err != nil || o.Text() != "other" {
			t.Errorf("the other agent: %+v, %v", o, err)
		}
		o, err := a.Run(t.Context(), "second")
		if err != nil || o.Text() != "back" || o.Turn != 2 {
			t.Fatalf("Run = %+v, %v", o, err)
		}
		got := types(t, a)
		if !slices.Contains(got, "turn/end interrupted") {
			t.Errorf("the log does not close the broken turn: %q", got)
		}
		s, _ := a.State(t.Context())
		if err := dsh.CheckRequest(s.Messages); err != nil {
			t.Error(err)
		}
	})
}

// A panic in user code is an error of that code.
func TestPanicsOfUserCode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		call := script.Calls(dsh.ToolCall{ID: "c", Name: "bad", Arguments: "{}"})
		w := newWorld(t, runtime.Options{},
			script.Response{script.Do{Func: func(context.Context) { panic("provider") }}},
			call, script.Text("after the tool", 1))
		a := w.agent(t, runtime.Spec{Tools: []tool.Tool{
			tool.Func("bad", "Panics.", func(context.Context, struct{}) (string, error) { panic("tool") }),
		}})
		o, err := a.Run(t.Context(), "the provider panics")
		if err != nil || o.Ending.Kind != dsh.EndError {
			t.Errorf("provider: %+v, %v", o, err)
		}
		o, err = a.Run(t.Context(), "the tool panics")
		if err != nil || o.Text() != "after the tool" {
			t.Errorf("tool: %+v, %v", o, err)
		}
	})
}
