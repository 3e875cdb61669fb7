package bench

import (
	"sync"
	"testing"
	"time"
)

// crowd is how many agents work at once in W4.
func crowd() int { return scaled(1_000) }

// scaled is n, or a tenth of it in a smoke run, whose numbers say nothing.
func scaled(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// benchCrowd measures a thousand agents, each with a caller of its own that
// takes ten turns. Opening and ending them is off the clock. The peak of the
// resident memory is that of a process that does this once and nothing else.
func benchCrowd(b *testing.B, where string) {
	p := placeOf(b, where, toolTurn(1, trivial))
	defer p.close(b)
	b.ReportAllocs()
	var spent time.Duration
	for b.Loop() {
		b.StopTimer()
		talks := make([]talk, crowd())
		renew(b, p, talks)
		b.StartTimer()
		spent += work10(b, talks)
		b.StopTimer()
		endAll(b, talks)
		b.StartTimer()
	}
	b.ReportMetric(float64(crowd()*turns*b.N)/spent.Seconds(), "turns/s")
	b.ReportMetric(inChild(b, where, "crowd", crowd()).PeakMB, "peak-RSS-MB")
}

// work10 takes ten turns of all conversations at once.
func work10(tb testing.TB, talks []talk) time.Duration {
	var all sync.WaitGroup
	begin := make(chan struct{})
	for _, t := range talks {
		all.Go(func() {
			<-begin
			for range turns {
				t.turn(tb)
			}
		})
	}
	start := time.Now()
	close(begin)
	all.Wait()
	return time.Since(start)
}

// W4: 1,000 agents at once, ten W2 turns each.
func BenchmarkW4ThousandAgents(b *testing.B) { benchCrowd(b, onActors) }
