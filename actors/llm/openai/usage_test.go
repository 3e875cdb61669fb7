package openai

import (
	"encoding/json"
	"fmt"
	"testing"
)

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Counts are written as input/output read write reasoning, with - for those
// that were not told.
func TestUsage(t *testing.T) {
	tests := []struct{ name, usage, want string }{
		{"plain", `{"prompt_tokens":10,"completion_tokens":5}`, "10/5 - - -"},
		{"DeepSeek", `{"prompt_tokens":30,"completion_tokens":5,"prompt_cache_hit_tokens":20,"prompt_cache_miss_tokens":10}`, "10/5 20 - -"},
		{"both spellings", `{"prompt_tokens":30,"completion_tokens":5,"prompt_cache_hit_tokens":20,"prompt_tokens_details":{"cached_tokens":20}}`, "10/5 20 - -"},
		{"OpenAI", `{"prompt_tokens":30,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":20},"completion_tokens_details":{"reasoning_tokens":3}}`, "10/5 20 - 3"},
		{"Moonshot", `{"prompt_tokens":30,"completion_tokens":5,"cached_tokens":20}`, "10/5 20 - -"},
		{"a proxy before Anthropic", `{"prompt_tokens":30,"completion_tokens":5,"cache_read_input_tokens":20,"cache_creation_input_tokens":4}`, "6/5 20 4 -"},
		{"Anthropic's own", `{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":20,"cache_creation_input_tokens":4}`, "10/5 20 4 -"},
		{"responses form", `{"input_tokens":30,"output_tokens":5,"input_tokens_details":{"cached_tokens":20},"output_tokens_details":{"reasoning_tokens":3}}`, "10/5 20 - 3"},
		{"a miss alone", `{"prompt_cache_miss_tokens":10,"completion_tokens":5}`, "10/5 - - -"},
		{"reasoning beside the completion", `{"prompt_tokens":10,"completion_tokens":5,"total_tokens":18,"completion_tokens_details":{"reasoning_tokens":3}}`, "10/8 - - 3"},
		{"floats and quotes", `{"prompt_tokens":10.0,"completion_tokens":"5"}`, "10/5 - - -"},
		{"more cached than there are", `{"prompt_tokens":10,"completion_tokens":5,"cached_tokens":20}`, "0/5 20 - -"},
		{"negative", `{"prompt_tokens":10,"completion_tokens":-5}`, "10/0 - - -"},
		{"odd types", `{"prompt_tokens":10,"completion_tokens":[],"prompt_tokens_details":7,"completion_tokens_details":null}`, "10/0 - - -"},
		{"told to be zero", `{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":0}`, "10/5 0 - -"},
		{"no counts", `{}`, "none"},
		{"zeros", `{"prompt_tokens":0,"completion_tokens":0}`, "none"},
		{"huge", `{"prompt_tokens":1e300,"completion_tokens":5}`, "0/5 - - -"},
		{"a list", `[]`, "none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var w wireUsage
			if err := json.Unmarshal([]byte(tt.usage), &w); err != nil {
				t.Fatal(err)
			}
			u, ok := w.usage()
			got := "none"
			if ok {
				got = fmt.Sprintf("%d/%d %s %s %s", u.InputTokens, u.OutputTokens,
					told(u.CacheReadTokens), told(u.CacheWriteTokens), told(u.ReasoningTokens))
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func told(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}
