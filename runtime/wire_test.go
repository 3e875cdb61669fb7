package runtime_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/actors/llm/openai"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/policy/retry"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// wired returns a runtime before a scripted server.
func wired(t *testing.T, o runtime.Options, script ...llmtest.Response) (*runtime.Runtime, *llmtest.Server) {
	t.Helper()
	srv := llmtest.NewServer(t, script...)
	p, err := openai.New(openai.Options{BaseURL: srv.URL, Dialect: openai.DialectGeneric})
	if err != nil {
		t.Fatal(err)
	}
	o.Providers = map[string]llm.Provider{"p": p}
	rt, err := runtime.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
		p.CloseIdleConnections()
	})
	return rt, srv
}

func value[T any](v T) *T { return &v }

// What an agent asks for is sent, logged and folded; it survives resume, and a
// change is logged once.
func TestParametersAreLoggedAndSent(t *testing.T) {
	store := memory.New()
	rt, srv := wired(t, runtime.Options{Store: store}, llmtest.Text("a"), llmtest.Text("b"), llmtest.Text("c"))
	spec := runtime.Spec{
		ID: "a", Session: "s", Provider: "p", Model: "m", Temperature: value(0.0), TopP: value(0.9), Seed: value(int64(7)),
		Logprobs: true, ExtraBody: map[string]any{"z": "<", "min_p": 0.1}, ExtraHeaders: http.Header{"X-Run": {"token-of-a-gateway"}},
	}
	a, err := rt.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if o, err := a.Run(t.Context(), "hi"); err != nil || !o.OK() {
			t.Fatal(o, err)
		}
	}
	types := func(a *runtime.Agent) (logged []string) {
		for ev, err := range a.Events(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			line := ev.AppendJSON(nil)
			if bytes.Contains(line, []byte("token-of-a-gateway")) {
				t.Errorf("a header is in the log: %s", line)
			}
			switch ev.Type() {
			case dsh.TypeParameters, dsh.TypeRequestHeader:
				logged = append(logged, ev.Type())
				if ev.Ignorable != (ev.Type() == dsh.TypeParameters) {
					t.Errorf("%s is ignorable: %v", ev.Type(), ev.Ignorable)
				}
				if ev.Type() == dsh.TypeRequestHeader && bytes.Contains(line, []byte("seed")) {
					t.Errorf("the header is not the format's: %s", line)
				}
			}
		}
		return logged
	}
	if got := strings.Join(types(a), " "); got != "dsh-actor/parameters request/header" {
		t.Errorf("logged %s", got)
	}
	if err := a.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	spec.Seed = value(int64(8))
	b, err := rt.Resume(t.Context(), "s", spec)
	if err != nil {
		t.Fatal(err)
	}
	if o, err := b.Run(t.Context(), "hi"); err != nil || !o.OK() {
		t.Fatal(o, err)
	}
	if got := strings.Join(types(b), " "); got != "dsh-actor/parameters request/header dsh-actor/parameters request/header" {
		t.Errorf("logged %s", got)
	}
	for i, r := range srv.Requests() {
		seed := `"seed":7`
		if i == 2 {
			seed = `"seed":8`
		}
		for _, want := range []string{`"temperature":0,"top_p":0.9,` + seed + `,"logprobs":true`, `"min_p":0.1,"z":"<"`} {
			if !strings.Contains(string(r.Body), want) {
				t.Errorf("request %d lacks %s: %s", i, want, r.Body)
			}
		}
		if r.Header.Get("X-Run") != "token-of-a-gateway" {
			t.Errorf("request %d has headers %v", i, r.Header)
		}
	}
}

// W8 and its like twice, then a good answer, at each level: the server counts
// exactly one request and the retries.
func TestOneOwnerOfRetries(t *testing.T) {
	call := llmtest.ToolCalls(dsh.ToolCall{ID: "c", Name: "x", Arguments: `{"p":1}`})
	empty := llmtest.Text()
	for _, tt := range []struct {
		name  string
		level retry.Truncated
		fault llmtest.Response
		times int
		want  int // requests
		ok    bool
	}{
		{"a call cut, never", retry.TruncatedNever, call.EndAfter(2), 1, 1, false},
		{"a call cut, unseen", retry.TruncatedUnseen, call.EndAfter(2), 2, 3, true},
		{"a call cut, always", retry.TruncatedAlways, call.EndAfter(2), 2, 3, true},
		{"text, never", retry.TruncatedNever, llmtest.Text("half").EndAfter(2), 1, 1, false},
		{"text, unseen", retry.TruncatedUnseen, llmtest.Text("half").EndAfter(2), 1, 1, false},
		{"text, always", retry.TruncatedAlways, llmtest.Text("half").EndAfter(2), 2, 3, true},
		{"empty twice", "", empty, 2, 3, true},
		{"empty for ever", "", empty, 3, 3, false},
		{"500 for ever", "", llmtest.Status(500, "no"), 6, 6, false},
		{"400", "", llmtest.Status(400, "no"), 1, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rt, srv := wired(t, runtime.Options{Hooks: []any{retry.New(retry.Options{Initial: time.Millisecond, Truncated: tt.level})}})
			for range tt.times {
				srv.Add(tt.fault)
			}
			if tt.ok {
				srv.Add(llmtest.Text("whole"))
			}
			a, err := rt.Create(t.Context(), runtime.Spec{Provider: "p", Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			o, err := a.Run(t.Context(), "hi")
			if err != nil || o.OK() != tt.ok {
				t.Errorf("%+v, %v", o, err)
			}
			retries := 0
			for ev := range a.Events(t.Context(), 0) {
				if ev.Type() == dsh.TypeRetryStarted {
					retries++
				}
			}
			if n := len(srv.Requests()); n != tt.want || retries != n-1 {
				t.Errorf("%d requests and %d retries, want %d", n, retries, tt.want)
			}
		})
	}
}

// Usage sums attempts per session and per run.
func TestUsageOfSessionsAndRuns(t *testing.T) {
	rt, _ := wired(t, runtime.Options{Hooks: []any{retry.New(retry.Options{Initial: time.Millisecond})}},
		llmtest.Text("a").Usage(10, 30, 5), llmtest.Text("b").Usage(1, 0, 1).Finish("error"), llmtest.Text("b").Usage(2, 6, 1))
	for range 2 {
		a, err := rt.Create(t.Context(), runtime.Spec{Provider: "p", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		if o, err := a.Run(t.Context(), "hi"); err != nil || !o.OK() {
			t.Fatal(o, err)
		}
		l, err := a.Usage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n, u := l.Total(); n == 0 || u.OutputTokens == 0 {
			t.Errorf("%d requests, %+v", n, u)
		}
	}
	l, err := rt.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := l.Routes()
	if len(r) != 1 || r[0].Requests != 3 || r[0].Failed != 1 || r[0].Usage.InputTokens != 13 || r[0].Usage.OutputTokens != 7 || *r[0].Usage.CacheReadTokens != 36 {
		t.Errorf("run %+v", r)
	}
}

func TestLimitsAreChecked(t *testing.T) {
	_, err := runtime.New(runtime.Options{Limits: map[string]llm.Limits{"nobody": {Concurrency: -1}}})
	if err == nil || !strings.Contains(err.Error(), `limits of "nobody": there is no such provider`) || !strings.Contains(err.Error(), "negative") {
		t.Errorf("error %v", err)
	}
}
