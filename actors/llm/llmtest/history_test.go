package llmtest_test

import (
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
)

func TestCheckHistory(t *testing.T) {
	const (
		user   = `{"role":"user","content":"x"}`
		calls  = `{"role":"assistant","content":"","reasoning_content":"","tool_calls":[` + callA + `,` + callB + `]}`
		toolA  = `{"role":"tool","content":"1","tool_call_id":"a"}`
		toolB  = `{"role":"tool","content":"2","tool_call_id":"b"}`
		answer = `{"role":"assistant","content":"done"}`
	)
	tests := []struct {
		name     string
		messages []string
		want     string // of the error; empty for none
	}{
		{"a turn", []string{user, calls, toolA, toolB, answer, user}, ""},
		{"results in another order", []string{user, calls, toolB, toolA}, ""},
		{"reasoning alone", []string{user, `{"role":"assistant","content":"","reasoning_content":"r"}`}, ""},
		{"none", nil, "too short"},
		{"a call without result at the end", []string{user, calls, toolA}, "insufficient tool messages"},
		{"a call without result", []string{user, calls, toolA, user}, "must be followed by tool messages"},
		{"a message between", []string{user, calls, toolA, user, toolB}, "must be followed by tool messages"},
		{"a result without call", []string{user, toolA}, "must be a response to a preceding message"},
		{"a result twice", []string{user, calls, toolA, toolA}, "must be a response to a preceding message"},
		{"a late result", []string{user, calls, toolA, toolB, answer, toolA}, "must be a response to a preceding message"},
		{"no content", []string{`{"role":"assistant","reasoning_content":"r"}`}, "missing field `content`"},
		{"null content", []string{`{"role":"user","content":null}`}, "missing field `content`"},
		{"an empty result", []string{user, calls, `{"role":"tool","content":"","tool_call_id":"a"}`}, "is empty"},
		{"an empty answer", []string{user, `{"role":"assistant","content":""}`}, "without content"},
		{"a strange role", []string{`{"role":"human","content":"x"}`}, "unknown role"},
		{"calls of a user", []string{`{"role":"user","content":"x","tool_calls":[` + callA + `]}`}, "role"},
		{"one ID twice", []string{user, `{"role":"assistant","content":"","tool_calls":[` + callA + `,` + callA + `]}`}, "duplicate"},
		{"no ID", []string{user, strings.Replace(calls, `"id":"a"`, `"id":""`, 1)}, "without an id"},
		{"no type", []string{user, strings.Replace(calls, `"type":"function",`, ``, 1)}, "type"},
		{"arguments cut", []string{user, strings.Replace(calls, `{}`, `{`, 1)}, "no JSON object"},
		{"arguments a list", []string{user, strings.Replace(calls, `{}`, `[]`, 1)}, "no JSON object"},
		{"arguments missing", []string{user, strings.Replace(calls, `,"arguments":"{}"`, ``, 1)}, "no JSON object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := llmtest.CheckHistory([]byte(`{"messages":[` + strings.Join(tt.messages, ",") + `]}`))
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
	t.Run("thinking without reasoning", func(t *testing.T) {
		body := `{"thinking":{"type":"enabled"},"messages":[` + user + `,` +
			strings.Replace(calls, `"reasoning_content":"",`, "", 1) + `,` + toolA + `,` + toolB + `]}`
		if err := llmtest.CheckHistory([]byte(body)); err == nil || !strings.Contains(err.Error(), "message index 1") {
			t.Errorf("got %v", err)
		}
	})
}

const (
	callA = `{"id":"a","type":"function","function":{"name":"n","arguments":"{}"}}`
	callB = `{"id":"b","type":"function","function":{"name":"n","arguments":"{}"}}`
)
