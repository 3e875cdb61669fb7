package openai

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// sample1 is two interleaved calls with reasoning; most samples vary it.
var sample1 = []string{
	delta(`{"role":"assistant","content":"","reasoning_content":""}`),
	delta(`{"reasoning_content":"check both"}`),
	callDelta(`{"index":0,"id":"c0","type":"function","function":{"name":"read","arguments":""}}`),
	callDelta(`{"index":1,"id":"c1","type":"function","function":{"name":"read","arguments":""}}`),
	callDelta(`{"index":1,"function":{"arguments":"{\"p\":\"b\"}"}}`),
	callDelta(`{"index":0,"function":{"arguments":"{\"p\":\"a\"}"}}`),
	finished("tool_calls"),
	`{"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":12,"prompt_cache_hit_tokens":20,` +
		`"prompt_cache_miss_tokens":10,"completion_tokens_details":{"reasoning_tokens":4}}}`,
}

var sample1Blocks = []dsh.Block{
	dsh.Reasoning{Text: "check both"},
	dsh.ToolCall{ID: "c0", Name: "read", Arguments: `{"p":"a"}`},
	dsh.ToolCall{ID: "c1", Name: "read", Arguments: `{"p":"b"}`},
}

func wantSample1(t *testing.T, out outcome) {
	t.Helper()
	out.want(t, dsh.FinishToolCalls, sample1Blocks...)
	u := out.usage
	if u == nil || u.InputTokens != 10 || *u.CacheReadTokens != 20 || u.OutputTokens != 12 || *u.ReasoningTokens != 4 ||
		u.CacheWriteTokens != nil {
		t.Errorf("usage = %+v", u)
	}
}

// The samples of WIRE.md part 4, each over loopback HTTP.

func TestW1_InterleavedCalls(t *testing.T) {
	wantSample1(t, ask(t, Options{}, request(), data(sample1...)))
}

func TestW1_ReasoningUnderTheOtherName(t *testing.T) {
	renamed := make([]string, len(sample1))
	for i, c := range sample1 {
		renamed[i] = strings.ReplaceAll(c, "reasoning_content", "reasoning")
	}
	wantSample1(t, ask(t, Options{}, request(), data(renamed...)))
}

func TestW2_SameIndexNewID(t *testing.T) {
	ask(t, Options{}, request(), data(
		callDelta(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}`),
		callDelta(`{"index":0,"id":"b","function":{"name":"x","arguments":"{\"n\":2}"}}`),
		finished("stop"),
	)).want(t, dsh.FinishToolCalls,
		dsh.ToolCall{ID: "a", Name: "x", Arguments: `{"n":1}`},
		dsh.ToolCall{ID: "b", Name: "x", Arguments: `{"n":2}`})
}

func TestW3_NoIndexNoID(t *testing.T) {
	out := ask(t, Options{}, request(), data(callDelta(`{"function":{"name":"x","arguments":"{}"}}`), finished("tool_calls")))
	calls := out.calls()
	if len(calls) != 1 || !strings.HasPrefix(string(calls[0].ID), "call_") || calls[0].Name != "x" || calls[0].Arguments != "{}" {
		t.Errorf("calls = %+v", calls)
	}
}

func TestW4_EmptyIDAndRepeatedName(t *testing.T) {
	ask(t, Options{}, request(), data(
		callDelta(`{"index":0,"id":"a","function":{"name":"x","arguments":"{"}}`),
		callDelta(`{"index":0,"id":"","function":{"name":"x","arguments":"}"}}`),
		finished("tool_calls"),
	)).want(t, dsh.FinishToolCalls, dsh.ToolCall{ID: "a", Name: "x", Arguments: "{}"})
}

func TestW5_IndexFromOne(t *testing.T) {
	ask(t, Options{}, request(), data(
		callDelta(`{"index":1,"id":"a","function":{"name":"x","arguments":""}}`),
		callDelta(`{"index":1,"function":{"arguments":"{}"}}`),
		finished("tool_calls"),
	)).want(t, dsh.FinishToolCalls, dsh.ToolCall{ID: "a", Name: "x", Arguments: "{}"})
}

func TestW6_ArgumentsObject(t *testing.T) {
	ask(t, Options{}, request(), data(
		callDelta(`{"index":0,"id":"a","function":{"name":"x","arguments":{ "p" : "a" }}}`), finished("tool_calls"),
	)).want(t, dsh.FinishToolCalls, dsh.ToolCall{ID: "a", Name: "x", Arguments: `{"p":"a"}`})
}

// The watchdog's part in this is TestKeepAlivesAreLife.
func TestW7_KeepAlives(t *testing.T) {
	wantSample1(t, ask(t, Options{}, request(), data(sample1...).KeepAlives(1000)))
}

func TestW8_CutAfterHalfAnArgument(t *testing.T) {
	for name, resp := range map[string]llmtest.Response{
		"closed": llmtest.Raw(events(sample1[:5]...)...),
		"cut":    data(sample1...).CutAfter(5),
		"inside": data(sample1...).CutInside(5),
	} {
		t.Run(name, func(t *testing.T) {
			for _, policy := range []TruncatedPolicy{RequireDone, AcceptFinish} {
				out := ask(t, Options{Truncated: policy}, request(), resp)
				out.wantFailure(t, dsh.CodeTransport)
				if !errors.Is(out.err, ErrTruncated) {
					t.Errorf("%v is not ErrTruncated", out.err)
				}
				for _, c := range out.chunks {
					if _, ok := c.(dsh.BlockEnd); ok {
						t.Error("a block of a cut stream ended")
					}
				}
			}
		})
	}
}

func TestW9_CutAfterFinish(t *testing.T) {
	resp := llmtest.Raw(events(sample1...)...)
	out := ask(t, Options{}, request(), resp)
	out.wantFailure(t, dsh.CodeTransport)
	if out.usage == nil || !errors.Is(out.err, ErrTruncated) {
		t.Errorf("usage %v, error %v", out.usage, out.err)
	}
	wantSample1(t, ask(t, Options{Truncated: AcceptFinish}, request(), resp))
	wantSample1(t, ask(t, Options{Truncated: AcceptFinish}, request(), resp.CutAfter(len(sample1))))
}

func TestW10_ErrorInStream(t *testing.T) {
	out := ask(t, Options{}, request(), llmtest.Raw(
		": keep-alive",
		"data: "+delta(`{"content":"Hel"}`),
		`data: {"error":{"message":"upstream overloaded","type":"server_error","code":"503"}}`,
	))
	out.wantFailure(t, dsh.CodeServer)
	if f := out.failure(t); f.Status != 503 || !strings.Contains(f.Message, "upstream overloaded") {
		t.Errorf("failure = %+v", f)
	}
	if dsh.TextOf(out.blocks) != "Hel" {
		t.Errorf("blocks = %v", out.blocks)
	}
}

func TestW11_ErrorBesideChoices(t *testing.T) {
	out := ask(t, Options{}, request(), data(
		`{"error":{"code":502,"message":"provider died"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`))
	out.wantFailure(t, dsh.CodeServer)
	if f := out.failure(t); f.Status != 502 || !strings.Contains(f.Message, "provider died") {
		t.Errorf("failure = %+v", f)
	}
}

func TestW12_ErrorBodyWithStatus200(t *testing.T) {
	for _, body := range []string{
		`{"error":{"message":"no credit","code":402}}`,
		"{\n  \"error\": {\n    \"message\": \"no credit\",\n    \"code\": 402\n  }\n}\n",
	} {
		ask(t, Options{}, request(), llmtest.JSON(body)).wantFailure(t, dsh.CodeQuota)
	}
}

func TestW13_EmptyBody(t *testing.T) {
	ask(t, Options{}, request(), llmtest.Empty()).wantFailure(t, dsh.CodeEmptyResponse)
}

func TestW14_NothingButAnEnd(t *testing.T) {
	for _, reason := range []string{"stop", "tool_calls"} {
		ask(t, Options{}, request(), data(delta(`{"role":"assistant","content":""}`), finished(reason))).
			wantFailure(t, dsh.CodeEmptyResponse)
	}
}

func TestW15_ReasoningOnly(t *testing.T) {
	resp := llmtest.Reasoning("hm")
	ask(t, Options{}, request(), resp).want(t, dsh.FinishStop, dsh.Reasoning{Text: "hm"})
	ask(t, Options{RejectReasoningOnly: true}, request(), resp).wantFailure(t, dsh.CodeEmptyResponse)
}

// The loop drops the calls of an answer that ended with max-tokens.
func TestW16_MaxTokensInACall(t *testing.T) {
	cut := callDelta(`{"index":0,"id":"a","function":{"name":"write","arguments":"{\"path\":\"a"}}`)
	parses := callDelta(`{"index":0,"id":"a","function":{"name":"write","arguments":"{}"}}`)
	spent := `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":64}}`
	limited := request()
	limited.Header.Config.MaxTokens = 64
	for name, tt := range map[string]struct {
		req  *dsh.Request
		resp llmtest.Response
		want dsh.FinishKind
	}{
		"length":                   {request(), data(cut, finished("length")), dsh.FinishMaxTokens},
		"length, parses":           {request(), data(parses, finished("length")), dsh.FinishMaxTokens},
		"tool_calls at the limit":  {limited, data(cut, finished("tool_calls"), spent), dsh.FinishMaxTokens},
		"tool_calls below it":      {request(), data(cut, finished("tool_calls"), spent), dsh.FinishToolCalls},
		"text alone at the limit":  {limited, data(delta(`{"content":"x"}`), finished("stop"), spent), dsh.FinishStop},
		"length without any block": {request(), data(finished("length")), dsh.FinishMaxTokens},
	} {
		t.Run(name, func(t *testing.T) {
			out := ask(t, Options{}, tt.req, tt.resp)
			if out.err != nil || out.finish != tt.want {
				t.Errorf("finish = %s, error %v, want %s", out.finish, out.err, tt.want)
			}
		})
	}
}

func TestW17_LeakedMarkup(t *testing.T) {
	for _, text := range []string{"Sure.<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"read\">", "ok\n<tool_call>\n{}"} {
		out := ask(t, Options{}, request(), llmtest.Text(text))
		out.wantFailure(t, dsh.CodeTransport)
		if !errors.Is(out.err, ErrLeakedMarkup) {
			t.Errorf("%v is not ErrLeakedMarkup", out.err)
		}
	}
}

func TestW18_UsageEverywhere(t *testing.T) {
	const counted = `{"choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":10,"completion_tokens":1}}`
	out := ask(t, Options{}, request(), data(counted, strings.Replace(counted, `:1}`, `:2}`, 1),
		`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":3}}`,
		`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":3}}`))
	if out.usage == nil || out.usage.InputTokens != 10 || out.usage.OutputTokens != 3 {
		t.Errorf("usage = %+v", out.usage)
	}
}

func TestW19_RetryAfter(t *testing.T) {
	date := llmtest.RateLimited("Wed, 21 Oct 2026 07:28:00 GMT").Header("Date", "Wed, 21 Oct 2026 07:27:50 GMT")
	for name, tt := range map[string]struct {
		resp llmtest.Response
		code dsh.Code
		want int64
	}{
		"seconds":          {llmtest.RateLimited("2"), dsh.CodeRateLimit, 2000},
		"date":             {date, dsh.CodeRateLimit, 10_000},
		"ms":               {llmtest.RateLimitedFor(250 * time.Millisecond), dsh.CodeRateLimit, 250},
		"an hour":          {llmtest.RateLimited("3600"), dsh.CodeRateLimit, 3_600_000},
		"529":              {llmtest.Status(529, `{}`).Header("Retry-After", "3"), dsh.CodeServer, 3000},
		"503":              {llmtest.Status(503, `busy`).Header("Retry-After", "0.5"), dsh.CodeServer, 500},
		"date in the past": {llmtest.RateLimited("Wed, 21 Oct 2015 07:28:00 GMT"), dsh.CodeRateLimit, 0},
	} {
		t.Run(name, func(t *testing.T) {
			out := ask(t, Options{}, request(), tt.resp)
			out.wantFailure(t, tt.code)
			if ms := out.failure(t).ProviderRetryAfterMs; ms == nil || *ms != tt.want {
				t.Errorf("retry after %v ms, want %d", ms, tt.want)
			}
		})
	}
	for _, resp := range []llmtest.Response{llmtest.Status(429, `{}`), llmtest.RateLimited("soon")} {
		if ms := ask(t, Options{}, request(), resp).failure(t).ProviderRetryAfterMs; ms != nil {
			t.Errorf("retry after %d ms, but nothing was told", *ms)
		}
	}
}

func TestW20_OverflowWithinA503(t *testing.T) {
	ask(t, Options{}, request(), llmtest.Status(503, `{"error":{"message":"litellm.BadRequestError … Requested token count `+
		`exceeds the model's maximum context length of 131072 tokens"}}`)).wantFailure(t, dsh.CodeContextWindow)
}

func TestW21_Silent(t *testing.T) {
	out := ask(t, Options{TokenIdleTimeout: 50 * time.Millisecond}, request(), llmtest.Text("a", "b").StallAfter(2))
	out.wantFailure(t, dsh.CodeTimeout)
	if !errors.Is(out.err, ErrStalled) || dsh.TextOf(out.blocks) != "a" {
		t.Errorf("error %v, blocks %v", out.err, out.blocks)
	}
	ask(t, Options{FirstByteTimeout: 50 * time.Millisecond}, request(), llmtest.Text("a").StallAfter(0)).
		wantFailure(t, dsh.CodeTimeout)
}

func TestW22_AbortInTheMiddle(t *testing.T) {
	srv := llmtest.NewServer(t, data(sample1...).StallAfter(4))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asm dsh.Assembler
	var last error
	for c, err := range newProvider(t, Options{BaseURL: srv.URL}).Stream(ctx, request()) {
		if last = err; err != nil {
			break
		}
		asm.Add(c)
		if len(asm.Blocks()) == 3 {
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) || dsh.AsFailure(last).Code != dsh.CodeAborted {
		t.Errorf("the stream ended with %v", last)
	}
	if blocks, keep := asm.Prefix(); !keep || len(blocks) != 1 || blocks[0] != sample1Blocks[0] {
		t.Errorf("kept %v", blocks)
	}
}

func TestW22_AbortBeforeTheFirstByte(t *testing.T) {
	srv := llmtest.NewServer(t, llmtest.Text("a").StallAfter(0), llmtest.Text("a").StallAfter(0))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(srv.Requests()) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	p := newProvider(t, Options{BaseURL: srv.URL})
	for range 2 { // the second finds ctx cancelled
		if out := collect(t, p.Stream(ctx, request())); !errors.Is(out.err, context.Canceled) {
			t.Errorf("the stream ended with %v", out.err)
		}
	}
	if n := len(srv.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// The server refuses bad histories in every test; here the history is the
// answer that it gave.
func TestW23_HistoryIsValid(t *testing.T) {
	for _, dialect := range []Dialect{DialectGeneric, DialectDeepSeek} {
		srv := llmtest.NewServer(t, llmtest.ToolCalls(
			dsh.ToolCall{ID: "c0", Name: "read", Arguments: `{"p":"a"}`},
			dsh.ToolCall{ID: "c1", Name: "read", Arguments: `{"p":`},
		).Reasoning("look"), llmtest.Text("done"))
		p := newProvider(t, Options{BaseURL: srv.URL, Dialect: dialect})
		req := request()
		req.Header.Config.ReasoningEffort = "high"
		out := collect(t, p.Stream(t.Context(), req))
		next := *req
		next.Messages = append(next.Messages[:1:1],
			&dsh.Message{Role: dsh.RoleAssistant, Content: out.blocks},
			result("c0"), result("c1", dsh.Text{Text: "two"}))
		collect(t, p.Stream(t.Context(), &next)).want(t, dsh.FinishStop, dsh.Text{Text: "done"})
	}
}

func result(id dsh.CallID, content ...dsh.Block) *dsh.Message {
	return &dsh.Message{Role: dsh.RoleUser, Content: []dsh.Block{dsh.ToolResult{CallID: id, Content: content}}}
}

func TestW24_OddTypes(t *testing.T) {
	out := ask(t, Options{}, request(), data(
		`{"created":1.7e9,"choices":[{"index":0.0,"delta":{"content":[{"type":"text","text":"hi"}]}}]}`,
		`{"created":1.5,"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":12.0,"completion_tokens":"3"}}`))
	out.want(t, dsh.FinishStop, dsh.Text{Text: "hi"})
	if out.usage.InputTokens != 12 || out.usage.OutputTokens != 3 {
		t.Errorf("usage = %+v", out.usage)
	}
}

func TestW25_EmptyFinishReason(t *testing.T) {
	chunk := `{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}`
	ask(t, Options{}, request(), data(chunk, chunk, finished("stop"))).want(t, dsh.FinishStop, dsh.Text{Text: "aa"})
	ask(t, Options{Truncated: AcceptFinish}, request(), llmtest.Raw(events(chunk)...)).wantFailure(t, dsh.CodeTransport)
}

func TestW26_Framing(t *testing.T) {
	join := func(end string) llmtest.Response {
		var b strings.Builder
		b.WriteString("\xef\xbb\xbfretry: 3000" + end + "id: 1" + end + end)
		for _, c := range sample1 {
			head, tail, _ := strings.Cut(c, ",")
			b.WriteString("event: message" + end + "data:" + head + "," + end + "data: " + tail + end + end)
		}
		return llmtest.Body(b.String() + "data:[DONE]")
	}
	for name, end := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
		t.Run(name, func(t *testing.T) { wantSample1(t, ask(t, Options{}, request(), join(end))) })
	}
	t.Run("no empty lines", func(t *testing.T) {
		body := strings.Join(append(events(sample1...), "data: [DONE]"), "\n")
		wantSample1(t, ask(t, Options{}, request(), llmtest.Body(body)))
	})
}

func TestW27_ThinkTags(t *testing.T) {
	resp := llmtest.Text("<th", "ink>\nwhy", " not</thi", "nk>\n\nbe", "cause</think>")
	ask(t, Options{}, request(), resp).
		want(t, dsh.FinishStop, dsh.Text{Text: "<think>\nwhy not</think>\n\nbecause</think>"})
	ask(t, Options{SplitThink: true}, request(), resp).
		want(t, dsh.FinishStop, dsh.Reasoning{Text: "why not"}, dsh.Text{Text: "because</think>"})
}
