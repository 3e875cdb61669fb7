package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session"
	files "github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

// grove is a runtime without narrow limits and an agent to have children.
func grove(b *testing.B, model llm.Provider, tools ...tool.Tool) *runtime.Agent {
	b.Helper()
	return groveIn(b, nil, model, tools...)
}

// groveIn is grove with a store.
func groveIn(b *testing.B, store session.Store, model llm.Provider, tools ...tool.Tool) *runtime.Agent {
	b.Helper()
	rt, err := runtime.New(runtime.Options{
		Store:     store,
		Providers: map[string]llm.Provider{"script": model}, Tools: tools,
		Delegation: runtime.Delegation{MaxDepth: 1000, MaxChildren: 1e6, MaxTree: 1e6, MaxProcess: 1e6},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	a, err := rt.Create(context.Background(), runtime.Spec{Provider: "script", Model: "m"})
	if err != nil {
		b.Fatal(err)
	}
	return a
}

// How long does it take to split work over a thousand children, each with a turn
// of its own, until all have settled and their places are free?
func BenchmarkThousandChildren(b *testing.B) { benchChildren(b, nil) }

// The same with sessions in files, each of which is made, and made durable at
// every barrier.
func BenchmarkThousandChildrenInFiles(b *testing.B) {
	store, err := files.Open(b.TempDir(), files.Options{})
	if err != nil {
		b.Fatal(err)
	}
	benchChildren(b, store)
}

func benchChildren(b *testing.B, store session.Store) {
	n := scaled(1000)
	a := groveIn(b, store, script.Repeat(script.Options{}, script.Text("done", 1)))
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				c, err := a.Spawn(ctx, runtime.ChildSpec{})
				if err != nil {
					b.Error(err)
					return
				}
				if o, err := c.Run(ctx, prompt); err != nil || !o.OK() {
					b.Error(o, err)
				}
			})
		}
		all.Wait()
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/thousand")
}

// deeper is a tool whose call has a child do the same again.
func deeper() tool.Tool {
	return tool.New(tool.Definition{Name: "deeper", Waits: true, Execute: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		p, _ := delegation.From(ctx)
		c, err := p.Delegate(ctx, delegation.Spec{})
		if err != nil {
			return tool.Result{}, err
		}
		o, err := c.RunMessage(ctx, dsh.UserText(prompt))
		if err == nil {
			err = o.Err()
		}
		return tool.Text(o.Text()), err
	}})
}

// How long does a chain of fifty agents take of which each waits for the next?
func BenchmarkDepthFifty(b *testing.B) {
	const depth = 50
	call, done := script.Calls(dsh.ToolCall{ID: "c", Name: "deeper", Arguments: "{}"}), script.Text("done", 1)
	var down atomic.Int64
	model := script.Func(script.Options{}, func(req *dsh.Request) script.Response {
		if len(req.Messages) < 4 && down.Add(1) <= depth {
			return call
		}
		return done
	})
	ctx := context.Background()
	a := grove(b, model, deeper())
	b.ReportAllocs()
	for b.Loop() {
		down.Store(0)
		b.StopTimer()
		top, err := a.Spawn(ctx, runtime.ChildSpec{})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if o, err := top.Run(ctx, prompt); err != nil || !o.OK() {
			b.Fatal(o, err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/chain")
}

// How long until a tree of ten thousand agents at work is quiet after its root
// was cancelled? Children have ten children each; growing it is off the clock.
func BenchmarkAbortTree(b *testing.B) {
	n := scaled(10_000)
	var streaming atomic.Int64
	model := script.Repeat(script.Options{}, script.Response{
		script.Emit{Chunk: dsh.TextDelta{Text: "Let me think"}},
		script.Do{Func: func(context.Context) { streaming.Add(1) }},
		script.Hang{},
	})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		a := grove(b, model)
		streaming.Store(0)
		plant(b, a, n-1)
		if err := a.Followup(ctx, dsh.UserText(prompt)); err != nil {
			b.Fatal(err)
		}
		for streaming.Load() < int64(n) {
			time.Sleep(time.Millisecond)
		}
		b.StartTimer()
		if err := a.Cancel(ctx, dsh.Cause{Kind: dsh.CauseUser}, !runtime.KeepInbox); err != nil {
			b.Fatal(err)
		}
		if err := a.WaitIdle(ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/tree")
}

// plant gives a n descendants at work, ten to an agent, level by level.
func plant(b *testing.B, a *runtime.Agent, n int) {
	b.Helper()
	line := []*runtime.Agent{a}
	for i := range n {
		parent := line[i/10]
		c, err := parent.Spawn(context.Background(), runtime.ChildSpec{Background: true, Label: fmt.Sprint(i)})
		if err == nil {
			err = c.Begin(context.Background(), dsh.UserText(prompt))
		}
		if err != nil {
			b.Fatal(err)
		}
		line = append(line, c.Agent)
	}
}

// How many children can be made and disposed of in a second, one after the other?
func BenchmarkSpawnDispose(b *testing.B) {
	a := grove(b, script.Repeat(script.Options{}, script.Text("done", 1)))
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		c, err := a.Spawn(ctx, runtime.ChildSpec{})
		if err == nil {
			err = c.Dispose(ctx)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "children/s")
}
