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
//
// Beside the time that passes they compare the processor time of the process
// (cpu-x-floor), which other processes hardly disturb and which, with all
// processors busy, is what throughput depends on. A single turn takes less
// time than processor time where goroutines overlap, and more where they wait
// for each other to be woken.

// cost is what a round took.
type cost struct{ wall, cpu time.Duration }

// clock returns a function that returns what was spent since.
func clock() func() cost {
	start, cpu := time.Now(), cpuTime()
	return func() cost { return cost{time.Since(start), cpuTime() - cpu} }
}

// rounds takes turns between two rounds and returns their median costs.
func rounds(b *testing.B, first, second func() cost) (x, y cost) {
	var xs, ys []cost
	round := func() {
		if len(xs)%2 == 0 {
			xs, ys = append(xs, first()), append(ys, second())
		} else {
			ys, xs = append(ys, second()), append(xs, first())
		}
	}
	for b.Loop() {
		round()
	}
	for len(xs) < 5 && !testing.Short() {
		round() // one that takes a second says little
	}
	b.ReportMetric(0, "ns/op") // a round has no meaning of its own
	return median(xs), median(ys)
}

func median(costs []cost) cost {
	middle := func(of func(cost) time.Duration) time.Duration {
		var d []time.Duration
		for _, c := range costs {
			d = append(d, of(c))
		}
		slices.Sort(d)
		return (d[len(d)/2] + d[(len(d)-1)/2]) / 2
	}
	return cost{middle(func(c cost) time.Duration { return c.wall }), middle(func(c cost) time.Duration { return c.cpu })}
}

// report reports x as a multiple of y, and both per turn.
func report(b *testing.B, x, y cost, turns int, than string) {
	b.ReportMetric(float64(x.wall)/float64(y.wall), "x-"+than)
	b.ReportMetric(float64(x.wall)/float64(turns), "ns/turn")
	b.ReportMetric(float64(y.wall)/float64(turns), than+"-ns/turn")
	if y.cpu > 0 {
		b.ReportMetric(float64(x.cpu)/float64(y.cpu), "cpu-x-"+than)
		b.ReportMetric(float64(x.cpu)/float64(turns), "cpu-ns/turn")
	}
}

// batch returns a round: n fresh conversations with so many turns each, only
// the turns on the clock.
func batch(tb testing.TB, p place, n, turns int) func() cost {
	talks := make([]talk, n)
	return func() cost {
		renew(tb, p, talks)
		spent := clock()
		for _, t := range talks {
			for range turns {
				t.turn(tb)
			}
		}
		defer endAll(tb, talks)
		return spent()
	}
}

func benchRatio(b *testing.B, w work, n, turns int) {
	over, under := onRuntime(b, w), onFloor(logChunks, w)
	defer over.close(b)
	x, y := rounds(b, batch(b, over, n, turns), batch(b, under, n, turns))
	report(b, x, y, n*turns, "floor")
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
		x, y := rounds(b, batch(b, p, n, turns), batch(b, p, n*turns, 1))
		report(b, x, y, n*turns, "first")
	})
}

// BenchmarkRatioW4 reports turns per second as a share of the floor's.
func BenchmarkRatioW4(b *testing.B) {
	w := toolTurn(1, trivial)
	round := func(p place) func() cost {
		talks := make([]talk, crowd())
		return func() cost {
			renew(b, p, talks)
			defer endAll(b, talks)
			spent := clock()
			work10(b, talks)
			return spent()
		}
	}
	over, under := onRuntime(b, w), onFloor(logChunks, w)
	defer over.close(b)
	x, y := rounds(b, round(over), round(under))
	perSecond := func(c cost) float64 { return float64(crowd()*turns) / c.wall.Seconds() }
	b.ReportMetric(perSecond(x)/perSecond(y), "of-floor")
	b.ReportMetric(perSecond(x), "turns/s")
	b.ReportMetric(perSecond(y), "floor-turns/s")
	report(b, x, y, crowd()*turns, "floor")
}

// BenchmarkRatioStep compares a turn at 100,000 messages with one at 10.
func BenchmarkRatioStep(b *testing.B) {
	round := func(p past, repeat int) func() cost {
		talks, _ := p.talks()
		if p.messages == longHistory {
			renew(b, p, talks) // once: it hardly grows
		}
		return func() cost {
			if p.messages != longHistory {
				renew(b, p, talks)
			}
			spent := clock()
			for _, t := range talks {
				for range repeat {
					t.turn(b)
				}
			}
			return spent()
		}
	}
	long, short := withPast(b, longHistory), withPast(b, 10)
	defer long.close(b)
	defer short.close(b)
	x, y := rounds(b, round(long, 128), round(short, 2))
	report(b, x, y, 128, "short")
}
