package bench

import (
	goruntime "runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// What the design promises whatever the machine: guarded by tests, with some
// room above what was measured, so that a guard that fails means a change.

// An idle agent has no goroutine.
func TestGuardsIdleAgents(t *testing.T) {
	const n = 200
	p := onRuntime(t, toolTurn(1, trivial))
	defer p.close(t)
	talks := make([]talk, n)
	before := goruntime.NumGoroutine()
	renew(t, p, talks)
	for _, talk := range talks {
		talk.turn(t)
	}
	// Workers belong to the runtime, a few per processor.
	room := 8 * goruntime.GOMAXPROCS(0)
	got := 0
	for range 100 {
		if got = goruntime.NumGoroutine() - before; got <= room {
			break
		}
		time.Sleep(10 * time.Millisecond) // streams that are still saying goodbye
	}
	if got > room {
		t.Errorf("%d idle agents have %d goroutines", n, got)
	}
	endAll(t, talks)
}

// An idle agent keeps no more than the target allows, its log in memory.
func TestGuardsIdleHeap(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	if got := inChild(t, onActors, "idle", 5_000).Heap; got > 8<<10 {
		t.Errorf("an idle agent keeps %.0f bytes of heap, want at most 8,192", got)
	}
}

func TestGuardsAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, tc := range []struct {
		name string
		work work
		most float64
	}{
		{"W1", textTurn(pieces), 125},
		{"W2", toolTurn(1, trivial), 230},
	} {
		if got := allocations(t, onRuntime(t, tc.work), fresh); got > tc.most {
			t.Errorf("%s: %.0f allocations per turn, want at most %.0f", tc.name, got, tc.most)
		}
	}
	few := allocations(t, onRuntime(t, textTurn(pieces)), fresh)
	many := allocations(t, onRuntime(t, textTurn(pieces+200)), fresh)
	if got := (many - few) / 200; got > 1.5 {
		t.Errorf("%.2f allocations per extra chunk, want at most 1.5", got)
	}
}

// A turn starts a goroutine per stream and per tool call, and none per chunk,
// message or event.
func TestGuardsGoroutines(t *testing.T) {
	for _, tc := range []struct {
		name string
		work work
		want float64
	}{
		{"W1", textTurn(pieces), 1},
		{"W1 with 220 chunks", textTurn(pieces + 200), 1},
		{"W2", toolTurn(1, trivial), 3},
	} {
		p := onRuntime(t, tc.work)
		talks := make([]talk, fresh)
		renew(t, p, talks)
		before := goroutinesCreated()
		for _, talk := range talks {
			talk.turn(t)
		}
		got := float64(goroutinesCreated()-before) / fresh
		endAll(t, talks)
		p.close(t)
		if got > tc.want+0.5 { // collections and new workers start some, too
			t.Errorf("%s: %.1f goroutines per turn, want %.0f", tc.name, got, tc.want)
		}
	}
}

func goroutinesCreated() uint64 {
	s := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
