package bench

import "testing"

// benchSlowTurns measures turns that take milliseconds, one after the other
// in one conversation: what its growth adds does not show.
func benchSlowTurns(b *testing.B, p place) {
	defer p.close(b)
	t := p.open(b)
	defer t.end(b)
	b.ReportAllocs()
	for b.Loop() {
		t.turn(b)
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/turn")
}

// W3: 8 parallel tool calls of 5 ms each, then 20 chunks. Ideal is 5 ms.
func BenchmarkW3ParallelTools(b *testing.B) { benchSlowTurns(b, onRuntime(b, toolTurn(8, slow))) }
