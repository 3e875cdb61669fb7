package toolpool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/dsh-actor/dsh-actor/actors/dispatch"
	"github.com/dsh-actor/dsh-actor/actors/toolpool"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a pool and agents that keep their results.
type fixture struct {
	system  *actor.ActorSystem
	workers *dispatch.Pool
	pool    *actor.PID

	mu      sync.Mutex
	results map[string][]toolpool.Result // by agent name, in order
	started []string                     // agent/index, in order
}

func newFixture(t *testing.T, limit int) *fixture {
	t.Helper()
	f := &fixture{
		system: dispatch.NewSystem(slog.New(slog.DiscardHandler)), workers: dispatch.New(),
		results: map[string][]toolpool.Result{},
	}
	f.pool = f.system.Root.Spawn(toolpool.Props(toolpool.Config{Limit: limit}, f.workers.Mailbox()))
	t.Cleanup(func() {
		f.system.Root.Stop(f.pool)
		synctest.Wait()
		f.system.Shutdown()
		f.workers.Close()
	})
	return f
}

// agent returns an actor that records the results it gets under its name.
func (f *fixture) agent(name string) *actor.PID {
	return f.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if r, ok := c.Message().(toolpool.Result); ok {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.results[name] = append(f.results[name], r)
		}
	}, f.workers.Mailbox()))
}

func (f *fixture) run(name string, agent *actor.PID, index int, body func(ctx context.Context) (hook.Outcome, error)) {
	f.system.Root.Send(f.pool, toolpool.Run{
		Pos: dsh.Pos{Turn: 1}, Index: index, Context: context.Background(), ReplyTo: agent,
		Execute: func(ctx context.Context, _ hook.Call) (hook.Outcome, error) {
			f.mu.Lock()
			f.started = append(f.started, fmt.Sprintf("%s/%d", name, index))
			f.mu.Unlock()
			return body(ctx)
		},
	})
}

func ok(context.Context) (hook.Outcome, error) { return hook.Outcome{}, nil }

// Every call gets exactly one result, whatever its body does.
func TestEveryRunHasOneResult(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct {
		name string
		body func(context.Context) (hook.Outcome, error)
		want func(error) bool
	}{
		{"success", ok, func(err error) bool { return err == nil }},
		{"error", func(context.Context) (hook.Outcome, error) { return hook.Outcome{}, broken },
			func(err error) bool { return errors.Is(err, broken) }},
		{"panic", func(context.Context) (hook.Outcome, error) { panic(broken) },
			func(err error) bool { return errors.Is(err, broken) }},
		{"ended goroutine", func(context.Context) (hook.Outcome, error) { runtime.Goexit(); return hook.Outcome{}, nil },
			func(err error) bool { return errors.Is(err, hook.ErrExited) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, 1)
				a := f.agent("a")
				f.run("a", a, 0, tc.body)
				f.run("a", a, 1, ok) // the place is free again
				synctest.Wait()
				if n := len(f.results["a"]); n != 2 {
					t.Fatalf("%d results, want 2", n)
				}
				if r := f.results["a"][0]; r.Index != 0 || r.Pos.Turn != 1 || !tc.want(r.Err) {
					t.Errorf("result %+v", r)
				}
			})
		})
	}
}

func TestTheLimitHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 3)
		a := f.agent("a")
		gate := make(chan struct{})
		var mu sync.Mutex
		now, most := 0, 0
		for i := range 10 {
			f.run("a", a, i, func(context.Context) (hook.Outcome, error) {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				<-gate
				mu.Lock()
				now--
				mu.Unlock()
				return hook.Outcome{}, nil
			})
		}
		synctest.Wait()
		if now != 3 {
			t.Errorf("%d bodies run, want 3", now)
		}
		close(gate)
		synctest.Wait()
		if most != 3 || len(f.results["a"]) != 10 {
			t.Errorf("at most %d at once, %d results", most, len(f.results["a"]))
		}
	})
}

// One agent with many calls does not starve another.
func TestAgentsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		greedy, modest := f.agent("greedy"), f.agent("modest")
		gate := make(chan struct{})
		f.run("greedy", greedy, 0, func(context.Context) (hook.Outcome, error) { <-gate; return hook.Outcome{}, nil })
		for i := 1; i < 4; i++ {
			f.run("greedy", greedy, i, ok)
		}
		f.run("modest", modest, 0, ok)
		synctest.Wait()
		close(gate)
		synctest.Wait()
		want := []string{"greedy/0", "greedy/1", "modest/0", "greedy/2", "greedy/3"}
		if !slices.Equal(f.started, want) {
			t.Errorf("order %q, want %q", f.started, want)
		}
	})
}

func TestAbortAnswersQueuedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		a, b := f.agent("a"), f.agent("b")
		gate := make(chan struct{})
		f.run("a", a, 0, func(context.Context) (hook.Outcome, error) { <-gate; return hook.Outcome{}, nil })
		f.run("a", a, 1, ok)
		f.run("b", b, 0, ok)
		f.run("a", a, 2, ok)
		f.system.Root.Send(f.pool, toolpool.Abort{ReplyTo: a})
		synctest.Wait()
		if got := f.results["a"]; len(got) != 2 || !errors.Is(got[0].Err, toolpool.ErrNotStarted) {
			t.Errorf("results after the abort: %+v", got)
		}
		close(gate)
		synctest.Wait()
		if len(f.results["a"]) != 3 || len(f.results["b"]) != 1 || len(f.started) != 2 {
			t.Errorf("a %d results, b %d, started %q", len(f.results["a"]), len(f.results["b"]), f.started)
		}
	})
}

// A body that waits for other agents takes no place.
func TestWaitingBodiesTakeNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		a := f.agent("a")
		inner := make(chan struct{})
		f.system.Root.Send(f.pool, toolpool.Run{
			Context: context.Background(), ReplyTo: a, Waits: true,
			Execute: func(context.Context, hook.Call) (hook.Outcome, error) { <-inner; return hook.Outcome{}, nil },
		})
		f.run("a", a, 1, func(context.Context) (hook.Outcome, error) { close(inner); return hook.Outcome{}, nil })
		synctest.Wait()
		if len(f.results["a"]) != 2 {
			t.Errorf("%d results, want 2", len(f.results["a"]))
		}
	})
}

// A bug of the pool itself costs nobody an answer, and the pool its count.
func TestABrokenPoolAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1)
		a := f.agent("a")
		release := make(chan struct{})
		f.run("a", a, 0, func(context.Context) (hook.Outcome, error) {
			<-release
			return hook.Outcome{}, nil
		})
		f.run("a", a, 1, ok)
		f.run("b", f.agent("b"), 0, ok)
		f.system.Root.Send(f.pool, toolpool.Abort{}) // nobody's: the handler trips over it
		synctest.Wait()
		for name, index := range map[string]int{"a": 1, "b": 0} {
			if got := f.results[name]; len(got) != 1 || got[0].Index != index || got[0].Err == nil {
				t.Errorf("results of %s: %+v", name, got)
			}
		}
		f.run("a", a, 2, ok)
		synctest.Wait()
		if got := f.results["a"]; len(got) != 1 {
			t.Errorf("a body ran beside the one that is the limit: %+v", got)
		}
		close(release)
		synctest.Wait()
		if got := f.results["a"]; len(got) != 3 || got[1].Err != nil || got[2].Err != nil {
			t.Errorf("results of a: %+v", got)
		}
	})
}
