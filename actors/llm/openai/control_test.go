package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// What an agent asks for of its own is in the body, in one order, behind what
// the provider adds.
func TestParametersInTheBody(t *testing.T) {
	req := request()
	req.Header.Config.Stop = []string{"x"}
	req.Header.Config.Parameters = dsh.Parameters{
		TopP: ptr(0.0), Seed: ptr(int64(0)), Logprobs: true, TopLogprobs: 2,
		Body: json.RawMessage(`{"top_k":5,"stream_options":null,"min_p":0.1,"a":"<"}`),
	}
	o := Options{Dialect: DialectGeneric, ExtraBody: map[string]any{"top_k": 1, "best_of": 1}}
	const want = `"stream":true,"top_p":0,"seed":0,"logprobs":true,"top_logprobs":2,"stop":["x"],"best_of":1,"top_k":5,"min_p":0.1,"a":"<"}`
	first := body(t, o, req)
	if !strings.HasSuffix(first, want) {
		t.Errorf("body\n%s, want at its end\n%s", first, want)
	}
	for range 100 {
		if body(t, o, req) != first {
			t.Fatal("the bytes differ")
		}
	}
}

func TestParametersThatCannotBeSent(t *testing.T) {
	for name, p := range map[string]dsh.Parameters{
		"the adapter's own": {Body: json.RawMessage(`{"messages":[]}`)},
		"no object":         {Body: json.RawMessage(`[1]`)},
		"cut":               {Body: json.RawMessage(`{"a":`)},
	} {
		req := request()
		req.Header.Config.Parameters = p
		t.Run(name, func(t *testing.T) {
			collect(t, newProvider(t, Options{}).Stream(t.Context(), req)).wantFailure(t, dsh.CodeInvalid)
		})
	}
	// DeepSeek refuses log probabilities while it thinks; no request is made.
	req := request()
	req.Header.Config.Parameters.Logprobs = true
	out := collect(t, newProvider(t, Options{Dialect: DialectDeepSeek}).Stream(t.Context(), req))
	out.wantFailure(t, dsh.CodeInvalid)
	req.Header.Config.ReasoningEffort = "none"
	if got := body(t, Options{Dialect: DialectDeepSeek}, req); !strings.Contains(got, `"logprobs":true`) {
		t.Error(got)
	}
}

func TestLogprobsComeBack(t *testing.T) {
	out := ask(t, Options{}, request(), data(
		`{"choices":[{"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.1}]}}]}`,
		`{"choices":[{"delta":{"content":"b"},"logprobs":{"content":[{"token":"b","logprob":-0.2}]}}]}`,
		`{"choices":[{"delta":{},"logprobs":null,"finish_reason":"stop"}]}`))
	out.want(t, dsh.FinishStop, dsh.Text{Text: "ab"})
	m := answered(out, "test", "test-model")
	got := Logprobs(m)
	if len(got) != 2 || string(got[1]) != `{"token":"b","logprob":-0.2}` {
		t.Errorf("logprobs %s", got)
	}
	if next := body(t, Options{}, request(m)); strings.Contains(next, "logprob") {
		t.Errorf("sent back: %s", next)
	}
}

// answered makes the message that the loop would log.
func answered(o outcome, provider, model string) *dsh.Message {
	m := &dsh.Message{Role: dsh.RoleAssistant, Content: o.blocks}
	from := dsh.ModelSource{Provider: provider, Model: model}
	for _, c := range o.chunks {
		if f, ok := c.(dsh.Finish); ok {
			from.ReplayState = f.ReplayState
		}
	}
	m.Source = from
	return m
}

// OpenRouter's reasoning details go back whole to the model that sent them,
// and to no other.
func TestReasoningDetailsGoBack(t *testing.T) {
	out := ask(t, Options{}, request(), data(
		delta(`{"reasoning":"see ","reasoning_details":[{"type":"reasoning.text","text":"see ","index":0,"format":"f"}]}`),
		delta(`{"reasoning":"it","reasoning_details":[{"type":"reasoning.text","text":"it","index":0,"signature":"sig"}]}`),
		delta(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"AA==","index":1}]}`),
		callDelta(`{"index":0,"id":"c","function":{"name":"read","arguments":"{}"}}`), finished("tool_calls")))
	out.want(t, dsh.FinishToolCalls, dsh.Reasoning{Text: "see it"}, dsh.ToolCall{ID: "c", Name: "read", Arguments: "{}"})
	history := func(provider, model string) string {
		return body(t, Options{Dialect: DialectGeneric}, request(answered(out, provider, model), result("c")))
	}
	const want = `"reasoning_details":[{"type":"reasoning.text","text":"see it","index":0,"format":"f","signature":"sig"},` +
		`{"type":"reasoning.encrypted","data":"AA==","index":1}]`
	if got := history("test", "test-model"); !strings.Contains(got, want) {
		t.Errorf("sent back\n%s, want in it\n%s", got, want)
	}
	for _, other := range [][2]string{{"test", "other"}, {"other", "test-model"}} {
		if got := history(other[0], other[1]); strings.Contains(got, "reasoning_details") {
			t.Errorf("sent to another: %s", got)
		}
	}
}

func TestReasoningInDetailsOnly(t *testing.T) {
	ask(t, Options{}, request(), data(
		delta(`{"reasoning_details":[{"type":"reasoning.summary","summary":"thought"}]}`), delta(`{"content":"a"}`), finished("stop"),
	)).want(t, dsh.FinishStop, dsh.Reasoning{Text: "thought"}, dsh.Text{Text: "a"})
}

// Gemini's signatures go back with the call that they came with.
func TestExtraContentGoesBack(t *testing.T) {
	const signature = `"extra_content":{"google":{"thought_signature":"s=="}}`
	out := ask(t, Options{}, request(), data(
		callDelta(`{"index":0,"id":"a","function":{"name":"read","arguments":"{}"},`+signature+`},`+
			`{"index":1,"id":"b","function":{"name":"read","arguments":"{}"}}`),
		finished("stop")))
	got := body(t, Options{}, request(answered(out, "test", "test-model"), result("a"), result("b")))
	if want := `"arguments":"{}"},` + signature + `},{"id":"b"`; !strings.Contains(got, want) || strings.Count(got, "extra_content") != 1 {
		t.Errorf("sent back\n%s, want in it\n%s", got, want)
	}
}

// The base URL names whose request it is; values cannot leave their segment.
func TestBaseURLTemplate(t *testing.T) {
	var mu sync.Mutex
	var paths []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, r.RequestURI)
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`)
	}))
	defer srv.Close()
	p := newProvider(t, Options{BaseURL: srv.URL + "/g/{agent}/{session}/{attempt}/v1"})
	defer p.CloseIdleConnections()
	req := request()
	req.Session, req.Pos = "s/1", dsh.Pos{Turn: 1, Step: 2, Attempt: 3}
	for _, agent := range []dsh.AgentID{"a b?", "..", ""} {
		ctx := dsh.WithInitiator(t.Context(), dsh.Initiator{Agent: agent})
		collect(t, p.Stream(ctx, req)).want(t, dsh.FinishStop, dsh.Text{Text: "a"})
	}
	want := []string{
		"/g/a%20b%3F/s%2F1/1.2.3/v1/chat/completions", "/g/%2E%2E/s%2F1/1.2.3/v1/chat/completions",
		"/g/-/s%2F1/1.2.3/v1/chat/completions",
	}
	if !slices.Equal(paths, want) {
		t.Errorf("paths %q, want %q", paths, want)
	}
	for _, bad := range []string{"http://h/{user}/v1", "http://{agent}/v1", "http://x.{session}:80/v1"} {
		if _, err := New(Options{BaseURL: bad}); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// An agent's own headers are sent with its requests only.
func TestOwnHeaders(t *testing.T) {
	srv := llmtest.NewServer(t, llmtest.Text("a"), llmtest.Text("b"))
	p := newProvider(t, Options{BaseURL: srv.URL, Headers: http.Header{"X-Team": {"all"}}})
	collect(t, p.Stream(llm.WithHeaders(t.Context(), http.Header{"X-Team": {"mine"}, "X-Run": {"7"}}), request()))
	collect(t, p.Stream(t.Context(), request()))
	got := srv.Requests()
	if h := got[0].Header; h.Get("X-Team") != "mine" || h.Get("X-Run") != "7" {
		t.Errorf("first %v", h)
	}
	if h := got[1].Header; h.Get("X-Team") != "all" || h.Get("X-Run") != "" {
		t.Errorf("second %v", h)
	}
	bad := llm.WithHeaders(t.Context(), http.Header{"X-Run": {"7\n8"}})
	collect(t, p.Stream(bad, request())).wantFailure(t, dsh.CodeInvalid)
}

// A failure may quote what its agent's own headers hold: it does not.
func TestOwnHeadersAreSecret(t *testing.T) {
	srv := llmtest.NewServer(t, llmtest.Status(401, `{"error":{"message":"no token my-gateway-token"}}`))
	p := newProvider(t, Options{BaseURL: srv.URL})
	ctx := llm.WithHeaders(t.Context(), http.Header{"X-Token": {"my-gateway-token"}})
	if f := collect(t, p.Stream(ctx, request())).failure(t); strings.Contains(f.Message, "my-gateway") {
		t.Error(f.Message)
	}
}

// A refusal tells what was asked, without what was said.
func TestShapeOfARefusedRequest(t *testing.T) {
	srv := llmtest.NewServer(t, llmtest.Status(400, `{"error":{"message":"no"}}`))
	p := newProvider(t, Options{BaseURL: srv.URL, Dialect: DialectGeneric})
	f := collect(t, p.Stream(t.Context(), conversation(2))).failure(t)
	const want = "openai: status 400: no [request: 6 messages, 1 tools, "
	const shape = " bytes: 0 system, 1 user, 2 assistant empty reasoning calls c0, 3 tool c0, 4 assistant empty reasoning calls c1, 5 tool c1]"
	if !strings.HasPrefix(f.Message, want) || !strings.HasSuffix(f.Message, shape) {
		t.Errorf("message %q", f.Message)
	}
	srv.Add(llmtest.Status(422, strings.Repeat("x", 5000)))
	f = collect(t, p.Stream(t.Context(), conversation(400))).failure(t)
	if len(f.Message) > 2000 || !strings.Contains(f.Message, ": … 778 assistant") || strings.Contains(f.Message, "go <on>") {
		t.Errorf("%d bytes: %s", len(f.Message), f.Message)
	}
	srv.Add(llmtest.Status(500, `{"error":{"message":"no"}}`))
	if f = collect(t, p.Stream(t.Context(), conversation(1))).failure(t); strings.Contains(f.Message, "[request") {
		t.Error(f.Message)
	}
}

// Waits that are told elsewhere than in Retry-After.
func TestRetryTold(t *testing.T) {
	rate := func(text string) llmtest.Response {
		return llmtest.Status(429, `{"error":{"message":`+string(mustJSON(text))+`}}`)
	}
	for _, tt := range []struct {
		name string
		resp llmtest.Response
		want string
	}{
		{"seconds", rate("Rate limit reached. Please try again in 20s. Visit x"), "20000"},
		{"parts", rate("Please try again in 1m2.5s."), "62500"},
		{"ms", rate("try again in 250ms."), "250"},
		{"words", rate("Retry after 3 minutes"), "180000"},
		{"Gemini", rate("Please retry in 5.5s."), "5500"},
		{"no wait", rate("try again later"), "-"},
		{"no number", rate("retry in a while, 20 s"), "-"},
		{"the header first", rate("try again in 20s").Header("Retry-After", "2"), "2000"},
		{"in the stream", llmtest.Text("a").ErrorAfter(1, `{"code":429,"message":"try again in 7s"}`), "7000"},
		{"not of another failure", llmtest.Status(500, "try again in 20s"), "-"},
		{"what is used up", rate("no").Header("X-Ratelimit-Reset-Requests", "1s").Header("X-Ratelimit-Remaining-Requests", "9").
			Header("X-Ratelimit-Reset-Tokens", "6m0s").Header("X-Ratelimit-Remaining-Tokens", "0"), "360000"},
		{"nothing said of what remains", rate("no").Header("X-Ratelimit-Reset", "12"), "12000"},
		{"enough remains", rate("no").Header("X-Ratelimit-Reset", "12").Header("X-Ratelimit-Remaining", "3"), "-"},
		{"nonsense", rate("no").Header("X-Ratelimit-Reset", "soon"), "-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := ask(t, Options{}, request(), tt.resp).failure(t)
			if got := told(f.ProviderRetryAfterMs); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	now := time.Unix(1_800_000_000, 0)
	for value, want := range map[string]string{"1800000010": "10000", "1800000010500": "10500", "1700000000": "0", "17ms": "17", "NaN": "-"} {
		if got := told(resetWait(value, now)); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

// A stall is told of before it ends the request, keep-alives or not, and an
// answer that comes on is not.
func TestQuietIsTold(t *testing.T) {
	var mu sync.Mutex
	var said []Quiet
	o := Options{QuietAfter: 20 * time.Second, IdleTimeout: 2 * time.Minute}
	o.Quiet = func(_ context.Context, q Quiet) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, q)
	}
	_, err := watch(t, o, func(w *io.PipeWriter) {
		for range 10 {
			say(w, token)
			time.Sleep(15 * time.Second)
		}
		for range 3 {
			say(w, ": keep-alive")
			time.Sleep(30 * time.Second)
		}
		time.Sleep(time.Hour)
	}, nil)
	if err == nil {
		t.Fatal("no stall")
	}
	want := []Quiet{
		{20 * time.Second, 5 * time.Second, 115 * time.Second},
		{40 * time.Second, 25 * time.Second, 95 * time.Second},
		{80 * time.Second, 5 * time.Second, 115 * time.Second},
		{160 * time.Second, 85 * time.Second, 35 * time.Second},
	}
	if !slices.Equal(said, want) {
		t.Errorf("said %v, want %v", said, want)
	}
	said = nil
	_, _ = watch(t, o, func(w *io.PipeWriter) { say(w, token); say(w, ended...) }, func(dsh.Chunk) { time.Sleep(time.Hour) })
	if len(said) != 0 {
		t.Errorf("a slow consumer is silence: %v", said)
	}
}

// An end that the server made is told from a connection that broke.
func TestClosedAndBroken(t *testing.T) {
	for name, tt := range map[string]struct {
		resp   llmtest.Response
		closed bool
	}{
		"closed":            {llmtest.Text("a").EndAfter(2), true},
		"closed at half":    {llmtest.Body("data: {\"choi"), true},
		"no finish reason":  {llmtest.Raw("data: "+delta(`{"content":"a"}`), "data: [DONE]"), true},
		"broken":            {llmtest.Text("a").CutAfter(2), false},
		"broken in a chunk": {llmtest.Text("a").CutInside(2), false},
	} {
		err := ask(t, Options{}, request(), tt.resp).err
		if !isTruncated(err) || isClosed(err) != tt.closed {
			t.Errorf("%s: %v, closed %v", name, err, isClosed(err))
		}
	}
}

func isTruncated(err error) bool { return errors.Is(err, ErrTruncated) }
func isClosed(err error) bool    { return errors.Is(err, dsh.ErrStreamClosed) }
