package dsh_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

func TestSources(t *testing.T) {
	for _, tc := range []struct {
		seqs []dsh.Seq
		want []dsh.SeqRange
	}{
		{nil, nil},
		{[]dsh.Seq{4}, []dsh.SeqRange{{4, 4}}},
		{[]dsh.Seq{4, 5, 6}, []dsh.SeqRange{{4, 6}}},
		{[]dsh.Seq{4, 6, 7, 5}, []dsh.SeqRange{{4, 4}, {6, 7}, {5, 5}}},
		{[]dsh.Seq{2, 1, 0}, []dsh.SeqRange{{2, 2}, {1, 1}, {0, 0}}},
		{[]dsh.Seq{3, 3}, []dsh.SeqRange{{3, 3}, {3, 3}}},
	} {
		s := dsh.Cite(tc.seqs...)
		if !slices.Equal(s.Runs(), tc.want) {
			t.Errorf("%v: got %v, want %v", tc.seqs, s, tc.want)
		}
		if got := slices.Collect(s.All()); !slices.Equal(got, tc.seqs) || s.Len() != len(tc.seqs) {
			t.Errorf("%v lists %v", s, got)
		}
		for seq := dsh.Seq(-1); seq < 9; seq++ {
			if s.Contains(seq) != slices.Contains(tc.seqs, seq) {
				t.Errorf("%v contains %d: %v", s, seq, s.Contains(seq))
			}
		}
		for seq := range s.All() {
			if seq != tc.seqs[0] {
				t.Errorf("%v begins with %d", s, seq)
			}
			break
		}
	}
	if got, want := dsh.Cite(1).With(2, 5).With(9, 9), dsh.Cite(1, 2, 3, 4, 5, 9); !got.Equal(want) || len(got.Runs()) != 2 {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (*dsh.Sources)(nil).With(3, 4); got.Len() != 2 {
		t.Errorf("got %v", got)
	}
}

// packedLog returns six events in three.
func packedLog() []dsh.Event {
	return []dsh.Event{
		{Seq: 0, Time: 1, Data: dsh.TurnStart{Turn: 1}},
		{Seq: 1, Time: 2, Data: dsh.ChunkRun{Turn: 1, Step: 1, Chunks: []dsh.Chunk{
			dsh.TextDelta{Text: "a"}, dsh.TextDelta{Text: "b"}, dsh.TextDelta{Text: "c"}, dsh.TextDelta{Text: "d"},
		}}},
		{Seq: 5, Time: 3, Data: dsh.TurnEnd{Turn: 1}},
	}
}

func TestExpand(t *testing.T) {
	packed := packedLog()
	if packed[1].Span() != 4 || packed[1].Last() != 4 || packed[2].Last() != 5 {
		t.Error("spans are wrong")
	}
	events := slices.Collect(dsh.Expand(packed))
	if len(events) != 6 {
		t.Fatalf("%d events", len(events))
	}
	for i, ev := range events {
		if ev.Seq != dsh.Seq(i) || ev.Span() != 1 {
			t.Errorf("event %d is %+v", i, ev)
		}
	}
	want := dsh.Event{Seq: 3, Time: 2, Data: dsh.AssistantChunk{Turn: 1, Step: 1, Chunk: dsh.TextDelta{Text: "c"}}}
	if !reflect.DeepEqual(events[3], want) {
		t.Errorf("got %+v, want %+v", events[3], want)
	}
	for stop := range 6 {
		n := 0
		for range dsh.Expand(packed) {
			if n++; n > stop {
				break
			}
		}
		if n != stop+1 {
			t.Errorf("went on to %d after %d", n, stop)
		}
	}
}

// A cut log expands to the prefix of what the whole one expands to, and the
// whole one stays as it was.
func TestCut(t *testing.T) {
	whole := slices.Collect(dsh.Expand(packedLog()))
	for n := dsh.Seq(-1); n <= 7; n++ {
		packed := packedLog()
		cut := dsh.Cut(packed, n)
		got := slices.Collect(dsh.Expand(cut))
		if want := whole[:min(max(n, 0), 6)]; !slices.EqualFunc(got, want, eventsEqual) {
			t.Errorf("cut at %d: %+v", n, got)
		}
		if len(cut) > 0 {
			if run, ok := cut[len(cut)-1].Data.(dsh.ChunkRun); ok {
				_ = append(run.Chunks, dsh.TextDelta{Text: "overwritten"})
			}
		}
		_ = append(cut, dsh.Event{Seq: 99})
		if !reflect.DeepEqual(packed, packedLog()) {
			t.Errorf("cut at %d changed the log", n)
		}
	}
}

func eventsEqual(a, b dsh.Event) bool { return reflect.DeepEqual(a, b) }
