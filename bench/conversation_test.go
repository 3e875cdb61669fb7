package bench

import "testing"

// turns is how many turns a conversation of W2×10 and W4 has.
const turns = 10

// benchConversations measures ten turns of a fresh conversation per
// operation, opened and ended off the clock.
func benchConversations(b *testing.B, p place) {
	defer p.close(b)
	b.ReportAllocs()
	talks := make([]talk, fresh/turns)
	left := 0
	for b.Loop() {
		if left == 0 {
			b.StopTimer()
			renew(b, p, talks)
			left = len(talks)
			b.StartTimer()
		}
		left--
		for range turns {
			talks[left].turn(b)
		}
	}
	b.StopTimer()
	endAll(b, talks)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*turns), "ns/turn")
}

// W2×10: does a turn cost more as the conversation grows? Compare with ten
// times W2; BenchmarkRatioW2x10 does.
func BenchmarkW2x10Conversation(b *testing.B) {
	benchConversations(b, onRuntime(b, toolTurn(1, trivial)))
}
