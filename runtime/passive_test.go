package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/actortest"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// keeper is a hook that keeps its agent, counts its lives and changes each
// first request.
type keeper struct {
	agent  hook.Agent
	starts atomic.Int64
}

func (k *keeper) SessionStart(_ context.Context, a hook.Agent, _ hook.Source) error {
	k.agent = a
	k.starts.Add(1)
	return nil
}

func (k *keeper) Request(ctx context.Context, p hook.Proposal, next hook.RequestFunc) (dsh.CallConfig, error) {
	c, err := next(ctx, p)
	if c.MaxTokens == 0 {
		c.MaxTokens = 77 // stands from then on
	} else {
		c.MaxTokens++
	}
	return c, err
}

// Idle agents are passivated in time, return with the next call and are the
// same as before. With all of them passive no timer is left.
func TestIdleAgentsArePassivated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := &keeper{}
		w := newWorld(t, runtime.Options{PassivateAfter: time.Minute, Hooks: []any{k}}, script.Text("one", 1), script.Text("two", 1))
		a := w.agent(t, runtime.Spec{ID: "a"})
		if _, err := a.Run(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		b := w.agent(t, runtime.Spec{ID: "b"})
		time.Sleep(30 * time.Second)
		if err := b.Inject(t.Context(), dsh.UserText("later")); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			after time.Duration
			a, b  bool
		}{{29 * time.Second, false, false}, {2 * time.Second, true, false}, {30 * time.Second, true, true}} {
			time.Sleep(step.after)
			synctest.Wait()
			if a.Passive() != step.a || b.Passive() != step.b {
				t.Errorf("passive: a %v, b %v, want %v", a.Passive(), b.Passive(), step)
			}
		}
		if log, err := w.store.Open(t.Context(), a.Session()); err != nil {
			t.Errorf("the log of a passive agent: %v", err)
		} else if _, err := a.Run(t.Context(), "too early"); !errors.Is(err, runtime.ErrInUse) {
			t.Errorf("with another owner: %v", err)
		} else if err := log.Close(); err != nil {
			t.Error(err)
		}
		if err := k.agent.Inject(t.Context(), dsh.UserText("by the hook that kept its agent")); err != nil || b.Passive() || !a.Passive() {
			t.Errorf("Inject = %v", err)
		}
		o, err := a.Run(t.Context(), "second")
		if err != nil || o.Turn != 2 || o.Text() != "two" {
			t.Errorf("Run = %+v, %v", o, err)
		}
		if n := k.starts.Load(); n != 2 {
			t.Errorf("%d session starts of two agents", n)
		}
		if s, err := b.State(t.Context()); err != nil || len(s.Inbox.NextStep) == 0 {
			t.Errorf("state of b: %+v, %v", s.Inbox, err)
		}
	})
}

// What is passivated between any two calls logs and asks the model what it would
// have without.
func TestPassivationLeavesNoTrace(t *testing.T) {
	story := func(t *testing.T, rest bool) (lines []string) {
		var requests []string
		model := script.Func(script.Options{}, func(r *dsh.Request) script.Response {
			var b strings.Builder
			for _, m := range r.Messages {
				b.Write(m.AppendJSON(nil))
			}
			requests = append(requests, fmt.Sprintf("request %v %d %s", r.Pos, r.Header.Config.MaxTokens, b.String()))
			return script.Text(fmt.Sprintf("answer %d", len(requests)), 1)
		})
		disk := &actortest.Disk{}
		rt, err := runtime.New(runtime.Options{
			Store: disk, Providers: map[string]llm.Provider{"mock": model}, Hooks: []any{&keeper{}}, PassivateAfter: -1,
		})
		if err != nil {
			t.Fatal(err)
		}
		a, err := rt.Create(t.Context(), runtime.Spec{
			ID: "a", Session: "a", Provider: "mock", Model: "m", Context: []hook.Section{{Name: "here", Text: "You are here."}},
		})
		if err != nil {
			t.Fatal(err)
		}
		pause := func() {
			if !rest {
				return
			}
			if err := a.Passivate(t.Context()); err != nil || !a.Passive() {
				t.Fatalf("Passivate = %v", err)
			}
		}
		message := func(id string) *dsh.Message {
			m := *dsh.UserText("message " + id)
			m.ID = dsh.MessageID(id)
			return &m
		}
		for i := range 4 {
			pause()
			if err := a.Inject(t.Context(), message(fmt.Sprint("injected-", i))); err != nil {
				t.Fatal(err)
			}
			pause()
			if i == 2 {
				if err := a.Do(t.Context(), runtime.Prepend(message("prepended"), dsh.NextTurn)); err != nil {
					t.Fatal(err)
				}
				pause()
			}
			if o, err := a.RunMessage(t.Context(), message(fmt.Sprint("prompt-", i))); err != nil || !o.OK() {
				t.Fatalf("%+v, %v", o, err)
			}
			pause()
			if _, err := a.Append(t.Context(), dsh.Opaque{Name: "todo/write", Raw: json.RawMessage(`{}`)}, dsh.SurfaceOp{}, nil); err != nil {
				t.Fatal(err)
			}
		}
		pause()
		if err := a.Do(t.Context(), runtime.Clear(), runtime.Cancel(dsh.Cause{Kind: dsh.CauseUser}, false)); err != nil {
			t.Fatal(err)
		}
		pause()
		for ev, err := range a.Events(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			ev.Time = 0
			lines = append(lines, string(ev.AppendJSON(nil)))
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		return append(lines, requests...)
	}
	bubble(t, func(t *testing.T) {
		without, with := story(t, false), story(t, true)
		for i := range max(len(without), len(with)) {
			switch {
			case i >= len(with):
				t.Fatalf("missing: %s", without[i])
			case i >= len(without):
				t.Fatalf("more: %s", with[i])
			case without[i] != with[i]:
				t.Fatalf("line %d:\n%s\ninstead of\n%s", i, with[i], without[i])
			}
		}
		if len(with) < 40 {
			t.Errorf("only %d lines were compared", len(with))
		}
	})
}

// Whatever is sent while an agent comes and goes is accepted once.
func TestPassivationRacesWithSenders(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	bubble(t, func(t *testing.T) { comeAndGo(t, seed) })
}

func comeAndGo(t *testing.T, seed uint64) {
	const senders, each = 8, 40
	ctx := t.Context()
	disk := &actortest.Disk{}
	rt, err := runtime.New(runtime.Options{
		Store: disk, PassivateAfter: -1,
		Providers: map[string]llm.Provider{"mock": script.Repeat(script.Options{}, script.Text("yes", 1))},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := rt.Create(ctx, runtime.Spec{ID: "a", Provider: "mock", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var passes int
	var resting, sending sync.WaitGroup
	resting.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond)
			was := a.Passive()
			switch err := a.Passivate(ctx); {
			case err == nil && !was:
				passes++
			case err == nil:
			case !errors.Is(err, runtime.ErrBusy):
				t.Errorf("Passivate: %v", err)
				return
			}
		}
	})
	for s := range senders {
		rng := rand.New(rand.NewPCG(seed, uint64(s)))
		sending.Go(func() {
			for i := range each {
				time.Sleep(time.Duration(rng.IntN(1_000)) * time.Microsecond)
				m := *dsh.UserText("hello")
				m.ID = dsh.MessageID(fmt.Sprintf("%d/%d", s, i))
				var err error
				switch rng.IntN(4) {
				case 0:
					err = a.Inject(ctx, &m)
				case 1:
					err = a.Steer(ctx, &m)
				case 2:
					err = a.Followup(ctx, &m)
				default:
					_, err = a.RunMessage(ctx, &m)
				}
				if err == nil && rng.IntN(3) == 0 {
					err = a.WaitIdle(ctx)
				}
				if err != nil {
					t.Errorf("message %s: %v", m.ID, err)
				}
			}
		})
	}
	sending.Wait()
	close(over)
	resting.Wait()
	if err := a.WaitIdle(ctx); err != nil {
		t.Error(err)
	}
	accepted := map[dsh.MessageID]int{}
	for ev, err := range a.Events(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if splice, ok := ev.Data.(dsh.InboxSpliced); ok {
			for _, m := range splice.Inserted {
				accepted[m.ID]++
			}
		}
	}
	if err := rt.Close(ctx); err != nil {
		t.Error(err)
	}
	for s := range senders {
		for i := range each {
			if id := dsh.MessageID(fmt.Sprintf("%d/%d", s, i)); accepted[id] != 1 {
				t.Errorf("message %s was accepted %d times", id, accepted[id])
			}
		}
	}
	if passes == 0 {
		t.Error("never passivated")
	}
}

// An agent that has anything to do or to tell stays.
func TestBusyAgentsAreNotPassivated(t *testing.T) {
	busy := func(t *testing.T, a *runtime.Agent, why string) {
		t.Helper()
		if err := a.Passivate(t.Context()); !errors.Is(err, runtime.ErrBusy) || a.Passive() {
			t.Errorf("%s: Passivate = %v", why, err)
		}
	}
	bubble(t, func(t *testing.T) {
		w := newWorld(t, runtime.Options{PassivateAfter: time.Minute}, hang(), script.Text("one", 1))
		a := w.agent(t, runtime.Spec{ID: "a"})
		p, err := a.Start(t.Context(), dsh.UserText("first"))
		if err != nil {
			t.Fatal(err)
		}
		busy(t, a, "a turn")
		time.Sleep(time.Hour)
		if a.Passive() {
			t.Error("passive in the middle of a turn")
		}
		if err := p.Withdraw(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := a.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		var task sync.WaitGroup
		task.Go(func() {
			err := a.Maintain(t.Context(), func(context.Context) error {
				<-release
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		busy(t, a, "maintenance")
		close(release)
		task.Wait()

		ctx, stop := context.WithCancel(t.Context())
		var followed, noticed int
		var readers sync.WaitGroup
		readers.Go(func() {
			for _, err := range a.Follow(ctx, 0) {
				if err == nil {
					followed++
				}
			}
		})
		synctest.Wait()
		busy(t, a, "a follower")
		notices := a.Notices(ctx, 8)
		readers.Go(func() {
			for range notices {
				noticed++
			}
		})
		time.Sleep(time.Hour)
		busy(t, a, "followers")
		if _, err := a.Run(t.Context(), "second"); err != nil {
			t.Fatal(err)
		}
		stop()
		readers.Wait()
		if followed == 0 || noticed == 0 {
			t.Errorf("%d events and %d notices", followed, noticed)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if !a.Passive() {
			t.Error("not passive when everybody has left")
		}
	})
}

// A disk that fails keeps an agent in memory: what it has not taken is there.
func TestAFailingDiskKeepsAgentsInMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var broken atomic.Bool
		disk := &actortest.Disk{Fail: func() error {
			if broken.Load() {
				return syscall.ENOSPC
			}
			return nil
		}}
		rt, err := runtime.New(runtime.Options{Store: disk, PassivateAfter: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		a, err := rt.Create(t.Context(), runtime.Spec{ID: "a"})
		if err != nil {
			t.Fatal(err)
		}
		broken.Store(true)
		if err := a.Inject(t.Context(), dsh.UserText("kept")); !errors.Is(err, runtime.ErrNotDurable) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Inject = %v", err)
		}
		time.Sleep(time.Hour)
		if a.Passive() {
			t.Fatal("passive without its log being durable")
		}
		broken.Store(false)
		if err := a.Inject(t.Context(), dsh.UserText("and taken")); err != nil {
			t.Error(err)
		}
		if err := a.Passivate(t.Context()); err != nil {
			t.Error(err)
		}
		if s, err := a.State(t.Context()); err != nil || len(s.Inbox.NextStep) != 2 {
			t.Errorf("%+v, %v", s.Inbox, err)
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

type noticed func(a hook.Agent, n hook.Notice)

func (f noticed) Notified(a hook.Agent, n hook.Notice) { f(a, n) }

// A passive agent is disposed of like any other: its pending input is discarded,
// or kept when the runtime closes.
func TestPassiveAgentsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ended atomic.Int64
		w := newWorld(t, runtime.Options{Hooks: []any{noticed(func(a hook.Agent, n hook.Notice) {
			if _, over := n.(hook.Disposed); over {
				ended.Add(1)
				if err := a.Inject(context.Background(), dsh.UserText("too late")); err == nil || a.ID() == "" || a.Session() == "" {
					t.Errorf("%s took a message when it was disposed of", a.ID())
				}
			}
		})}})
		passive := func(id dsh.AgentID) *runtime.Agent {
			a := w.agent(t, runtime.Spec{ID: id})
			err := errors.Join(a.Inject(t.Context(), dsh.UserText("later")), a.Passivate(t.Context()), a.Passivate(t.Context()))
			if err != nil || !a.Passive() {
				t.Fatalf("Passivate = %v", err)
			}
			if err := a.WaitIdle(t.Context()); err != nil {
				t.Error(err)
			}
			return a
		}
		a, b := passive("a"), passive("b")
		if err := a.Passivate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := a.Dispose(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := ended.Load(); n != 2 {
			t.Errorf("%d agents ended", n)
		}
		if got := strings.Join(types(t, a), " "); got != "agent/inbox/spliced agent/inbox/spliced" {
			t.Errorf("log of the disposed: %s", got)
		}
		if got := strings.Join(types(t, b), " "); got != "agent/inbox/spliced" {
			t.Errorf("log of the kept: %s", got)
		}
		for _, a := range []*runtime.Agent{a, b} {
			if err := a.Inject(t.Context(), dsh.UserText("too late")); !errors.Is(err, runtime.ErrDisposed) {
				t.Errorf("Inject = %v", err)
			}
			if err := a.Passivate(t.Context()); !errors.Is(err, runtime.ErrDisposed) {
				t.Errorf("Passivate = %v", err)
			}
		}
	})
}
