package dsh_test

import (
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

func textDelta() dsh.Event {
	return dsh.Event{Seq: 1234, Time: 1790000000050, Data: dsh.AssistantChunk{
		Turn: 1, Step: 2, Chunk: dsh.TextDelta{Index: 0, Text: " some words"},
	}}
}

// Writing a chunk costs no allocation in a buffer that is large enough.
func TestAppendJSONAllocs(t *testing.T) {
	ev, buf := textDelta(), make([]byte, 0, 1024)
	if got := testing.AllocsPerRun(1000, func() { buf = ev.AppendJSON(buf[:0]) }); got != 0 {
		t.Errorf("%g allocations per chunk", got)
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	for _, bc := range []struct {
		name string
		ev   dsh.Event
	}{
		{"text-delta", textDelta()},
		{"assistant-message", readTurn(b)[19]},
		{"request-header", readTurn(b)[5]},
	} {
		b.Run(bc.name, func(b *testing.B) {
			buf := make([]byte, 0, 4096)
			b.ReportAllocs()
			for b.Loop() {
				buf = bc.ev.AppendJSON(buf[:0])
			}
			b.SetBytes(int64(len(buf)))
		})
	}
}

// Reading the documented turn, 33 events, as a session is restored.
func BenchmarkUnmarshalJSON(b *testing.B) {
	lines := readLines(b, "turn.jsonl")[1:]
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, line := range lines {
			var ev dsh.Event
			if err := ev.UnmarshalJSON(line); err != nil {
				b.Fatal(err)
			}
		}
	}
}
