package agent_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/actortest"
	rt "github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

// An idle agent has no goroutine, neither before its first turn nor after one
// with hooks and tools: a thousand of them need as many as one.
func TestIdleAgentsHaveNoGoroutines(t *testing.T) {
	model := script.Func(script.Options{}, func(req *dsh.Request) script.Response {
		if len(req.Messages) == 1 {
			return script.Calls(dsh.ToolCall{ID: "a", Name: "echo", Arguments: "{}"})
		}
		return script.Text("done", 3)
	})
	r, err := rt.New(rt.Options{
		Providers: map[string]llm.Provider{"mock": model}, Tools: []tool.Tool{echo(nothing)},
		Hooks: []any{
			actortest.PreStep(func(ctx context.Context, s hook.Step, next hook.PreStepFunc) (hook.Decision, error) {
				return next(ctx, s)
			}),
			actortest.Notified(func(hook.Agent, hook.Notice) {}),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close(context.Background()) }()
	before := goruntime.NumGoroutine()
	workers := 4*goruntime.GOMAXPROCS(0) + 8 // of the dispatcher, however many agents
	const n = 1000
	agents := make([]*rt.Agent, n)
	for i := range agents {
		if agents[i], err = r.Create(t.Context(), rt.Spec{ID: dsh.AgentID(fmt.Sprint("a", i)), Provider: "mock", Model: "m"}); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, "new", before+workers)
	for _, a := range agents {
		if o, err := a.Run(t.Context(), "hello"); err != nil || !o.OK() {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	settle(t, "after a turn", before+workers)
}

// settle waits for goroutines on their way out.
func settle(t *testing.T, when string, limit int) {
	t.Helper()
	for range 200 {
		if goruntime.NumGoroutine() <= limit {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%s: %d goroutines for idle agents, want at most %d", when, goruntime.NumGoroutine(), limit)
}
