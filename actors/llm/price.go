package llm

import "github.com/dsh-actor/dsh-actor/dsh"

// A Price is what a million tokens of each kind cost. The zero Price is
// unknown, which is not the same as free.
type Price struct {
	// Input is for tokens that no cache had, CacheRead for those that it had
	// and CacheWrite for those that went into it. Output includes reasoning.
	// A CacheRead or CacheWrite of 0 means Input.
	Input, CacheRead, CacheWrite, Output float64
	// Currency is what the numbers are in; empty means USD.
	Currency string
}

// DefaultCurrency is that of a [Price] that names none.
const DefaultCurrency = "USD"

// Known reports whether anything is known of the price.
func (p Price) Known() bool {
	return p.Input != 0 || p.Output != 0 || p.CacheRead != 0 || p.CacheWrite != 0
}

// Of returns what u costs. The counts of a usage are disjoint, so nothing is
// paid twice; reasoning tokens are part of the output.
func (p Price) Of(u dsh.Usage) float64 {
	read, write := p.CacheRead, p.CacheWrite
	if read == 0 {
		read = p.Input
	}
	if write == 0 {
		write = p.Input
	}
	const million = 1_000_000
	return (float64(u.InputTokens)*p.Input + float64(told(u.CacheReadTokens))*read +
		float64(told(u.CacheWriteTokens))*write + float64(u.OutputTokens)*p.Output) / million
}

func told(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
