package bench

import "testing"

// benchOpenAndEnd measures a conversation without a turn.
func benchOpenAndEnd(b *testing.B, p place) {
	defer p.close(b)
	b.ReportAllocs()
	for b.Loop() {
		p.open(b).end(b)
	}
}

// What does it cost to open an agent and to dispose of it?
func BenchmarkOpenAndEnd(b *testing.B) {
	b.Run("runtime", func(b *testing.B) { benchOpenAndEnd(b, onRuntime(b, textTurn(1))) })
	b.Run("log+chunks", func(b *testing.B) { benchOpenAndEnd(b, onFloor(logChunks, textTurn(1))) })
}
