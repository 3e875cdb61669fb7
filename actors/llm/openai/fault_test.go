package openai

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Every fault has one outcome, however far the answer came.
func TestFaults(t *testing.T) {
	answers := map[string]llmtest.Response{
		"text":      llmtest.Text("a", "b", "c"),
		"reasoning": llmtest.Text("a").Reasoning("r"),
		"calls":     llmtest.ToolCalls(dsh.ToolCall{ID: "c", Name: "read", Arguments: `{"p":1}`}),
	}
	faults := []struct {
		name  string
		apply func(llmtest.Response, int) llmtest.Response
		want  dsh.Code
		cause error
	}{
		{"cut", llmtest.Response.CutAfter, dsh.CodeTransport, ErrTruncated},
		{"cut inside", llmtest.Response.CutInside, dsh.CodeTransport, ErrTruncated},
		{"end", llmtest.Response.EndAfter, dsh.CodeTransport, ErrTruncated},
		{"stall", llmtest.Response.StallAfter, dsh.CodeTimeout, ErrStalled},
		{"error", func(r llmtest.Response, n int) llmtest.Response { return r.ErrorAfter(n, `{"message":"died"}`) }, dsh.CodeServer, nil},
		{"error as a string", func(r llmtest.Response, n int) llmtest.Response { return r.ErrorAfter(n, `"died"`) }, dsh.CodeServer, nil},
		{"overloaded", func(r llmtest.Response, n int) llmtest.Response {
			return r.ErrorAfter(n, `{"message":"x","code":429}`)
		}, dsh.CodeRateLimit, nil},
	}
	short := Options{FirstByteTimeout: 30 * time.Millisecond, IdleTimeout: 30 * time.Millisecond}
	for kind, answer := range answers {
		for _, f := range faults {
			for _, after := range []int{0, 1, 2, 3} {
				o := Options{}
				if f.want == dsh.CodeTimeout {
					o = short
				}
				out := ask(t, o, request(), f.apply(answer, after))
				want, cause := f.want, f.cause
				if f.name == "end" && after == 0 {
					want, cause = dsh.CodeEmptyResponse, errEmptyBody // no byte came
				}
				got := out.failure(t)
				if got.Code != want || cause != nil && !errors.Is(got, cause) {
					t.Errorf("%s, %s after %d: %s (%s), want %s", kind, f.name, after, got.Code, got.Message, want)
				}
				if out.finish != "" {
					t.Errorf("%s, %s after %d: finish %s", kind, f.name, after, out.finish)
				}
			}
		}
	}
}

func TestBodiesThatAreNoStream(t *testing.T) {
	tests := []struct {
		name string
		resp llmtest.Response
		want dsh.Code
		text string
	}{
		{"page", llmtest.HTML(), dsh.CodeTransport, "Sign in"},
		{"words", llmtest.Body("upstream connect error"), dsh.CodeTransport, "upstream connect error"},
		{"empty object", llmtest.JSON(`{}`), dsh.CodeTransport, "{}"},
		{"half an error", llmtest.JSON(`{"error":{"mess`), dsh.CodeTransport, "malformed"},
		{"white space", llmtest.Body("\n\n\r\n"), dsh.CodeEmptyResponse, ""},
		{"keep-alives alone", llmtest.Body(": keep-alive\n\n: keep-alive\n\n"), dsh.CodeTransport, "ended before"},
		{"an event that is no JSON", llmtest.Raw("data: hello"), dsh.CodeTransport, "hello"},
		{"half a line that is no JSON", llmtest.Body("data: hello"), dsh.CodeTransport, "in the middle of an event"},
		{"an event that is no JSON, then more", llmtest.Raw("data: hello", "data: [DONE]"), dsh.CodeTransport, "hello"},
		{"an event that is no object", llmtest.Raw("data: [1]", "data: [DONE]"), dsh.CodeTransport, "[1]"},
		{"an error event", llmtest.Raw("event: error\ndata: {\"type\":\"overloaded_error\",\"message\":\"busy\"}"), dsh.CodeServer, "busy"},
		{"an error event of words", llmtest.Raw("event: error\ndata: rate limit hit"), dsh.CodeRateLimit, "rate limit hit"},
		{"a bare error behind events", llmtest.Body("data: " + delta(`{"content":"a"}`) + "\n\n{\"error\":{\"message\":\"died\"}}\n"), dsh.CodeServer, "died"},
		{"a pretty error behind events", llmtest.Body("data: " + delta(`{"content":"a"}`) + "\n\n{\n\"error\":\n{\"message\":\"died\"}}\n"), dsh.CodeServer, "died"},
		{"no body at all", llmtest.Status(http.StatusNoContent, ""), dsh.CodeEmptyResponse, ""},
		{"only [DONE]", llmtest.Raw("data: [DONE]"), dsh.CodeEmptyResponse, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := ask(t, Options{}, request(), tt.resp)
			out.wantFailure(t, tt.want)
			if !strings.Contains(out.failure(t).Message, tt.text) {
				t.Errorf("message %q, want %q in it", out.failure(t).Message, tt.text)
			}
		})
	}
}

// A server that ignores that a stream was asked for is understood.
func TestWholeAnswerInsteadOfAStream(t *testing.T) {
	ask(t, Options{}, request(), llmtest.JSON("{\n"+`"choices":[{"index":0,"message":{"role":"assistant","content":"hi",`+
		`"tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}}]},"finish_reason":"tool_calls"}],`+
		`"usage":{"prompt_tokens":1,"completion_tokens":2}}`)).
		want(t, dsh.FinishToolCalls, dsh.Text{Text: "hi"}, dsh.ToolCall{ID: "a", Name: "x", Arguments: "{}"})
}

func TestNoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String() + "/secret-path"
	_ = l.Close()
	out := collect(t, newProvider(t, Options{BaseURL: url}).Stream(t.Context(), request()))
	out.wantFailure(t, dsh.CodeTransport)
	if strings.Contains(out.failure(t).Message, "secret-path") {
		t.Errorf("the message holds the address: %s", out.failure(t).Message)
	}
}

func TestClientTimeoutIsTimeout(t *testing.T) {
	out := ask(t, Options{HTTPClient: &http.Client{Timeout: 30 * time.Millisecond, Transport: newTransport()}},
		request(), llmtest.Text("a").StallAfter(0))
	out.wantFailure(t, dsh.CodeTimeout)
}

func TestDeadlineIsTheContextsError(t *testing.T) {
	srv := llmtest.NewServer(t, llmtest.Text("a").StallAfter(2))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	out := collect(t, newProvider(t, Options{BaseURL: srv.URL}).Stream(ctx, request()))
	if !errors.Is(out.err, context.DeadlineExceeded) || dsh.AsFailure(out.err).Code != dsh.CodeTimeout {
		t.Errorf("got %v", out.err)
	}
}

// What an answer says may hold the key: no failure repeats it.
func TestSecretsAreRedacted(t *testing.T) {
	const key, other = "abcdef0123456789", "x-header-secret"
	o := Options{APIKey: key, Headers: http.Header{"X-Token": {other}}}
	said := "key " + key + ", header " + other + ", Bearer tok.en/1= and sk-live-1234567890 " + strings.Repeat("x", 984) + key
	echo := string(mustJSON(said))
	for name, resp := range map[string]llmtest.Response{
		"status":    llmtest.Status(401, `{"error":{"message":`+echo+`}}`),
		"plain":     llmtest.Status(500, said),
		"in stream": llmtest.Text("a").ErrorAfter(1, `{"message":`+echo+`}`),
		"stray":     llmtest.Body(said),
		"malformed": llmtest.Raw("data: "+said, "data: [DONE]"),
		"id":        llmtest.Status(500, "x").Header("X-Request-Id", key),
	} {
		t.Run(name, func(t *testing.T) {
			f := ask(t, o, request(), resp).failure(t)
			text := f.Message + f.RequestID
			for _, secret := range []string{key, other, "tok.en", "sk-live", "abcdef01"} {
				if strings.Contains(text, secret) {
					t.Errorf("%q is in %s", secret, text)
				}
			}
			if len(f.Message) > maxExcerpt+8 {
				t.Errorf("the message has %d bytes", len(f.Message))
			}
			if f.Cause != nil && strings.Contains(f.Cause.Error(), key) {
				t.Errorf("the cause holds the key: %v", f.Cause)
			}
		})
	}
}
