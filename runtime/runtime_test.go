package runtime_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := script.New(script.Options{},
			script.Calls(dsh.ToolCall{ID: "c1", Name: "echo", Arguments: `{"text":"ping"}`}),
			script.Text("done", 3),
		)
		type in struct {
			Text string `json:"text"`
		}
		rt, err := runtime.New(runtime.Options{Providers: map[string]llm.Provider{"mock": p}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := rt.Create(t.Context(), runtime.Spec{ID: "a1", Session: "a1", Provider: "mock", Model: "m", Tools: []tool.Tool{
			tool.Func("echo", "Echo.", func(_ context.Context, in in) (string, error) { return in.Text, nil }),
		}})
		if err != nil {
			t.Fatal(err)
		}
		o, err := a.Run(t.Context(), "hi")
		if err != nil || !o.OK() || o.Text() != "done" {
			t.Fatalf("Run: %+v, %v", o, err)
		}
		for ev, err := range a.Events(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s", ev.AppendJSON(nil))
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
