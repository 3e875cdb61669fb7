package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// fold folds chunks that need no server.
func fold(t testing.TB, o Options, chunks ...string) ([]dsh.Chunk, error) {
	t.Helper()
	a := newAnswer(&o, request().Header)
	var out []dsh.Chunk
	for _, raw := range chunks {
		c, err := decodeChunk([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a.add(&c)...)
	}
	ends, err := a.end()
	return append(out, ends...), err
}

// Each row is a shape that a server sends; the calls are written as
// id:name:arguments, with * for an ID that was made up.
func TestToolCallDeltas(t *testing.T) {
	tests := []struct {
		name   string
		deltas []string // each the elements of one tool_calls
		want   []string
	}{
		{"two whole calls in one delta", []string{
			`{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"y","arguments":"{}"}}`,
		}, []string{"a:x:{}", "b:y:{}"}},
		{"two equal calls in one delta, without index and ID", []string{
			`{"function":{"name":"x","arguments":"{}"}},{"function":{"name":"x","arguments":"{}"}}`,
		}, []string{"*:x:{}", "*:x:{}"}},
		{"without index, by ID", []string{
			`{"id":"a","function":{"name":"x","arguments":"{"}}`,
			`{"id":"b","function":{"name":"y","arguments":"{"}}`,
			`{"id":"a","function":{"arguments":"}"}}`,
			`{"id":"b","function":{"arguments":"}"}}`,
		}, []string{"a:x:{}", "b:y:{}"}},
		{"without index and ID, one after the other", []string{
			`{"function":{"name":"x","arguments":"{\"n\":1}"}}`,
			`{"function":{"name":"x","arguments":"{\"n\":2}"}}`,
			`{"function":{"name":"y","arguments":""}}`,
			`{"function":{"arguments":"{}"}}`,
		}, []string{`*:x:{"n":1}`, `*:x:{"n":2}`, "*:y:{}"}},
		{"null index and ID", []string{
			`{"index":null,"id":null,"function":{"name":"x","arguments":"{"}}`,
			`{"index":null,"id":null,"function":{"name":null,"arguments":"}"}}`,
		}, []string{"*:x:{}"}},
		{"same index without IDs", []string{
			`{"index":0,"function":{"name":"x","arguments":"{\"n\":1}"}}`,
			`{"index":0,"function":{"name":"x","arguments":"{\"n\":2}"}}`,
		}, []string{`*:x:{"n":1}`, `*:x:{"n":2}`}},
		{"ID and name on each delta", []string{
			`{"index":0,"id":"a","function":{"name":"terminal","arguments":"{"}}`,
			`{"index":0,"id":"a","function":{"name":"terminal","arguments":"}"}}`,
			`{"index":0,"id":"a","function":{"name":"terminal","arguments":""}}`,
		}, []string{"a:terminal:{}"}},
		{"name repeated before the arguments", []string{
			`{"index":0,"id":"a","function":{"name":"terminal"}}`,
			`{"index":0,"function":{"name":"terminal","arguments":"{}"}}`,
		}, []string{"a:terminal:{}"}},
		{"name in pieces", []string{
			`{"index":0,"id":"a","function":{"name":"ter"}}`,
			`{"index":0,"function":{"name":"minal"}}`,
			`{"index":0,"function":{"arguments":"{}"}}`,
		}, []string{"a:terminal:{}"}},
		{"name that grows", []string{
			`{"index":0,"id":"a","function":{"name":"ter"}}`,
			`{"index":0,"function":{"name":"terminal","arguments":"{}"}}`,
		}, []string{"a:terminal:{}"}},
		{"one ID for all calls", []string{
			`{"index":0,"id":"x","function":{"name":"a","arguments":"{}"}}`,
			`{"index":1,"id":"x","function":{"name":"b","arguments":"{"}}`,
			`{"index":1,"id":"x","function":{"arguments":"}"}}`,
		}, []string{"x:a:{}", "*:b:{}"}},
		{"one ID and one index for all calls", []string{
			`{"index":0,"id":"x","function":{"name":"a","arguments":"{\"n\":1}"}}`,
			`{"index":0,"id":"x","function":{"name":"a","arguments":"{\"n\":2}"}}`,
		}, []string{`x:a:{"n":1}`, `*:a:{"n":2}`}},
		{"the last delta repeats the call", []string{
			`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\""}}`,
			`{"index":0,"function":{"arguments":":1}"}}`,
			`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}`,
		}, []string{`a:x:{"n":1}`}},
		{"arguments that restart", []string{
			`{"index":0,"id":"a","function":{"name":"x","arguments":"{"}}`,
			`{"index":0,"function":{"arguments":"{\"n\":1}"}}`,
		}, []string{`a:x:{{"n":1}`}},
		{"ID behind the first delta", []string{
			`{"index":0,"function":{"name":"x","arguments":"{"}}`,
			`{"index":0,"id":"late","function":{"arguments":"}"}}`,
		}, []string{"*:x:{}"}},
		{"index from the second delta", []string{
			`{"id":"a","function":{"name":"x","arguments":"{"}}`,
			`{"index":0,"function":{"arguments":"}"}}`,
		}, []string{"a:x:{}"}},
		{"an earlier call goes on at a shared index", []string{
			`{"index":0,"id":"a","function":{"name":"x","arguments":"{"}}`,
			`{"index":0,"id":"b","function":{"name":"x","arguments":"{}"}}`,
			`{"index":0,"id":"a","function":{"arguments":"}"}}`,
		}, []string{"a:x:{}", "b:x:{}"}},
		{"digits in quotes, ID as a number", []string{
			`{"index":"0","id":7,"function":{"name":"x","arguments":"{"}}`,
			`{"index":0,"function":{"arguments":"}"}}`,
		}, []string{"7:x:{}"}},
		{"no arguments at all", []string{`{"index":0,"id":"a","function":{"name":"x"}}`}, []string{"a:x:"}},
		{"arguments of other types", []string{
			`{"index":0,"id":"a","function":{"name":"x","arguments":null}},{"index":1,"id":"b","function":{"name":"x","arguments":[1, 2]}}`,
		}, []string{"a:x:", "b:x:[1,2]"}},
		{"an empty list", []string{``, `{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}`, ``}, []string{"a:x:{}"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var chunks []string
			for _, d := range tt.deltas {
				chunks = append(chunks, callDelta(d))
			}
			out, err := fold(t, Options{}, append(chunks, finished("stop"))...)
			if err != nil {
				t.Fatal(err)
			}
			var asm dsh.Assembler
			ids := map[dsh.CallID]bool{}
			for _, c := range out {
				asm.Add(c)
			}
			var got []string
			for _, c := range dsh.CallsOf(asm.Blocks()) {
				if ids[c.ID] {
					t.Errorf("two calls have the ID %s", c.ID)
				}
				ids[c.ID] = true
				if strings.HasPrefix(string(c.ID), "call_") {
					c.ID = "*"
				}
				got = append(got, fmt.Sprintf("%s:%s:%s", c.ID, c.Name, c.Arguments))
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("calls = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAnswerShapes(t *testing.T) {
	tests := []struct {
		name   string
		chunks []string
		want   string // of the blocks
	}{
		{"an old function call", []string{
			delta(`{"function_call":{"name":"x","arguments":"{"}}`), delta(`{"function_call":{"arguments":"}"}}`),
			finished("function_call"),
		}, "tool-calls call(x {})"},
		{"one call instead of a list", []string{
			delta(`{"tool_calls":{"id":"a","function":{"name":"x","arguments":"{}"}}}`), finished("stop"),
		}, "tool-calls call(x {})"},
		{"a whole message", []string{
			`{"choices":[{"message":{"role":"assistant","content":"hi","reasoning_content":"r"},"finish_reason":"stop"}]}`,
		}, "stop reasoning(r) text(hi)"},
		{"text, then a call, then text", []string{
			delta(`{"content":"a"}`), callDelta(`{"index":0,"id":"c","function":{"name":"x","arguments":"{}"}}`),
			delta(`{"content":"b"}`), finished("tool_calls"),
		}, "tool-calls text(ab) call(x {})"},
		{"both names of reasoning", []string{
			delta(`{"reasoning_content":"r","reasoning":"r"}`), delta(`{"content":"a"}`), finished("stop"),
		}, "stop reasoning(r) text(a)"},
		{"reasoning within the content", []string{
			delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"r"}]},{"type":"text","text":"a"}]}`),
			delta(`{"content":["b",{"type":"text","text":"c"},7]}`), finished("stop"),
		}, "stop reasoning(r) text(abc)"},
		{"a refusal", []string{delta(`{"refusal":"no"}`), finished("stop")}, "stop text(no)"},
		{"other choices", []string{
			`{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}`, finished("stop"),
		}, "stop text(a)"},
		{"null everywhere", []string{
			`{"choices":null,"usage":null}`, `{"choices":[{"delta":null,"finish_reason":null}]}`,
			delta(`{"content":null,"reasoning_content":null,"tool_calls":null,"function_call":null,"refusal":null}`),
			delta(`{"content":"a"}`), finished("null"), finished("stop"), `{}`,
		}, "stop text(a)"},
		{"an unknown finish reason", []string{delta(`{"content":"a"}`), finished("eos")}, "stop text(a)"},
		{"tool_calls without calls", []string{delta(`{"content":"a"}`), finished("tool_calls")}, "stop text(a)"},
		{
			"markup within code",
			[]string{delta("{\"content\":\"write\\n```\\n<tool_call>\\n```\\n`<｜DSML｜`\"}"), finished("stop")},
			"stop text(write\n```\n<tool_call>\n```\n`<｜DSML｜`)",
		},
		{"markup beside a call", []string{
			delta(`{"content":"<tool_call>"}`), callDelta(`{"id":"a","function":{"name":"x","arguments":"{}"}}`), finished("stop"),
		}, "tool-calls text(<tool_call>) call(x {})"},
		{
			"tags in prose",
			[]string{delta(`{"content":"a <tool_call> is a tag"}`), finished("stop")},
			"stop text(a <tool_call> is a tag)",
		},
		{"nothing", []string{finished("stop")}, "EMPTY_RESPONSE"},
		{"no finish reason", []string{delta(`{"content":"a"}`)}, "TRANSPORT"},
		{"neither", nil, "EMPTY_RESPONSE"},
		{"content filter", []string{delta(`{"content":"a"}`), finished("content_filter")}, "CONTENT_FILTER"},
		{"no resources", []string{delta(`{"content":"a"}`), finished("insufficient_system_resource")}, "SERVER"},
		{"finish error", []string{delta(`{"content":"a"}`), finished("error")}, "SERVER"},
		{"finish abort", []string{delta(`{"content":"a"}`), finished("abort")}, "SERVER"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			chunks, err := fold(t, Options{}, tt.chunks...)
			if got := describe(chunks, err); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if err == nil {
				checkShape(t, chunks)
			}
		})
	}
}

func describe(chunks []dsh.Chunk, err error) string {
	if err != nil {
		return string(failureOf(err).Code)
	}
	var asm dsh.Assembler
	for _, c := range chunks {
		asm.Add(c)
	}
	out := string(asm.Finish().Reason.Kind)
	for _, b := range asm.Blocks() {
		switch b := b.(type) {
		case dsh.Text:
			out += " text(" + b.Text + ")"
		case dsh.Reasoning:
			out += " reasoning(" + b.Text + ")"
		case dsh.ToolCall:
			out += " call(" + b.Name + " " + b.Arguments + ")"
		}
	}
	return out
}

func TestThinkSplitter(t *testing.T) {
	for text, want := range map[string]string{
		"<think>a</think>b":      "stop reasoning(a) text(b)",
		" \n<think>a</think>\nb": "stop reasoning(a) text(b)",
		"<think></think>b":       "stop text(b)",
		"<think>a":               "stop reasoning(a)",
		"<thin":                  "stop text(<thin)",
		"a<think>b</think>":      "stop text(a<think>b</think>)",
		"<think>a</thin":         "stop reasoning(a</thin)",
		"<think>a</</think>b":    "stop reasoning(a</) text(b)",
	} {
		var pieces []string
		for _, r := range text {
			pieces = append(pieces, delta(`{"content":`+string(mustJSON(string(r)))+`}`))
		}
		for _, chunks := range [][]string{pieces, {delta(`{"content":` + string(mustJSON(text)) + `}`)}} {
			out, err := fold(t, Options{SplitThink: true}, append(chunks, finished("stop"))...)
			if got := describe(out, err); got != want {
				t.Errorf("%q gives %q, want %q", text, got, want)
			}
		}
	}
}
