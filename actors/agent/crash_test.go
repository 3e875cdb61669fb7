package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/actortest"
	"github.com/dsh-actor/dsh-actor/internal/actortest/loglaw"
	rt "github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

// The runtime reopens an agent whose actor panicked, wherever that was: every
// caller of the moment gets an answer, the next prompt is served, readers go on
// reading, and the log of both lives obeys the laws.
func TestRuntimeReopensAnAgentThatPanicked(t *testing.T) {
	for _, s := range []struct {
		name string
		make func() session.Store
	}{
		{"memory", func() session.Store { return memory.New() }},
		{"disk", func() session.Store {
			return &actortest.Disk{Delay: func() time.Duration { return time.Millisecond }}
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			crashed := 0
			for n := 1; n < 1000; n++ {
				struck := false
				synctest.Test(t, func(t *testing.T) { struck = panicAt(t, n, s.make()) })
				if t.Failed() {
					t.Fatalf("with a panic behind event or notice %d", n)
				}
				if !struck {
					break
				}
				crashed++
			}
			if crashed < 30 {
				t.Errorf("only %d places to panic at", crashed)
			}
		})
	}
}

// panicAt reports whether the panic struck at all.
func panicAt(t *testing.T, n int, store session.Store) (struck bool) {
	b := &breaker{left: n}
	calls := script.Calls(
		dsh.ToolCall{ID: "a", Name: "echo", Arguments: "{}"}, dsh.ToolCall{ID: "b", Name: "echo", Arguments: "{}"})
	model := script.Func(script.Options{}, func(req *dsh.Request) script.Response {
		if err := dsh.CheckRequest(req.Messages); err != nil {
			t.Error(err)
		}
		if last := req.Messages[len(req.Messages)-1]; dsh.TextOf(last.Content) == "hello" {
			return calls
		}
		return script.Text("done", 2)
	})
	r, err := rt.New(rt.Options{Providers: map[string]llm.Provider{"mock": model}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second) // bodies of the life that crashed were told, and nobody waits for them
	}()
	a, err := r.Create(t.Context(), rt.Spec{
		ID: "a", Provider: "mock", Model: "m", Observer: b, Tools: []tool.Tool{echo(func() { time.Sleep(time.Millisecond) })},
	})
	if err != nil {
		t.Fatal(err)
	}
	following, stop := context.WithCancel(context.Background())
	var followed []dsh.Event
	var reader sync.WaitGroup
	reader.Go(func() {
		for ev, err := range a.Follow(following, 0) {
			if err != nil {
				return
			}
			followed = append(followed, ev)
		}
	})
	var callers sync.WaitGroup
	ask := func(call func() error) {
		callers.Go(func() {
			if err := call(); err != nil && !strings.Contains(err.Error(), "a bug") && !isBusy(err) {
				t.Errorf("a caller is told %v", err)
			}
		})
	}
	ask(func() error { _, err := a.Run(context.Background(), "hello"); return err })
	ask(func() error { return a.WaitIdle(context.Background()) })
	ask(func() error { _, err := a.State(context.Background()); return err })
	ask(func() error { return a.Inject(context.Background(), dsh.UserText("by the way")) })
	ask(func() error { return a.Maintain(context.Background(), func(context.Context) error { return nil }) })
	callers.Wait() // nobody hangs
	// What was asked after the panic reopened the agent; what is left ends.
	if err := a.WaitIdle(t.Context()); err != nil && !strings.Contains(err.Error(), "a bug") {
		t.Error(err)
	}
	o, err := a.Run(t.Context(), "again")
	if err != nil && strings.Contains(err.Error(), "a bug") { // it struck now
		o, err = a.Run(t.Context(), "and again")
	}
	if err != nil || !o.OK() {
		t.Errorf("the prompt after the panic at %s: %+v, %v", b.at, o, err)
	}
	if err := a.WaitIdle(t.Context()); err != nil {
		t.Error(err)
	}
	synctest.Wait()
	stop()
	reader.Wait()
	if err := loglaw.Check(followed); err != nil {
		t.Errorf("a panic at %s: %v", b.at, err)
	}
	if s, err := a.State(t.Context()); err != nil || int(s.Next) != len(followed) {
		t.Errorf("the reader has %d events of %d (%v)", len(followed), s.Next, err)
	}
	return b.at != ""
}

func isBusy(err error) bool { return strings.Contains(fmt.Sprint(err), rt.ErrBusy.Error()) }

// An agent that panicked and was not asked anything since can be disposed of,
// and its session resumed.
func TestDisposeOfAnAgentThatPanicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		r, err := rt.New(rt.Options{Providers: map[string]llm.Provider{"mock": script.New(script.Options{})}, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		a, err := r.Create(t.Context(), rt.Spec{ID: "a", Session: "s", Provider: "mock", Model: "m", Observer: &breaker{left: 5}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Run(t.Context(), "hello"); err == nil {
			t.Fatal("no panic")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := a.Dispose(ctx); err != nil {
			t.Errorf("dispose: %v", err)
		}
		b, err := r.Resume(t.Context(), "s", rt.Spec{ID: "a", Provider: "mock", Model: "m"})
		if err != nil {
			t.Errorf("resume: %v", err)
		} else if err := b.Dispose(ctx); err != nil {
			t.Error(err)
		}
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
