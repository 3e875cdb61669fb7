package runtime_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/actortest"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// A disk that is full for long costs an agent what it was told meanwhile and a
// few attempts; all are well, and give their memory back, when the disk is.
func TestADiskThatIsFullForLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const agents, minutes = 1000, 10
		var full atomic.Bool
		var refused, requests atomic.Int64
		disk := &actortest.Disk{Fail: func() error {
			if full.Load() {
				refused.Add(1)
				return syscall.ENOSPC
			}
			return nil
		}}
		rt, err := runtime.New(runtime.Options{
			Store: disk, PassivateAfter: time.Minute,
			Providers: map[string]llm.Provider{"mock": script.Func(script.Options{}, func(*dsh.Request) script.Response {
				requests.Add(1)
				return script.Text("yes", 1)
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		all := make([]*runtime.Agent, agents)
		for i := range all {
			spec := runtime.Spec{ID: dsh.AgentID(fmt.Sprint("a", i)), Provider: "mock", Model: "m"}
			if all[i], err = rt.Create(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
		}
		// each runs the agents with what to expect.
		each := func(check func(a *runtime.Agent, o runtime.Outcome, err error) bool) {
			t.Helper()
			var wrong atomic.Int64
			var work sync.WaitGroup
			for _, a := range all {
				work.Go(func() {
					if o, err := a.Run(t.Context(), "hello"); !check(a, o, err) && wrong.Add(1) == 1 {
						t.Errorf("%s: %+v, %v", a.ID(), o, err)
					}
				})
			}
			work.Wait()
		}
		well := func(_ *runtime.Agent, o runtime.Outcome, err error) bool { return err == nil && o.OK() }
		each(well)
		full.Store(true)
		before, heap := requests.Load(), heapInUse()
		goroutines := goruntime.NumGoroutine()
		for range minutes {
			each(func(_ *runtime.Agent, o runtime.Outcome, err error) bool {
				return errors.Is(err, runtime.ErrNotDurable) && errors.Is(err, syscall.ENOSPC) && o.Ending.Kind == dsh.EndError
			})
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if n := requests.Load(); n != before {
			t.Errorf("%d requests on what is not durable", n-before)
		}
		// Two for each prompt, and what is written behind, less and less often.
		if n := refused.Load() / agents; n > minutes*(2+12) {
			t.Errorf("%d attempts to write per agent", n)
		}
		if grown := (heapInUse() - heap) / agents / minutes; grown > 8<<10 {
			t.Errorf("%d bytes more per prompt", grown)
		}
		if n := goruntime.NumGoroutine(); n > goroutines+agents/10 {
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}
		full.Store(false)
		time.Sleep(2 * time.Minute) // nobody asks them anything
		synctest.Wait()
		for _, a := range all {
			if !a.Passive() {
				t.Fatalf("%s is in memory still", a.ID())
			}
		}
		each(well)
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func heapInUse() int64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
