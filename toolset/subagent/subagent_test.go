package subagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/toolset/subagent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// brain answers for every agent; it is told whose request it is.
type brain func(i dsh.Initiator, req *dsh.Request) script.Response

func (b brain) Model(string) llm.Model { return llm.Model{} }

func (b brain) Stream(ctx context.Context, req *dsh.Request) iter.Seq2[dsh.Chunk, error] {
	i, _ := dsh.InitiatorFrom(ctx)
	return script.New(script.Options{}, b(i, req)).Stream(ctx, req)
}

// start makes a runtime with the tools and an agent.
func start(t *testing.T, opts subagent.Options, b brain) *runtime.Agent {
	t.Helper()
	set, err := subagent.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.New(runtime.Options{
		Providers: map[string]llm.Provider{"mock": b}, Tools: set.Tools(), Hooks: set.Hooks(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	a, err := rt.Create(t.Context(), runtime.Spec{ID: "top", Session: "top", Provider: "mock", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// results returns the results in the agent's log, with their codes.
func results(t *testing.T, a *runtime.Agent) []string {
	t.Helper()
	var out []string
	for ev, err := range a.Events(context.Background(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := ev.Data.(dsh.ToolFinished); ok {
			r := f.Message.Content[0].(dsh.ToolResult)
			text := dsh.TextOf(r.Content)
			if f.Error != nil {
				text = f.Error.Name + " " + f.Error.Code + ": " + text
			}
			out = append(out, text)
		}
	}
	return out
}

func calls(args ...string) script.Response {
	var list []dsh.ToolCall
	for i := 0; i < len(args); i += 2 {
		list = append(list, dsh.ToolCall{ID: dsh.CallID(string(rune('a' + i/2))), Name: args[i], Arguments: args[i+1]})
	}
	return script.Calls(list...)
}

// steps serves an agent's responses in order, and "done" behind them.
func steps(responses map[int][]script.Response) brain {
	var mu sync.Mutex
	return func(i dsh.Initiator, _ *dsh.Request) script.Response {
		mu.Lock()
		defer mu.Unlock()
		if rest := responses[i.Depth]; len(rest) > 0 {
			responses[i.Depth] = rest[1:]
			return rest[0]
		}
		return script.Text("done", 1)
	}
}

const task = `{"description":"job","prompt":"please do it"}`

func TestForegroundResults(t *testing.T) {
	for _, tc := range []struct {
		name  string
		opts  subagent.Options
		args  string
		child []script.Response
		want  string
	}{
		{"text", subagent.Options{}, task, []script.Response{script.Text("found it", 1)}, "found it"},
		{"nothing", subagent.Options{}, task, []script.Response{script.Chunks(dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}})}, "The sub-agent completed and said nothing."},
		{"cut off", subagent.Options{}, task, []script.Response{script.MaxTokens("half")}, "SubagentError CHILD_MAX_TOKENS: Error: the sub-agent was cut off by its token limit\nIts partial output:\nhalf"},
		{"failed", subagent.Options{}, task, []script.Response{script.Error(&dsh.Failure{Code: dsh.CodeAuth, Message: "bad key"})}, "SubagentError AUTH: Error: the sub-agent failed with AUTH: bad key"},
		{"too deep", subagent.Options{Tools: []subagent.Tool{{MaxDepth: new(int)}}}, task, nil, "SubagentError DEPTH_LIMIT: Error: a sub-agent here would have depth 1, and the limit is 0; do the work yourself"},
		{"no background", subagent.Options{Tools: []subagent.Tool{{Background: subagent.Refused}}}, `{"description":"d","prompt":"p","run_in_background":true}`, nil, "SubagentError CONTINUATION_UNAVAILABLE: Error: sub-agents of subagent do not work in the background; leave run_in_background out"},
		{"nothing is kept", subagent.Options{Ephemeral: true}, `{"description":"d","prompt":"p","run_in_background":true}`, nil, "SubagentError PERSISTENCE_UNAVAILABLE: Error: sub-agents cannot work in the background because sessions are not kept; set run_in_background to false"},
		{
			"structured", subagent.Options{Tools: []subagent.Tool{{Structured: true}}},
			`{"description":"d","prompt":"p","output_schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`,
			[]script.Response{calls("structured_output", `{"n":"x"}`), calls("structured_output", `{"n":7}`, "list_agents", "{}")}, `{"n":7}`,
		},
		{
			"not structured", subagent.Options{Tools: []subagent.Tool{{Structured: true}}},
			`{"description":"d","prompt":"p","output_schema":{"type":"object"}}`,
			nil, "SubagentError NO_STRUCTURED_OUTPUT: Error: the sub-agent failed with NO_STRUCTURED_OUTPUT: it ended without calling structured_output\nIts partial output:\ndone",
		},
		{
			"bad schema", subagent.Options{Tools: []subagent.Tool{{Structured: true}}},
			`{"description":"d","prompt":"p","output_schema":{"type":"array"}}`, nil, "SubagentError UNSUPPORTED_SCHEMA: ",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := start(t, tc.opts, steps(map[int][]script.Response{0: {calls("subagent", tc.args)}, 1: tc.child}))
				if o, err := a.Run(t.Context(), "go"); err != nil || !o.OK() {
					t.Fatalf("%+v, %v", o, err)
				}
				got := results(t, a)
				if len(got) != 1 || got[0] != tc.want && (!strings.HasSuffix(tc.want, ": ") || !strings.HasPrefix(got[0], tc.want)) {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// A background child reports, settles, is listed, gets another message, and its
// parent hears of all of it.
func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var id string
		a := start(t, subagent.Options{Tools: []subagent.Tool{{Background: subagent.ByDefault}}}, func(i dsh.Initiator, req *dsh.Request) script.Response {
			last := req.Messages[len(req.Messages)-1]
			kind, sender := delegation.Sender(last)
			text := dsh.TextOf(last.Content)
			r, _ := last.Content[0].(dsh.ToolResult)
			switch {
			case i.Depth == 1 && strings.Contains(text, "once more"):
				return script.Text("did it again", 1)
			case i.Depth == 1 && text == "" && len(r.Content) > 0:
				return script.Text("did it", 1)
			case i.Depth == 1:
				return calls("report", `{"output":"half way"}`)
			case text == "go":
				return calls("subagent", task)
			case kind == delegation.SettledSource && id == "":
				id = string(sender)
				return calls("list_agents", "{}", "send_message", `{"subagent_id":"`+id+`","message":"once more"}`,
					"interrupt_agent", `{"agent_id":"`+id+`"}`, "send_message", `{"subagent_id":"top","message":"x"}`)
			}
			return script.Text("noted", 1)
		})
		if err := a.Followup(t.Context(), dsh.UserText("go")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := results(t, a)
		if len(got) != 5 || got[1] != id+" [ready] — job" || !strings.HasPrefix(got[4], "SubagentError UNAUTHORIZED") {
			t.Fatalf("results %q", got)
		}
		state, err := a.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var heard []string
		for _, m := range state.Messages {
			if kind, _ := delegation.Sender(m); kind != "" {
				heard = append(heard, kind)
			}
		}
		if want := []string{delegation.ReportSource, delegation.SettledSource, delegation.SettledSource}; !slices.Equal(heard, want) {
			t.Errorf("the parent heard %q", heard)
		}
	})
}

func TestCapture(t *testing.T) {
	if _, err := subagent.Structured(json.RawMessage(`{"type":"string"}`)); !errors.Is(err, &delegation.Error{Code: delegation.CodeSchema}) {
		t.Errorf("Structured = %v", err)
	}
}

func TestKinds(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	write := func(dir, name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(dir, "reviewer.md", "---\nname: reviewer\ndescription: \"Reads code.\"\ntools: [read_file, search]\nmodel: openai/gpt-5\n---\nYou review.\n\nBe strict.\n")
	write(dir, "writer.md", "---\ndescription: Writes.\ntools:\n  - write_file\n---\n")
	write(home, "reviewer.md", "---\ndescription: hidden\n---\n")
	write(home, "scout.md", "---\ndescription: Looks.\n---\nLook.")
	kinds, err := subagent.LoadKinds(dir, home, filepath.Join(dir, "none"))
	if err != nil {
		t.Fatal(err)
	}
	want := []subagent.Kind{
		{Name: "reviewer", Description: "Reads code.", Tools: []string{"read_file", "search"}, Provider: "openai", Model: "gpt-5", Persona: "You review.\n\nBe strict."},
		{Name: "writer", Description: "Writes.", Tools: []string{"write_file"}},
		{Name: "scout", Description: "Looks.", Persona: "Look."},
	}
	if len(kinds) != len(want) {
		t.Fatalf("kinds %+v", kinds)
	}
	for i, k := range kinds {
		k.File = ""
		a, _ := json.Marshal(k)
		b, _ := json.Marshal(want[i])
		if string(a) != string(b) {
			t.Errorf("kind %s, want %s", a, b)
		}
	}
	for _, tc := range []struct{ content, want string }{
		{"hello", "k.md:1: the file must begin"},
		{"---\nname: a\n", "k.md:3: the front matter has no end"},
		{"---\nname: a\ncolour: red\ndescription: d\n---\n", `k.md:3: there is no field "colour"`},
		{"---\nname: a\nname: b\ndescription: d\n---\n", `k.md:3: "name" is there twice`},
		{"---\nname: A b\ndescription: d\n---\n", "the name"},
		{"---\nname: a\n---\n", "k.md:3: a description is missing"},
		{"---\nnonsense\ndescription: d\n---\n", "k.md:2:"},
	} {
		if _, err := subagent.ParseKind("k.md", tc.content); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.content, err, tc.want)
		}
	}
}
