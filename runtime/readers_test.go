package runtime_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// A reader that starts late or reads slowly gets every event once, in order.
func TestReadersLoseNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const turns = 5
		w := newWorld(t, runtime.Options{}, slices.Repeat([]script.Response{script.Text("abcdefghij", 10)}, turns)...)
		a := w.agent(t, runtime.Spec{})
		var readers sync.WaitGroup
		counts := make([]int, 4)
		for i := range counts {
			readers.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				next := dsh.Seq(0)
				for ev, err := range a.Follow(context.Background(), 0) {
					if err != nil {
						t.Errorf("reader %d: %v", i, err)
						return
					}
					if ev.Seq != next {
						t.Errorf("reader %d: event %d follows %d", i, ev.Seq, next-1)
					}
					next++
					counts[i]++
					time.Sleep(time.Duration(i) * time.Millisecond)
				}
			})
		}
		for range turns {
			if _, err := a.Run(t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
		}
		s, _ := a.State(t.Context())
		if err := a.Dispose(t.Context()); err != nil {
			t.Fatal(err)
		}
		readers.Wait() // Follow ends with the agent
		for i, n := range counts {
			if n != int(s.Next) {
				t.Errorf("reader %d got %d of %d events", i, n, s.Next)
			}
		}
	})
}

func TestFollowEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newWorld(t, runtime.Options{}).agent(t, runtime.Spec{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var last error
		for _, err := range a.Follow(ctx, 0) {
			last = err
		}
		if !errors.Is(last, context.DeadlineExceeded) {
			t.Errorf("Follow ended with %v", last)
		}
	})
}

func TestNotices(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newWorld(t, runtime.Options{}, script.Text("x", 1)).agent(t, runtime.Spec{})
		var got []string
		var done sync.WaitGroup
		notices := a.Notices(context.Background(), 16)
		done.Go(func() {
			for n := range notices {
				got = append(got, n.Type())
			}
		})
		if _, err := a.Run(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		if err := a.Dispose(t.Context()); err != nil {
			t.Fatal(err)
		}
		done.Wait()
		want := []string{
			"agent/inbox/inserted", "agent/status", "agent/inbox/claimed", "agent/status", "agent/disposed",
		}
		if !slices.Equal(got, want) {
			t.Errorf("notices %q, want %q", got, want)
		}
	})
}
