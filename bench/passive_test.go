package bench

import (
	"context"
	"os"
	goruntime "runtime"
	"sync"
	"testing"

	disk "github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// W5, passivated: what is left of an agent on the store on disk that was idle
// for long?
func BenchmarkW5PassiveAgents(b *testing.B) { benchPassive(b, 10_000) }

// W6, passivated: the same at 100,000.
func BenchmarkW6PassiveAgents(b *testing.B) {
	if testing.Short() {
		b.Skip("writes 100,000 logs")
	}
	benchPassive(b, 100_000)
}

func benchPassive(b *testing.B, n int) {
	n = scaled(n)
	var sum sizes
	for b.Loop() {
		s := inChild(b, onActors, "passive", n)
		sum.Heap += s.Heap
		sum.Goroutines += s.Goroutines
		sum.TotalMB += s.TotalMB
	}
	b.ReportMetric(sum.Heap/float64(b.N), "heap-B/agent")
	b.ReportMetric(sum.Goroutines/float64(b.N), "goroutines/agent")
	b.ReportMetric(sum.TotalMB/float64(b.N), "RSS-MB")
	b.ReportMetric(0, "ns/op") // it is mostly writing
}

// sizesOfPassive is the job of the process that is measured. What agents leave
// behind that are gone, most of it in the library's registry, is there before.
func sizesOfPassive(tb testing.TB, n int) sizes {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "passive") //nolint:usetesting // no test runs in this process.
	if err != nil {
		tb.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := disk.Open(dir, disk.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	rt := newRuntime(tb, toolTurn(1, trivial), store)
	for _, a := range passive(tb, rt, min(n, 20_000)) {
		if err := a.Dispose(ctx); err != nil {
			tb.Fatal(err)
		}
	}
	before := measure()
	agents := passive(tb, rt, n)
	after := measure()
	goruntime.KeepAlive(agents)
	if err := rt.Close(ctx); err != nil {
		tb.Fatal(err)
	}
	return sizes{
		Heap:       (after.Heap - before.Heap) / float64(n),
		Goroutines: (after.Goroutines - before.Goroutines) / float64(n),
		TotalMB:    after.RSS / (1 << 20),
	}
}

// passive opens agents, lets each take a turn and passivates it, few at a time:
// a live agent has files open.
func passive(tb testing.TB, rt *runtime.Runtime, n int) []*runtime.Agent {
	ctx := context.Background()
	agents := make([]*runtime.Agent, n)
	next := make(chan int)
	var work sync.WaitGroup
	for range 200 {
		work.Go(func() {
			for i := range next {
				a, err := rt.Create(ctx, runtime.Spec{Provider: "main", Model: "m"})
				if err != nil {
					tb.Fatal(err)
				}
				runtimeTalk{a, nil}.turn(tb)
				if err := a.Passivate(ctx); err != nil {
					tb.Fatal(err)
				}
				agents[i] = a
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	work.Wait()
	return agents
}

// What does it cost to bring an agent back for a turn that was passive, after
// ten turns, with its log on disk? The turn itself is in both.
func BenchmarkReturn(b *testing.B) {
	for _, passive := range []bool{false, true} {
		name := "live"
		if passive {
			name = "passive"
		}
		b.Run(name, func(b *testing.B) {
			ctx := context.Background()
			store, err := disk.Open(b.TempDir(), disk.Options{})
			if err != nil {
				b.Fatal(err)
			}
			rt := newRuntime(b, textTurn(1), store)
			a, err := rt.Create(ctx, runtime.Spec{Provider: "main", Model: "m"})
			if err != nil {
				b.Fatal(err)
			}
			for range 10 {
				runtimeTalk{a, nil}.turn(b)
			}
			n := 0
			for b.Loop() {
				b.StopTimer()
				if n++; n%20 == 0 { // the log must not grow without end
					if err := a.Dispose(ctx); err != nil {
						b.Fatal(err)
					}
					if a, err = rt.Create(ctx, runtime.Spec{Provider: "main", Model: "m"}); err != nil {
						b.Fatal(err)
					}
					for range 10 {
						runtimeTalk{a, nil}.turn(b)
					}
				}
				if passive {
					if err := a.Passivate(ctx); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				runtimeTalk{a, nil}.turn(b)
			}
			if err := rt.Close(ctx); err != nil {
				b.Fatal(err)
			}
		})
	}
}
