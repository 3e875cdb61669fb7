package audit_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/policy/audit"
	"github.com/dsh-actor/dsh-actor/policy/retry"
	"github.com/dsh-actor/dsh-actor/replay"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an audited runtime with one scripted provider and sessions in files.
type world struct {
	*runtime.Runtime
	t     *testing.T
	store *jsonl.Store
	model *script.Provider
}

func newWorld(t *testing.T, hooks []any, responses ...script.Response) *world {
	t.Helper()
	store, err := jsonl.Open(t.TempDir(), jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: store, model: script.New(script.Options{Record: true}, responses...)}
	w.Runtime, err = runtime.New(runtime.Options{
		Providers: map[string]llm.Provider{"mock": w.model}, Store: store,
		Hooks: append([]any{audit.Witness{}}, hooks...),
		Tools: []tool.Tool{tool.Func("echo", "Say it again.", func(_ context.Context, in struct {
			Text string `json:"text"`
		},
		) (string, error) {
			return in.Text, nil
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.close() })
	return w
}

func (w *world) close() {
	w.t.Helper()
	if err := w.Close(context.Background()); err != nil {
		w.t.Errorf("Close: %v", err)
	}
}

func (w *world) agent(spec runtime.Spec) *runtime.Agent {
	w.t.Helper()
	spec.Provider, spec.Model = "mock", "m"
	a, err := w.Create(w.t.Context(), spec)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) run(a *runtime.Agent, prompt string) {
	w.t.Helper()
	if _, err := a.Run(w.t.Context(), prompt); err != nil {
		w.t.Fatal(err)
	}
}

// replay reads every session back from its file and replays it.
func (w *world) replay() map[dsh.SessionID]*replay.Report {
	w.t.Helper()
	reports := map[dsh.SessionID]*replay.Report{}
	for h, err := range w.store.List(context.Background()) {
		if err != nil {
			w.t.Fatal(err)
		}
		log, err := w.store.OpenReader(context.Background(), h.ID)
		if err != nil {
			w.t.Fatal(err)
		}
		events, err := log.Read(context.Background(), 0, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range events {
			if err := dsh.CheckKnown(&events[i]); err != nil {
				w.t.Errorf("%s: %v", h.ID, err)
			}
		}
		reports[h.ID] = replay.Run(log.Header(), events)
	}
	return reports
}

// wantSame expects that all requests were compared and are the same, so many in
// each session.
func (w *world) wantSame(sessions map[dsh.SessionID]int) {
	w.t.Helper()
	reports := w.replay()
	if len(reports) != len(sessions) {
		w.t.Errorf("%d sessions, want %d", len(reports), len(sessions))
	}
	for id, report := range reports {
		for _, found := range report.Findings {
			w.t.Errorf("%s: %v", id, found)
		}
		for _, r := range report.Requests {
			if r.Digest != replay.Same {
				w.t.Errorf("%s: request %v: %q", id, r.Pos, r.Digest)
			}
		}
		if n := len(report.Requests); n != sessions[id] {
			w.t.Errorf("%s: %d requests, want %d", id, n, sessions[id])
		}
	}
}

// busy are hooks that change what a request is in every way that is allowed.
type busy struct{}

func (busy) Prompt(ctx context.Context, a hook.Assembly, next hook.PromptFunc) (hook.Assembly, error) {
	a.Sections = append(a.Sections, hook.Section{Name: "rules", Text: "Turn {{turn}}."})
	a.Variables["turn"] = a.Pos.String()
	a.Context = append(a.Context, hook.Section{Name: "clock", Text: "now " + a.Pos.String()})
	return next(ctx, a)
}

func (busy) PreStep(ctx context.Context, s hook.Step, next hook.PreStepFunc) (hook.Decision, error) {
	s.Messages = append(s.Messages, dsh.PluginText("busy", "mind the gap"))
	return next(ctx, s)
}

func (busy) Request(ctx context.Context, p hook.Proposal, next hook.RequestFunc) (dsh.CallConfig, error) {
	seed := int64(p.Pos.Turn)
	p.Config.Parameters.Seed = &seed
	p.Config.MaxTokens = 100 + p.Pos.Attempt
	return next(ctx, p)
}

// Stream makes a request of its own, as a hook that caches would.
func (busy) Stream(ctx context.Context, req *dsh.Request, next hook.StreamFunc) iter.Seq2[dsh.Chunk, error] {
	same := *req
	return next(ctx, &same)
}

func TestSoundRequestsReplay(t *testing.T) {
	usage := &dsh.Usage{InputTokens: 7, OutputTokens: 3}
	unfit := &dsh.Failure{Code: dsh.CodeServer, Message: "busy"}
	w := newWorld(
		t, []any{busy{}, retry.New(retry.Options{Initial: 1, Max: 1})},
		script.Error(unfit, dsh.TextDelta{Text: "I"}),
		script.Response{script.Fail{Err: unfit}},
		script.Answer{Reasoning: "hm <&> \u2028", Calls: []dsh.ToolCall{
			{ID: "c1", Name: "echo", Arguments: `{"text":"a"}`}, {ID: "c2", Name: "echo", Arguments: `{"text":`},
		}, Usage: usage}.Response(),
		script.Text("done \xff", 2),
		script.MaxTokens("cut"),
		script.Text("resumed", 3),
		script.Text("forked", 1),
		script.Text("of the child", 1),
	)
	a := w.agent(runtime.Spec{ID: "a", Session: "a", System: "You are careful."})
	w.run(a, "go \xff")
	w.run(a, "go on")
	if err := a.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, err := w.Resume(t.Context(), "a", runtime.Spec{ID: "a", Provider: "mock", Model: "other"})
	if err != nil {
		t.Fatal(err)
	}
	w.run(a, "and again")
	b, err := w.Fork(t.Context(), "a", runtime.End, runtime.Spec{ID: "b", Session: "b", Provider: "mock", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	w.run(b, "elsewhere")
	child, err := b.Spawn(t.Context(), runtime.ChildSpec{ID: "child", Label: "look"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := child.Run(t.Context(), "look"); err != nil {
		t.Fatal(err)
	}
	w.close()
	w.wantSame(map[dsh.SessionID]int{"a": 6, "b": 7, "child": 1})
}

// Facts that come while a request is under way are no part of it: the record
// says through which event it was derived.
func TestRequestsAreThoseOfTheirEvent(t *testing.T) {
	var a *runtime.Agent
	note := func(id dsh.MessageID, op dsh.SurfaceOp, sources *dsh.Sources) script.Step {
		return script.Do{Func: func(ctx context.Context) {
			m := dsh.UserText("note " + string(id))
			m.ID = id
			if _, err := a.Append(ctx, dsh.UserMessage{Message: m}, op, sources); err != nil {
				t.Error(err)
			}
		}}
	}
	surface := func(op func([]dsh.Seq) (dsh.SurfaceOp, *dsh.Sources), id dsh.MessageID) script.Step {
		return script.Do{Func: func(ctx context.Context) {
			state, err := a.State(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			where, sources := op(state.Surface)
			note(id, where, sources).(script.Do).Func(ctx)
		}}
	}
	all := func(s []dsh.Seq) (dsh.SurfaceOp, *dsh.Sources) {
		return dsh.Replace(s[0], s[len(s)-1]), dsh.Cite(s...)
	}
	w := newWorld(
		t, []any{retry.New(retry.Options{Initial: 1, Max: 1})},
		append(script.Response{note("n1", dsh.Append, nil), surface(all, "n2")}, script.Text("one", 1)...),
		append(script.Response{surface(all, "n3")}, script.Error(&dsh.Failure{Code: dsh.CodeServer, Message: "no"})...),
		append(script.Response{note("n4", dsh.Append, nil)}, script.Text("two", 3)...),
	)
	a = w.agent(runtime.Spec{ID: "a", Session: "a"})
	w.run(a, "first")
	w.run(a, "second")
	w.close()
	w.wantSame(map[dsh.SessionID]int{"a": 3})
	report := w.replay()["a"]
	for i, sent := range w.model.Requests() {
		r := report.Requests[i]
		if len(r.Messages) != len(sent.Messages) || r.Through != sent.Through {
			t.Errorf("request %v: %d messages through %d, sent %d through %d",
				r.Pos, len(r.Messages), r.Through, len(sent.Messages), sent.Through)
		}
	}
}

// streams is a stream hook that is a function.
type streams func(req dsh.Request) *dsh.Request

func (f streams) Stream(ctx context.Context, req *dsh.Request, next hook.StreamFunc) iter.Seq2[dsh.Chunk, error] {
	return next(ctx, f(*req))
}

// A hook that changes a request behind the log is found, whether the runtime has
// it or the agent alone, and what it changed is told.
func TestSmuggledRequestsAreFound(t *testing.T) {
	for _, tc := range []struct {
		name string
		hook streams
		want []string
	}{
		{"a message more", func(r dsh.Request) *dsh.Request {
			r.Messages = append(r.Messages[:len(r.Messages):len(r.Messages)], dsh.UserText("psst"))
			return &r
		}, []string{"2 messages were sent, and the log yields 1 others", "4 messages were sent, and the log yields 3 others"}},
		{"a message less", func(r dsh.Request) *dsh.Request {
			if len(r.Messages) > 1 {
				r.Messages = r.Messages[:2]
			}
			return &r
		}, []string{"only the first 2 of the 3 messages that the log yields were sent"}},
		{"another message", func(r dsh.Request) *dsh.Request {
			if n := len(r.Messages); n > 1 {
				r.Messages = append(r.Messages[:n-1:n-1], dsh.UserText("psst"))
			}
			return &r
		}, []string{"the 3 messages that were sent are not all those that the log yields"}},
		{"the system prompt", func(r dsh.Request) *dsh.Request {
			h := *r.Header
			h.System += " Be rude."
			r.Header = &h
			return &r
		}, []string{"the system prompt", "the system prompt"}},
		{"the configuration", func(r dsh.Request) *dsh.Request {
			h := *r.Header
			h.Config.Parameters.Logprobs = true
			r.Header = &h
			return &r
		}, []string{"the configuration", "the configuration"}},
		{"the tools", func(r dsh.Request) *dsh.Request {
			h := *r.Header
			h.Tools = nil
			r.Header = &h
			return &r
		}, []string{"the list of tools", "the list of tools"}},
		{"a message in its place", func(r dsh.Request) *dsh.Request {
			if len(r.Messages) > 1 {
				r.Messages[0].Content[0] = dsh.Text{Text: "psst"} // which nobody may
			}
			return &r
		}, []string{"the 3 messages that were sent are not all those"}},
	} {
		for _, whose := range []string{"runtime's", "agent's"} {
			t.Run(tc.name+", the "+whose, func(t *testing.T) {
				var shared, own []any
				if whose == "runtime's" {
					shared = []any{tc.hook}
				} else {
					own = []any{tc.hook}
				}
				w := newWorld(t, shared, script.Text("one", 2), script.Text("two", 2))
				a := w.agent(runtime.Spec{ID: "a", Session: "a", Hooks: own})
				w.run(a, "first")
				w.run(a, "second")
				w.close()
				report := w.replay()["a"]
				if len(report.Findings) != len(tc.want) {
					t.Fatalf("findings %v", report.Findings)
				}
				for i, found := range report.Findings {
					if found.Kind != replay.KindDigest || !strings.HasPrefix(found.Text, tc.want[i]) {
						t.Errorf("finding %v, want %s", found, tc.want[i])
					}
				}
				last := report.Requests[1]
				if last.Digest != replay.Different || last.Findings != 1 {
					t.Errorf("request %+v", last)
				}
			})
		}
	}
}

// agent is one whose log takes nothing.
type agent struct{ hook.Agent }

var errFull = errors.New("full")

func (agent) Append(context.Context, dsh.Fact, dsh.SurfaceOp, *dsh.Sources) (dsh.Seq, error) {
	return 0, errFull
}

func TestNoRecordNoRequest(t *testing.T) {
	asked := 0
	next := func(context.Context, *dsh.Request) iter.Seq2[dsh.Chunk, error] {
		return func(yield func(dsh.Chunk, error) bool) {
			asked++
			yield(dsh.Finish{}, nil)
		}
	}
	req := &dsh.Request{Header: &dsh.Header{}, Pos: dsh.Pos{Turn: 1, Step: 2, Attempt: 3}}
	read := func(ctx context.Context) (n int, err error) {
		for _, err = range (audit.Witness{}).Stream(ctx, req, next) {
			n++
		}
		return n, err
	}
	if n, err := read(hook.WithAgent(t.Context(), agent{})); n != 1 || !errors.Is(err, errFull) || asked != 0 ||
		err.Error() != "audit: record request 1.2.3: full" {
		t.Errorf("%d chunks, asked %d times: %v", n, asked, err)
	}
	cancelled, cancel := context.WithCancelCause(hook.WithAgent(t.Context(), agent{}))
	cancel(errFull)
	if n, err := read(cancelled); n != 1 || !errors.Is(err, errFull) || err.Error() != "full" || asked != 0 {
		t.Errorf("cancelled: %d chunks, asked %d times: %v", n, asked, err)
	}
	if n, err := read(t.Context()); n != 1 || err != nil || asked != 1 {
		t.Errorf("of nobody: %d chunks, asked %d times: %v", n, asked, err)
	}
}

func BenchmarkRecord(b *testing.B) {
	req := &dsh.Request{Header: &dsh.Header{}}
	bytes := 0
	for range 1000 {
		m := dsh.UserText(strings.Repeat("what a long story ", 30))
		req.Messages = append(req.Messages, m)
		bytes += len(m.AppendJSON(nil))
	}
	b.SetBytes(int64(bytes))
	for b.Loop() {
		req.Digest()
	}
}
