package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// storm is how many agents are cancelled while their models answer.
func storm() int { return scaled(10_000) }

// How long until everything is quiet after all is cancelled? Each agent is in
// the middle of a stream that ends only with its context. Each is cancelled
// and waited for by a goroutine of its own; opening, starting and disposing
// are off the clock.
func BenchmarkCancelStorm(b *testing.B) {
	ctx := context.Background()
	var streaming atomic.Int64
	model := script.Repeat(script.Options{}, script.Response{
		script.Emit{Chunk: dsh.BlockStart{BlockType: dsh.TextBlock}},
		script.Emit{Chunk: dsh.TextDelta{Text: "Let me think"}},
		script.Do{Func: func(context.Context) { streaming.Add(1) }},
		script.Hang{},
	})
	p := onRuntime(b, work{model: model, tool: trivial})
	defer p.close(b)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		talks := make([]talk, storm())
		renew(b, p, talks)
		streaming.Store(0)
		for _, t := range talks {
			if err := t.(runtimeTalk).a.Followup(ctx, dsh.UserText(prompt)); err != nil {
				b.Fatal(err)
			}
		}
		for streaming.Load() < int64(storm()) {
			time.Sleep(time.Millisecond)
		}
		b.StartTimer()
		quiet(b, talks)
		b.StopTimer()
		endAll(b, talks)
		b.StartTimer()
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/storm")
}

// quiet cancels what runs and waits until nothing does.
func quiet(tb testing.TB, talks []talk) {
	ctx := context.Background()
	var all sync.WaitGroup
	for _, t := range talks {
		all.Go(func() {
			a := t.(runtimeTalk).a
			if err := a.Cancel(ctx, dsh.Cause{Kind: dsh.CauseUser}, !runtime.KeepInbox); err != nil {
				tb.Error(err)
			}
			if err := a.WaitIdle(ctx); err != nil {
				tb.Error(err)
			}
		})
	}
	all.Wait()
}
