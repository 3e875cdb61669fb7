package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

// A work is what a turn consists of. The runtime and the floors do the same
// one: the same model and the same function as a tool. It takes its arguments
// as they are: what decoding them costs is the same everywhere.
type work struct {
	model llm.Provider
	tool  function
}

// function is the one tool.
type function struct {
	name string
	run  func(args json.RawMessage) (string, error)
}

// pieces is how many text deltas "20 chunks" are. The brackets of the block
// and the finish come on top, for the runtime and the floors alike.
const pieces = 20

// trivial is a tool that does nothing.
var trivial = function{"add", func(json.RawMessage) (string, error) { return "42", nil }}

// textTurn answers at once, in n pieces (W1).
func textTurn(n int) work {
	return work{model: script.Repeat(script.Options{}, answer(n)), tool: trivial}
}

// toolTurn calls the tool n times in step 1 and answers in step 2 (W2, W3).
func toolTurn(n int, f function) work {
	calls := make([]dsh.ToolCall, n)
	for i := range calls {
		calls[i] = dsh.ToolCall{ID: dsh.CallID(fmt.Sprintf("call-%d", i)), Name: f.name, Arguments: `{"a":19,"b":23}`}
	}
	first, second := script.Calls(calls...), answer(pieces)
	return work{tool: f, model: script.Func(script.Options{}, func(r *dsh.Request) script.Response {
		last := r.Messages[len(r.Messages)-1]
		if _, ok := last.Content[0].(dsh.ToolResult); ok {
			return second
		}
		return first
	})}
}

func answer(n int) script.Response { return script.Text(strings.Repeat("word ", n), n) }

// slow is a tool of 5 ms.
var slow = function{"slow", func(args json.RawMessage) (string, error) {
	time.Sleep(5 * time.Millisecond)
	return trivial.run(args)
}}

// A place is where conversations are held: the runtime or a floor.
type place interface {
	open(tb testing.TB) talk
	close(tb testing.TB)
}

// A talk is one conversation. end returns when nothing of it runs any more.
type talk interface {
	turn(tb testing.TB)
	end(tb testing.TB)
}

// onRuntime returns the runtime with everything on: hooks possible, arguments
// validated, every chunk an event, the log in memory.
func onRuntime(tb testing.TB, w work) place {
	tb.Helper()
	return onStore(tb, w, memory.New())
}

func onStore(tb testing.TB, w work, s store) place {
	tb.Helper()
	return runtimePlace{newRuntime(tb, w, s), s}
}

func newRuntime(tb testing.TB, w work, store session.Store) *runtime.Runtime {
	tb.Helper()
	rt, err := runtime.New(runtime.Options{
		Providers: map[string]llm.Provider{"main": w.model},
		Store:     store,
		Tools: []tool.Tool{tool.New(tool.Definition{
			Name: w.tool.name, Description: "Add two numbers.", Mode: tool.Parallel, Parameters: parameters,
			Execute: func(_ context.Context, call tool.Call) (tool.Result, error) {
				text, err := w.tool.run(call.Args)
				return tool.Text(text), err
			},
		})},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return rt
}

type runtimePlace struct {
	rt    *runtime.Runtime
	store store
}

// A store is one that conversations can be taken out of again.
type store interface {
	session.Store
	session.Deleter
}

func (p runtimePlace) open(tb testing.TB) talk {
	a, err := p.rt.Create(context.Background(), runtime.Spec{Provider: "main", Model: "m"})
	if err != nil {
		tb.Fatal(err)
	}
	return runtimeTalk{a, p.store}
}

func (p runtimePlace) close(tb testing.TB) {
	if err := p.rt.Close(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

type runtimeTalk struct {
	a     *runtime.Agent
	store session.Deleter
}

func (t runtimeTalk) turn(tb testing.TB) {
	o, err := t.a.Run(context.Background(), prompt)
	if err != nil || !o.OK() || len(o.Text()) == 0 {
		tb.Fatalf("turn: %+v, %v", o, err)
	}
}

// end takes the log along: the store would keep it.
func (t runtimeTalk) end(tb testing.TB) {
	err := t.a.Dispose(context.Background())
	if err == nil {
		err = t.store.Delete(context.Background(), t.a.Session())
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// parameters is the schema of the tools, which the runtime checks.
var parameters = json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
	"required":["a","b"],"additionalProperties":false}`)

const prompt = "What is 19 + 23?"
