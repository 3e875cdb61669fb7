package openai

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// count is a whole number that may be absent. It takes floats and digits in
// quotes; anything else is absent.
type count struct {
	n    int64
	told bool
}

// UnmarshalJSON implements json.Unmarshaler; it never fails.
func (c *count) UnmarshalJSON(b []byte) error {
	*c = count{}
	number := json.Number(strings.Trim(string(b), `"`))
	if n, err := number.Int64(); err == nil {
		*c = count{max(n, 0), true}
		return nil
	}
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 1<<53 {
		return nil
	}
	*c = count{max(int64(f), 0), true}
	return nil
}

// wireUsage holds every spelling of the counts.
type wireUsage struct {
	Prompt     count `json:"prompt_tokens"`
	Completion count `json:"completion_tokens"`
	Total      count `json:"total_tokens"`
	Input      count `json:"input_tokens"`
	Output     count `json:"output_tokens"`

	CacheHit      count `json:"prompt_cache_hit_tokens"`     // DeepSeek
	CacheMiss     count `json:"prompt_cache_miss_tokens"`    // DeepSeek
	Cached        count `json:"cached_tokens"`               // Moonshot
	CacheRead     count `json:"cache_read_input_tokens"`     // Anthropic's, through proxies
	CacheCreation count `json:"cache_creation_input_tokens"` // Anthropic's, through proxies

	PromptDetails     promptDetails     `json:"prompt_tokens_details"`
	InputDetails      promptDetails     `json:"input_tokens_details"`
	CompletionDetails completionDetails `json:"completion_tokens_details"`
	OutputDetails     completionDetails `json:"output_tokens_details"`
}

type promptDetails struct {
	Cached     count `json:"cached_tokens"`
	CacheWrite count `json:"cache_write_tokens"`
}

type completionDetails struct {
	Reasoning count `json:"reasoning_tokens"`
}

// UnmarshalJSON implements json.Unmarshaler; it never fails.
func (u *wireUsage) UnmarshalJSON(b []byte) error {
	type plain wireUsage
	var p plain
	decodeLoose(b, &p)
	*u = wireUsage(p)
	return nil
}

// usage returns the counts, disjoint; ok is false if nothing was counted. A
// prompt count includes what was read from and written to a cache. Anthropic's
// input count does not. Two spellings of one count are the same tokens, so the
// first that was told is taken and nothing is added up.
func (u *wireUsage) usage() (out dsh.Usage, ok bool) {
	read := firstCount(u.CacheHit, u.PromptDetails.Cached, u.InputDetails.Cached, u.Cached, u.CacheRead)
	write := firstCount(u.PromptDetails.CacheWrite, u.InputDetails.CacheWrite, u.CacheCreation)
	reasoning := firstCount(u.CompletionDetails.Reasoning, u.OutputDetails.Reasoning)
	prompt, completion := firstCount(u.Prompt, u.Input), firstCount(u.Completion, u.Output)
	switch {
	case !u.Prompt.told && u.Input.told && u.CacheRead.told,
		!u.Prompt.told && u.Input.told && u.CacheCreation.told:
		out.InputTokens = u.Input.n
	case !prompt.told:
		out.InputTokens = u.CacheMiss.n
	default:
		out.InputTokens = max(prompt.n-read.n-write.n, 0)
	}
	out.OutputTokens = completion.n
	if reasoning.n > 0 && u.Total.n == prompt.n+completion.n+reasoning.n {
		out.OutputTokens += reasoning.n // told beside the completion, as xAI does
	}
	out.CacheReadTokens, out.CacheWriteTokens, out.ReasoningTokens = read.ptr(), write.ptr(), reasoning.ptr()
	return out, out.InputTokens+out.OutputTokens+read.n+write.n > 0
}

func firstCount(counts ...count) count {
	for _, c := range counts {
		if c.told {
			return c
		}
	}
	return count{}
}

func (c count) ptr() *int64 {
	if !c.told {
		return nil
	}
	return &c.n
}
