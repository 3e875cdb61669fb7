package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

func checked(t testing.TB, o Options) *settings {
	t.Helper()
	s, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

func body(t testing.TB, o Options, req *dsh.Request) string {
	t.Helper()
	b, err := checked(t, o).encode(req)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b) {
		t.Fatalf("no JSON: %s", b)
	}
	return string(b)
}

func assistant(blocks ...dsh.Block) *dsh.Message {
	return &dsh.Message{Role: dsh.RoleAssistant, Content: blocks}
}

func user(blocks ...dsh.Block) *dsh.Message {
	return &dsh.Message{Role: dsh.RoleUser, Content: blocks}
}

func TestBody(t *testing.T) {
	req := request()
	req.Header.Config = dsh.CallConfig{Model: "m", Temperature: ptr(0.0), MaxTokens: 7, Stop: []string{"</s>"}, ReasoningEffort: "medium"}
	const head = `{"model":"m","tools":[{"type":"function","function":{"name":"read","description":"reads a <file> & more",` +
		`"parameters":{"type":"object"}}}],"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}],` +
		`"stream":true,"stream_options":{"include_usage":true},`
	for dialect, tail := range map[Dialect]string{
		DialectGeneric:  `"max_tokens":7,"temperature":0,"stop":["</s>"],"reasoning_effort":"medium"}`,
		DialectOpenAI:   `"max_completion_tokens":7,"temperature":0,"stop":["</s>"],"reasoning_effort":"medium"}`,
		DialectDeepSeek: `"max_tokens":7,"temperature":0,"stop":["</s>"],"thinking":{"type":"enabled"},"reasoning_effort":"high"}`,
	} {
		if got := body(t, Options{Dialect: dialect}, req); got != head+tail {
			t.Errorf("%s:\n%s, want\n%s", dialect, got, head+tail)
		}
	}
	req.Header.Config = dsh.CallConfig{Model: "m", ReasoningEffort: "none"}
	if got := body(t, Options{}, req); got != head+`"thinking":{"type":"disabled"}}` {
		t.Errorf("without thinking: %s", got)
	}
	req.Header = &dsh.Header{Config: dsh.CallConfig{Model: "m"}}
	want := `{"model":"m","messages":[{"role":"user","content":"hello"}],"stream":true,"top_k":{"<a>":1,"b":2}}`
	got := body(t, Options{ExtraBody: map[string]any{"top_k": map[string]int{"b": 2, "<a>": 1}, "stream_options": nil}}, req)
	if got != want {
		t.Errorf("extra:\n%s, want\n%s", got, want)
	}
	if got := body(t, Options{ExtraBody: map[string]any{"max_tokens": 3, "a": 1}}, request()); !strings.HasSuffix(got, `"max_tokens":3,"a":1}`) {
		t.Errorf("replaced: %s", got)
	}
}

// DeepSeek knows three levels.
func TestEffort(t *testing.T) {
	const enabled = `"thinking":{"type":"enabled"},"reasoning_effort":`
	for effort, want := range map[string]string{
		"": `"include_usage":true}}`, "low": enabled + `"low"}`, "minimal": enabled + `"low"}`, "high": enabled + `"high"}`,
		"medium": enabled + `"high"}`, "max": enabled + `"max"}`, "xhigh": enabled + `"max"}`, "off": `"thinking":{"type":"disabled"}}`,
	} {
		req := request()
		req.Header.Config.ReasoningEffort = effort
		if got := body(t, Options{}, req); !strings.HasSuffix(got, want) {
			t.Errorf("%q: %s, want %s", effort, got, want)
		}
	}
}

func TestToolWithoutParameters(t *testing.T) {
	req := request()
	req.Header.Tools = []dsh.ToolSchema{{Name: "now"}}
	if got := body(t, Options{}, req); !strings.Contains(got, `{"name":"now","parameters":{"type":"object","properties":{}}}`) {
		t.Error(got)
	}
	req.Header.Tools[0].Parameters = json.RawMessage(`{`)
	p := newProvider(t, Options{})
	collect(t, p.Stream(t.Context(), req)).wantFailure(t, dsh.CodeInvalid)
}

func TestMessages(t *testing.T) {
	call := func(arguments string) dsh.ToolCall { return dsh.ToolCall{ID: "c", Name: "n", Arguments: arguments} }
	calls := func(arguments string) string {
		return `"tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":` + string(mustJSON(arguments)) + `}}]`
	}
	image := dsh.Image{Raw: json.RawMessage(`{"image_url":{"url":"data:image/png;base64,AA==","detail":"low"}}`)}
	tests := []struct {
		name    string
		dialect Dialect
		message *dsh.Message
		want    string
	}{
		{"text", "", assistant(dsh.Text{Text: "a"}), `{"role":"assistant","content":"a"}`},
		{
			"reasoning, text, call", "", assistant(dsh.Reasoning{Text: "r"}, dsh.Text{Text: "a"}, call("{}")),
			`{"role":"assistant","content":"a","reasoning_content":"r",` + calls("{}") + `}`,
		},
		{"call alone", DialectGeneric, assistant(call(`{"a": 1}`)), `{"role":"assistant","content":"",` + calls(`{"a": 1}`) + `}`},
		{
			"call alone, DeepSeek", DialectDeepSeek, assistant(call(`{}`)),
			`{"role":"assistant","content":"","reasoning_content":"",` + calls(`{}`) + `}`,
		},
		{
			"no reasoning for OpenAI", DialectOpenAI, assistant(dsh.Reasoning{Text: "r"}, call("{}")),
			`{"role":"assistant","content":"",` + calls("{}") + `}`,
		},
		{"arguments cut", DialectGeneric, assistant(call(`{"a":`)), `{"role":"assistant","content":"",` + calls("{}") + `}`},
		{"arguments null", DialectGeneric, assistant(call(`null`)), `{"role":"assistant","content":"",` + calls("{}") + `}`},
		{"arguments empty", DialectGeneric, assistant(call(``)), `{"role":"assistant","content":"",` + calls("{}") + `}`},
		{"reasoning alone", "", assistant(dsh.Reasoning{Text: "r"}), `{"role":"assistant","content":"","reasoning_content":"r"}`},
		{"reasoning alone, OpenAI", DialectOpenAI, assistant(dsh.Reasoning{Text: "r"}), ``},
		{"empty answer", "", assistant(), ``},
		{"empty text", "", assistant(dsh.Text{}), ``},
		{"two texts", "", user(dsh.Text{Text: "a"}, dsh.Text{Text: "<b>"}), `{"role":"user","content":"a\n<b>"}`},
		{"empty user", "", user(), ``},
		{
			"image", "", user(dsh.Text{Text: "a"}, image),
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"low"}}]}`,
		},
		{"image of another form", "", user(dsh.Image{Raw: json.RawMessage(`{"attachment":"x"}`)}), `{"role":"user","content":"` + imageOmitted + `"}`},
		{"image that is no JSON", "", user(dsh.Image{}), `{"role":"user","content":"` + imageOmitted + `"}`},
		{"system", "", &dsh.Message{Role: dsh.RoleSystem, Content: []dsh.Block{dsh.Text{Text: "a"}}}, `{"role":"system","content":"a"}`},
		{"result", "", result("c", dsh.Text{Text: "a"}, dsh.Text{Text: "b"}), `{"role":"tool","content":"a\nb","tool_call_id":"c"}`},
		{"result without output", "", result("c"), `{"role":"tool","content":"(no output)","tool_call_id":"c"}`},
		{
			"error", "", user(dsh.ToolResult{CallID: "c", IsError: true, Content: []dsh.Block{dsh.Text{Text: "a"}}}),
			`{"role":"tool","content":"a","tool_call_id":"c"}`,
		},
		{
			"error without output", "", user(dsh.ToolResult{CallID: "c", IsError: true}),
			`{"role":"tool","content":"(error without output)","tool_call_id":"c"}`,
		},
		{"result with an image", "", result("c", image), `{"role":"tool","content":"` + imageOmitted + `","tool_call_id":"c"}`},
		{
			"two results and text", "", user(dsh.Text{Text: "t"}, dsh.ToolResult{CallID: "a"}, dsh.ToolResult{CallID: "b"}),
			`{"role":"tool","content":"(no output)","tool_call_id":"a"},{"role":"tool","content":"(no output)","tool_call_id":"b"},{"role":"user","content":"t"}`,
		},
		{
			"a call without ID", DialectGeneric, assistant(dsh.ToolCall{Name: "n"}),
			`{"role":"assistant","content":"",` + strings.Replace(calls("{}"), `"c"`, `"call"`, 1) + `}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := request(tt.message)
			req.Header.System = ""
			var b bytes.Buffer
			if err := encodeJSON(&b, wireMessages(tt.dialect, req)); err != nil {
				t.Fatal(err)
			}
			if want := "[" + tt.want + "]"; b.String() != want {
				t.Errorf("got\n%s, want\n%s", b.String(), want)
			}
		})
	}
}

// conversation returns a request after n steps.
func conversation(n int) *dsh.Request {
	messages := []*dsh.Message{dsh.UserText("go <on> \u2028")}
	for i := range n {
		id := dsh.CallID(fmt.Sprintf("c%d", i))
		messages = append(messages,
			assistant(dsh.Reasoning{Text: "r"}, dsh.ToolCall{ID: id, Name: "read", Arguments: `{"b":1,"a":2}`}),
			result(id, dsh.Text{Text: "x & y"}))
	}
	return request(messages...)
}

// The same request has the same bytes on the wire, each time and from each
// provider.
func TestBytesAreStable(t *testing.T) {
	options := Options{ExtraBody: map[string]any{"z": map[string]any{"b": 1, "a": []string{"<"}}, "y": 1, "x": "2"}}
	first := body(t, options, conversation(5))
	for range 100 {
		if got := body(t, options, conversation(5)); got != first {
			t.Fatalf("got\n%s, want\n%s", got, first)
		}
	}
	srv := llmtest.NewServer(t)
	srv.Respond(func(llmtest.Request) llmtest.Response { return llmtest.Text("ok") })
	options.BaseURL = srv.URL
	for range 5 {
		collect(t, newProvider(t, options).Stream(t.Context(), conversation(5)))
	}
	for _, r := range srv.Requests() {
		if string(r.Body) != first {
			t.Errorf("the wire has\n%s, want\n%s", r.Body, first)
		}
	}
}

// A longer history begins with the bytes of a shorter one.
func TestPrefixIsStable(t *testing.T) {
	for _, dialect := range []Dialect{DialectDeepSeek, DialectGeneric, DialectOpenAI} {
		before := ""
		for n := range 8 {
			now := body(t, Options{Dialect: dialect}, conversation(n))
			prefix, _, ok := strings.Cut(now, `],"stream"`)
			if !ok || !strings.HasPrefix(prefix, before) {
				t.Fatalf("%s: request %d\n%s\ndoes not extend\n%s", dialect, n, prefix, before)
			}
			before = prefix
		}
	}
}
