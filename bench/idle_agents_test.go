package bench

import "testing"

// benchIdle measures what n idle agents keep after one W2 turn each, in a
// process that does nothing else. Heap is what is reachable; RSS is what the
// system counts, with free memory given back; both above what the process had
// before it opened the first.
func benchIdle(b *testing.B, where string, n int) {
	n = scaled(n)
	var sum sizes
	for b.Loop() {
		s := inChild(b, where, "idle", n)
		sum.Heap += s.Heap
		sum.RSS += s.RSS
		sum.Goroutines += s.Goroutines
		sum.TotalMB += s.TotalMB
	}
	b.ReportMetric(sum.Heap/float64(b.N), "heap-B/agent")
	b.ReportMetric(sum.RSS/float64(b.N), "RSS-B/agent")
	b.ReportMetric(sum.Goroutines/float64(b.N), "goroutines/agent")
	b.ReportMetric(sum.TotalMB/float64(b.N), "RSS-MB")
	b.ReportMetric(0, "ns/op") // it is mostly the start of a process
}

// W5: what does an idle agent cost, at 10,000?
func BenchmarkW5IdleAgents(b *testing.B) { benchIdle(b, onActors, 10_000) }

// W6: the same at 100,000.
func BenchmarkW6IdleAgents(b *testing.B) {
	if testing.Short() {
		b.Skip("takes a gigabyte")
	}
	benchIdle(b, onActors, 100_000)
}
