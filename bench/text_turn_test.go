package bench

import "testing"

// What does one turn cost? The turn is the first of a fresh conversation, as
// in PERFORMANCE.md: a turn further on costs the same (see W2×10) but would
// compare with a floor whose log has grown already. The conversations are
// opened and ended by the hundred, off the clock, for the runtime and the
// floors alike; what that costs is in BenchmarkOpenAndEnd.

// fresh is how many conversations are open at once to take one turn each.
const fresh = 128

// benchTurns measures one turn per operation.
func benchTurns(b *testing.B, p place) {
	defer p.close(b)
	b.ReportAllocs()
	talks := make([]talk, fresh)
	left := 0
	for b.Loop() {
		if left == 0 {
			b.StopTimer()
			renew(b, p, talks)
			left = fresh
			b.StartTimer()
		}
		left--
		talks[left].turn(b)
	}
	b.StopTimer()
	endAll(b, talks)
}

// renew ends the conversations and opens as many.
func renew(tb testing.TB, p place, talks []talk) {
	endAll(tb, talks)
	for i := range talks {
		talks[i] = p.open(tb)
	}
}

func endAll(tb testing.TB, talks []talk) {
	for _, t := range talks {
		if t != nil {
			t.end(tb)
		}
	}
	clear(talks)
}

// W1: a text answer streamed as 20 chunks.
func BenchmarkW1TextTurn(b *testing.B) { benchTurns(b, onRuntime(b, textTurn(pieces))) }
