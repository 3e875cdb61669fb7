package llm_test

import (
	"math"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Every token is paid once.
func TestPrice(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	u := dsh.Usage{InputTokens: 1e6, OutputTokens: 2e6, CacheReadTokens: n(4e6), CacheWriteTokens: n(1e6), ReasoningTokens: n(1e6)}
	for _, tt := range []struct {
		price llm.Price
		want  float64
	}{
		{llm.Price{}, 0},
		{llm.Price{Input: 2, Output: 3}, 2 + 8 + 2 + 6},
		{llm.Price{Input: 2, CacheRead: 0.5, CacheWrite: 4, Output: 3}, 2 + 2 + 4 + 6},
	} {
		if got := tt.price.Of(u); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%+v: %v, want %v", tt.price, got, tt.want)
		}
	}
	if (llm.Price{Currency: "EUR"}).Known() || !(llm.Price{Output: 1}).Known() {
		t.Error("known is wrong")
	}
}
