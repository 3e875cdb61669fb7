package openai_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/actors/llm/openai"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/policy/retry"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

var rewrite = flag.Bool("rewrite", false, "print the table into docs/wire.md")

const wireDoc = "../../../docs/wire.md"

// faultRows are what servers do.
func faultRows() []struct {
	name string
	resp llmtest.Response
} {
	call := llmtest.ToolCalls(dsh.ToolCall{ID: "c", Name: "read", Arguments: `{"p":1}`})
	text := llmtest.Text("half ", "an answer")
	failure := func(message, more string) string {
		return `{"error":{"message":"` + message + `"` + more + `}}`
	}
	return []struct {
		name string
		resp llmtest.Response
	}{
		{"breaks the connection before the first event", text.CutAfter(0)},
		{"breaks the connection behind text", text.CutAfter(2)},
		{"breaks the connection within an event", text.CutInside(2)},
		{"closes in order before any text", text.EndAfter(1)},
		{"closes in order behind reasoning", text.Reasoning("hm").EndAfter(2)},
		{"closes in order behind text", text.EndAfter(2)},
		{"closes in order within a call", call.EndAfter(2)},
		{"leaves [DONE] out behind a finish reason and text", text.EndAfter(5)},
		{"sends nothing at all, not even headers", text.StallAfter(0)},
		{"falls silent behind text", text.StallAfter(2)},
		{"sends keep-alives, then answers", llmtest.Text("whole").KeepAlives(300)},
		{"drips slowly", llmtest.Text("whole").Drip(time.Millisecond)},
		{"tells an error in the stream behind text", text.ErrorAfter(2, `{"message":"died"}`)},
		{"tells a rate limit in the stream", text.ErrorAfter(2, `{"message":"slow down","code":429}`)},
		{"tells an invalid request in the stream", text.ErrorAfter(1, `{"message":"no","type":"invalid_request_error"}`)},
		{"finishes with the reason error", text.Finish("error")},
		{"finishes with content_filter", text.Finish("content_filter")},
		{"finishes with length within a call", call.Text("a").Finish("length")},
		{"sends 200 and no body", llmtest.Empty()},
		{"sends 200 and a page", llmtest.HTML()},
		{"sends 200 and an error as JSON", llmtest.JSON(failure("no credit", `,"code":402`))},
		{"sends an event that is no JSON", llmtest.Raw("data: {", "data: [DONE]")},
		{"says nothing and stops", llmtest.Text()},
		{"writes the call as text", llmtest.Text("<tool_call>\n{}")},
		{"400", llmtest.Status(400, failure("no such parameter", ""))},
		{"400: the prompt is too long", llmtest.Status(400, failure("maximum context length is 10 tokens", ""))},
		{"401", llmtest.Status(401, failure("no such key", ""))},
		{"402", llmtest.Status(402, failure("Insufficient Balance", ""))},
		{"404", llmtest.Status(404, failure("no such model", ""))},
		{"429, Retry-After in ms", llmtest.RateLimitedFor(5 * time.Millisecond)},
		{"429, Retry-After: 3600", llmtest.RateLimited("3600")},
		{"429: the quota is used up", llmtest.Status(429, failure("no", `,"code":"insufficient_quota"`))},
		{"500", llmtest.Status(500, "oops")},
		{"502 and a page", llmtest.Status(502, "<html>bad gateway</html>")},
		{"503: a proxy's words for too long a prompt", llmtest.Status(503, failure("litellm.BadRequestError: Requested token count exceeds the limit", ""))},
		{"529", llmtest.Status(529, failure("Overloaded", ""))},
	}
}

// watcher keeps what the first attempt came to.
type watcher struct {
	mu   sync.Mutex
	errs []error
}

func (w *watcher) Stream(ctx context.Context, req *dsh.Request, next hook.StreamFunc) iter.Seq2[dsh.Chunk, error] {
	return func(yield func(dsh.Chunk, error) bool) {
		var last error
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.errs = append(w.errs, last)
		}()
		for c, err := range next(ctx, req) {
			last = err
			if !yield(c, err) {
				return
			}
		}
	}
}

// causeOf names what errors.Is finds.
func causeOf(err error) string {
	for _, c := range []struct {
		cause error
		name  string
	}{
		{dsh.ErrStreamClosed, "ErrTruncated, ErrStreamClosed"},
		{openai.ErrTruncated, "ErrTruncated"},
		{openai.ErrStalled, "ErrStalled"},
		{openai.ErrMalformed, "ErrMalformed"},
		{openai.ErrLeakedMarkup, "ErrLeakedMarkup"},
	} {
		if errors.Is(err, c.cause) {
			return c.name
		}
	}
	return ""
}

// The table of docs/wire.md is what happens.
func TestDocumentedFaults(t *testing.T) {
	var out strings.Builder
	out.WriteString("| the server | failure | wraps | requests | the turn |\n|---|---|---|---|---|\n")
	for _, row := range faultRows() {
		silent := strings.HasPrefix(row.name, "sends nothing") || strings.HasPrefix(row.name, "falls silent")
		out.WriteString(play(t, row.name, row.resp, silent))
	}
	raw, err := os.ReadFile(wireDoc)
	if err != nil {
		t.Fatal(err)
	}
	const open, shut = "<!-- table -->\n", "<!-- /table -->"
	before, rest, ok := strings.Cut(string(raw), open)
	old, behind, closed := strings.Cut(rest, shut)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", wireDoc)
	}
	if old == out.String() {
		return
	}
	if !*rewrite {
		t.Fatalf("%s is stale: run go test ./actors/llm/openai -run Document -rewrite. The table is now\n%s", wireDoc, out.String())
	}
	if err := os.WriteFile(wireDoc, []byte(before+open+out.String()+shut+behind), 0o644); err != nil {
		t.Fatal(err)
	}
}

// play runs one prompt against a server that commits the fault and then
// answers well.
func play(t *testing.T, name string, resp llmtest.Response, silent bool) string {
	t.Helper()
	srv := llmtest.NewServer(t, resp, llmtest.Text("whole"))
	defer srv.Close()
	options := openai.Options{BaseURL: srv.URL}
	if silent {
		options.FirstByteTimeout, options.IdleTimeout = time.Second/2, time.Second/2
	}
	p, err := openai.New(options)
	if err != nil {
		t.Fatal(err)
	}
	defer p.CloseIdleConnections()
	read := tool.Func("read", "reads", func(context.Context, struct{}) (string, error) { return "", nil })
	w := &watcher{}
	rt, err := runtime.New(runtime.Options{
		Providers: map[string]llm.Provider{"p": p},
		Hooks:     []any{w, retry.New(retry.Options{Initial: time.Millisecond})},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := rt.Create(t.Context(), runtime.Spec{Provider: "p", Model: "m", Tools: []tool.Tool{read}})
	if err != nil {
		t.Fatal(err)
	}
	o, err := a.Run(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if len(w.errs) != len(srv.Requests()) {
		t.Errorf("%s: %d attempts and %d requests", name, len(w.errs), len(srv.Requests()))
	}
	code := "none"
	if err := w.errs[0]; err != nil {
		code = "`" + string(dsh.AsFailure(err).Code) + "`"
	}
	end := string(o.Ending.Kind)
	if o.OK() {
		end += ": " + o.Text()
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %s |\n", name, code, causeOf(w.errs[0]), len(srv.Requests()), end)
}
