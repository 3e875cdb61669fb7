package loop

import (
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A batch of chunks costs one event that holds it, however many it has: its
// data and the effect that carries it are allocated, and once in a while the
// events' slab and the text gathered so far grow. No chunk costs anything.
func TestChunkAllocations(t *testing.T) {
	for _, c := range []struct {
		name   string
		chunks int
		limit  float64 // allocations per batch
	}{
		{"one at a time", 1, 3},
		{"in batches", 256, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := at(t, "streaming", false, false)
			chunks := make([]dsh.Chunk, c.chunks)
			for i := range chunks {
				chunks[i] = dsh.TextDelta{Index: 0, Text: "word "}
			}
			var in Input = Streamed{Pos: p.m.Pos(), Chunks: chunks}
			got := testing.AllocsPerRun(200, func() {
				if effects, err := p.m.Step(1, in); err != nil || len(effects) != 1 {
					t.Fatalf("%d effects, %v", len(effects), err)
				}
			})
			if got > c.limit {
				t.Errorf("%v allocations for %d chunks, want at most %v", got, c.chunks, c.limit)
			}
		})
	}
}

// A command that changes nothing allocates nothing.
func TestIdleAllocations(t *testing.T) {
	m := New(Config{Session: "s"})
	var in Input = Cancel{Cause: dsh.Cause{Kind: dsh.CauseUser}}
	if got := testing.AllocsPerRun(100, func() { m.Step(1, in) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
}
