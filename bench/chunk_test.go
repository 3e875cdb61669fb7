package bench

import (
	goruntime "runtime"
	"testing"
)

// What does one more chunk allocate? The difference of turns with 220 and with
// 20 chunks, by 200.
func BenchmarkExtraChunk(b *testing.B) {
	for _, where := range []string{onActors, string(logChunks)} {
		b.Run(where, func(b *testing.B) {
			var few, many float64
			for b.Loop() {
				few += allocations(b, placeOf(b, where, textTurn(pieces)), fresh)
				many += allocations(b, placeOf(b, where, textTurn(pieces+200)), fresh)
			}
			b.ReportMetric((many-few)/200/float64(b.N), "allocs/chunk")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// allocations returns how many a first turn takes, over n conversations.
func allocations(tb testing.TB, p place, n int) float64 {
	defer p.close(tb)
	talks := make([]talk, n)
	renew(tb, p, talks)
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	for _, t := range talks {
		t.turn(tb)
	}
	goruntime.ReadMemStats(&after)
	endAll(tb, talks)
	return float64(after.Mallocs-before.Mallocs) / float64(n)
}
