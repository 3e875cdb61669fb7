package bench

import (
	"slices"
	"testing"
	"time"
)

// The ratio benchmarks take turns between the runtime and the floor
// log+chunks, so that whatever else the machine does hits both, and report the
// ratio of the medians. They are what the targets refer to; the others show
// what is behind it. A round is long enough to have its share of collections.

// rounds measures a and b alternately and returns their median times per unit.
func rounds(b *testing.B, first, second func() time.Duration, units int) (x, y float64) {
	var xs, ys []time.Duration
	for b.Loop() {
		if len(xs)%2 == 0 {
			xs, ys = append(xs, first()), append(ys, second())
		} else {
			ys, xs = append(ys, second()), append(xs, first())
		}
	}
	b.ReportMetric(0, "ns/op") // a round has no meaning of its own
	return median(xs) / float64(units), median(ys) / float64(units)
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	n := len(d)
	return float64(d[n/2]+d[(n-1)/2]) / 2
}

// batch returns a round: n fresh conversations with so many turns each, only
// the turns on the clock.
func batch(tb testing.TB, p place, n, turns int) func() time.Duration {
	talks := make([]talk, n)
	return func() time.Duration {
		renew(tb, p, talks)
		start := time.Now()
		for _, t := range talks {
			for range turns {
				t.turn(tb)
			}
		}
		spent := time.Since(start)
		endAll(tb, talks)
		return spent
	}
}

func benchRatio(b *testing.B, w work, n, turns int) {
	over, under := onRuntime(b, w), onFloor(logChunks, w)
	defer over.close(b)
	x, y := rounds(b, batch(b, over, n, turns), batch(b, under, n, turns), n*turns)
	b.ReportMetric(x/y, "x-floor")
	b.ReportMetric(x, "ns/turn")
	b.ReportMetric(y, "floor-ns/turn")
}

func BenchmarkRatioW1(b *testing.B) { benchRatio(b, textTurn(pieces), scaled(512), 1) }

func BenchmarkRatioW2(b *testing.B) { benchRatio(b, toolTurn(1, trivial), scaled(512), 1) }

func BenchmarkRatioW3(b *testing.B) { benchRatio(b, toolTurn(8, slow), 8, 1) }

// BenchmarkRatioW2x10 compares with the floor and, as the target does, ten
// turns of a conversation with ten first turns.
func BenchmarkRatioW2x10(b *testing.B) {
	w := toolTurn(1, trivial)
	b.Run("floor", func(b *testing.B) { benchRatio(b, w, scaled(64), turns) })
	b.Run("growth", func(b *testing.B) {
		p, n := onRuntime(b, w), scaled(64)
		defer p.close(b)
		x, y := rounds(b, batch(b, p, n, turns), batch(b, p, n*turns, 1), n*turns)
		b.ReportMetric(x/y, "x-W2")
		b.ReportMetric(x, "ns/turn")
		b.ReportMetric(y, "first-ns/turn")
	})
}

// BenchmarkRatioW4 reports turns per second as a share of the floor's.
func BenchmarkRatioW4(b *testing.B) {
	w := toolTurn(1, trivial)
	round := func(p place) func() time.Duration {
		talks := make([]talk, crowd())
		return func() time.Duration {
			renew(b, p, talks)
			defer endAll(b, talks)
			return work10(b, talks)
		}
	}
	over, under := onRuntime(b, w), onFloor(logChunks, w)
	defer over.close(b)
	x, y := rounds(b, round(over), round(under), crowd()*turns)
	b.ReportMetric(y/x, "of-floor")
	b.ReportMetric(1e9/x, "turns/s")
	b.ReportMetric(1e9/y, "floor-turns/s")
}

// BenchmarkRatioStep compares a turn at 100,000 messages with one at 10.
func BenchmarkRatioStep(b *testing.B) {
	round := func(p past, repeat int) func() time.Duration {
		talks, _ := p.talks()
		if p.messages == longHistory {
			renew(b, p, talks) // once: it hardly grows
		}
		return func() time.Duration {
			if p.messages != longHistory {
				renew(b, p, talks)
			}
			start := time.Now()
			for _, t := range talks {
				for range repeat {
					t.turn(b)
				}
			}
			return time.Since(start)
		}
	}
	long, short := withPast(b, longHistory), withPast(b, 10)
	defer long.close(b)
	defer short.close(b)
	x, y := rounds(b, round(long, 128), round(short, 2), 128)
	b.ReportMetric(x/y, "x-short")
	b.ReportMetric(x, "ns/turn")
	b.ReportMetric(y, "short-ns/turn")
}
