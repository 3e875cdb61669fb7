package main

import (
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Each model's tokens are paid at its own price; a sum that would leave
// something out is not told.
func TestCostOf(t *testing.T) {
	prices := map[string]llm.Price{
		"big": {Input: 10, Output: 20}, "small": {Input: 1, Output: 2}, "foreign": {Input: 1, Currency: "EUR"},
	}
	million := dsh.Usage{InputTokens: 1_000_000, OutputTokens: 1_000_000}
	spent := func(models ...string) (routes []dsh.RouteUsage) {
		for _, m := range models {
			routes = append(routes, dsh.RouteUsage{Model: m, Usage: million})
		}
		return routes
	}
	for _, tc := range []struct {
		name   string
		routes []dsh.RouteUsage
		want   *cost
	}{
		{"nothing", nil, nil},
		{"one model", spent("big"), &cost{30, llm.DefaultCurrency}},
		{"a sub-agent on another model", spent("big", "small"), &cost{33, llm.DefaultCurrency}},
		{"a price is unknown", spent("big", "other"), nil},
		{"currencies do not add up", spent("small", "foreign"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := costOf(func(model string) llm.Price { return prices[model] }, tc.routes)
			if (got == nil) != (tc.want == nil) || got != nil && *got != *tc.want {
				t.Errorf("cost %v, want %v", got, tc.want)
			}
		})
	}
}
