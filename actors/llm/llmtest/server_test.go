package llmtest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

const goodRequest = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`

// post sends a request on a connection of its own.
func post(ctx context.Context, t *testing.T, url, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	return http.DefaultClient.Do(req) //nolint:bodyclose // the caller does.
}

func read(t *testing.T, url, body string) (status int, text string, err error) {
	t.Helper()
	resp, err := post(t.Context(), t, url, body)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// A response is a role, the reasoning, the text, two events per call, the
// finish, the usage and [DONE].
func TestResponse(t *testing.T) {
	srv := llmtest.NewServer(t,
		llmtest.Text("a", "<b>").Reasoning("r").ToolCalls(dsh.ToolCall{ID: "c", Name: "n", Arguments: "{}"}).Usage(3, 4, 5))
	status, text, err := read(t, srv.URL, goodRequest)
	if status != 200 || err != nil {
		t.Fatal(status, err)
	}
	events := strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n")
	want := []string{
		`"role":"assistant"`, `"reasoning_content":"r"`, `"content":"a"`, `"content":"\u003cb\u003e"`,
		`"id":"c","type":"function","function":{"name":"n","arguments":""}`, `"function":{"arguments":"{}"}`,
		`"finish_reason":"tool_calls"`, `"prompt_tokens":7,"completion_tokens":5`, "[DONE]",
	}
	if len(events) != len(want) {
		t.Fatalf("got %d events, want %d:\n%s", len(events), len(want), text)
	}
	for i := range want {
		if !strings.Contains(events[i], want[i]) {
			t.Errorf("event %d = %s, want %s in it", i, events[i], want[i])
		}
	}
	reqs := srv.Requests()
	if len(reqs) != 1 || string(reqs[0].Body) != goodRequest || reqs[0].HistoryError != nil {
		t.Errorf("requests = %+v", reqs)
	}
}

func TestFaults(t *testing.T) {
	whole := llmtest.Text("a", "b")
	tests := []struct {
		name   string
		resp   llmtest.Response
		status int
		want   string // the end of the body
		broken bool
	}{
		{name: "cut", resp: whole.CutAfter(2), status: 200, want: `"content":"a"`, broken: true},
		{name: "cut inside", resp: whole.CutInside(2), status: 200, want: `data: {"id":"chat`, broken: true},
		{name: "cut behind the last", resp: whole.CutAfter(99), status: 200, want: "[DONE]", broken: true},
		{name: "end", resp: whole.EndAfter(2), status: 200, want: `"content":"a"`},
		{name: "error", resp: whole.ErrorAfter(2, `{"message":"m"}`), status: 200, want: `data: {"error":{"message":"m"}}`},
		{name: "keep-alives", resp: whole.KeepAlives(3), status: 200, want: "[DONE]"},
		{name: "drip", resp: whole.Drip(time.Millisecond), status: 200, want: "[DONE]"},
		{name: "delay", resp: whole.Delay(time.Millisecond), status: 200, want: "[DONE]"},
		{name: "empty", resp: llmtest.Empty(), status: 200},
		{name: "html", resp: llmtest.HTML(), status: 200, want: "</html>"},
		{name: "json", resp: llmtest.JSON(`{"a":1}`), status: 200, want: `{"a":1}`},
		{name: "status", resp: llmtest.Status(503, "busy"), status: 503, want: "busy"},
		{name: "raw", resp: llmtest.Raw("data: {}", "data: [DONE]"), status: 200, want: "data: {}\n\ndata: [DONE]"},
		{name: "rate limit", resp: llmtest.RateLimited("2"), status: 429, want: `}}`},
		{name: "rate limit in ms", resp: llmtest.RateLimitedFor(time.Second), status: 429, want: `}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv := llmtest.NewServer(t, tt.resp)
			status, text, err := read(t, srv.URL, goodRequest)
			if status != tt.status || (err != nil) != tt.broken {
				t.Errorf("status %d, error %v", status, err)
			}
			if !strings.Contains(text[max(0, len(text)-120):], tt.want) {
				t.Errorf("body ends with %q, want %q", text, tt.want)
			}
		})
	}
}

// Close ends handlers that stall, with clients that wait for them; the leak
// check of TestMain sees the rest.
func TestCloseEndsStalledHandlers(t *testing.T) {
	for _, after := range []int{0, 1} {
		srv := llmtest.NewServer(t, llmtest.Text("a").StallAfter(after), llmtest.Text("a").Delay(time.Hour))
		var clients sync.WaitGroup
		for range 2 {
			clients.Go(func() {
				if resp, err := post(t.Context(), t, srv.URL, goodRequest); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		}
		for len(srv.Requests()) < 2 {
			time.Sleep(time.Millisecond)
		}
		srv.Close()
		clients.Wait()
	}
}

// A stalled handler ends when its client leaves.
func TestStallEndsWithClient(t *testing.T) {
	srv := llmtest.NewServer(t, llmtest.Text("a").StallAfter(1))
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := post(ctx, t, srv.URL, goodRequest)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

func TestRespond(t *testing.T) {
	srv := llmtest.NewServer(t, llmtest.Text("first"))
	srv.Respond(func(r llmtest.Request) llmtest.Response { return llmtest.Text(fmt.Sprint(len(r.Body))) })
	for _, want := range []string{"first", fmt.Sprint(len(goodRequest))} {
		if _, text, _ := read(t, srv.URL, goodRequest); !strings.Contains(text, `"content":"`+want+`"`) {
			t.Errorf("got %s, want %s in it", text, want)
		}
	}
}

// recorder is a testing.TB that remembers that it was failed.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	failed []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, fmt.Sprintf(format, args...))
}

// A bad history is refused in DeepSeek's words and fails the test.
func TestBadHistoryFailsTest(t *testing.T) {
	rec := &recorder{TB: t}
	srv := llmtest.NewServer(rec, llmtest.Text("never"))
	body := `{"messages":[{"role":"user","content":"x"},{"role":"tool","content":"y","tool_call_id":"c"}]}`
	status, text, _ := read(t, srv.URL, body)
	if status != 400 || !strings.Contains(text, "must be a response to a preceding message with 'tool_calls'") {
		t.Errorf("status %d: %s", status, text)
	}
	if len(rec.failed) != 1 {
		t.Errorf("failures = %q", rec.failed)
	}
	srv.AllowBadHistory()
	if status, _, _ = read(t, srv.URL, body); status != 200 || len(rec.failed) != 1 {
		t.Errorf("allowed: status %d, failures %q", status, rec.failed)
	}
	if srv.Requests()[1].HistoryError == nil {
		t.Error("an allowed bad history was not recorded as one")
	}
	if status, _, _ = read(t, srv.URL, goodRequest); status != 400 || len(rec.failed) != 2 {
		t.Errorf("behind the script: status %d, failures %q", status, rec.failed)
	}
}

// Reasoning that was sent with a call must come back with it, unless another
// answer used the same ID without.
func TestReasoningMustComeBack(t *testing.T) {
	rec := &recorder{TB: t}
	call := dsh.ToolCall{ID: "c", Name: "n", Arguments: "{}"}
	srv := llmtest.NewServer(rec, llmtest.ToolCalls(call).Reasoning("r"))
	history := func(reasoning string) string {
		return `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":""` + reasoning +
			`,"tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]},` +
			`{"role":"tool","content":"y","tool_call_id":"c"}]}`
	}
	_, _, _ = read(t, srv.URL, goodRequest)
	status, text, _ := read(t, srv.URL, history(""))
	if status != 400 || !strings.Contains(text, "Missing reasoning_content field in the assistant message at message index 1") {
		t.Errorf("status %d: %s", status, text)
	}
	srv.Add(llmtest.Text("ok"), llmtest.ToolCalls(call), llmtest.Text("ok"))
	for _, body := range []string{history(`,"reasoning_content":"r"`), goodRequest, history("")} {
		if status, text, _ = read(t, srv.URL, body); status != 200 {
			t.Errorf("status %d: %s", status, text)
		}
	}
}
