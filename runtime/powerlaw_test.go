package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/actortest/loglaw"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
	"github.com/dsh-actor/dsh-actor/toolset/subagent"
)

// fragile is a disk that forgets everything that was not synced when the power
// fails. Nothing that is noted afterwards was known to anybody.
type fragile struct {
	*memory.Store
	d *dice

	mu       sync.Mutex
	appended map[dsh.SessionID][]dsh.Event
	durable  map[dsh.SessionID]int // of them, packed
	dark     bool
	promises []promise
}

// promise is what somebody was told, and how to find it in what is left.
type promise struct {
	what string
	id   dsh.SessionID
	kept func(dsh.Event) bool
}

func newFragile(d *dice) *fragile {
	return &fragile{
		Store: memory.New(), d: d, appended: map[dsh.SessionID][]dsh.Event{}, durable: map[dsh.SessionID]int{},
	}
}

func (*fragile) Volatile() bool { return false }

// fail is the power failure.
func (f *fragile) fail() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dark = true
}

// told notes what somebody is told, unless the power has failed.
func (f *fragile) told(id dsh.SessionID, what string, kept func(dsh.Event) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.dark {
		f.promises = append(f.promises, promise{what, id, kept})
	}
}

func (f *fragile) Create(ctx context.Context, h dsh.SessionHeader) (session.Log, error) {
	log, err := f.Store.Create(ctx, h)
	return &fragileLog{log, f}, err
}

func (f *fragile) Open(ctx context.Context, id dsh.SessionID) (session.Log, error) {
	log, err := f.Store.Open(ctx, id)
	return &fragileLog{log, f}, err
}

type fragileLog struct {
	session.Log
	f *fragile
}

func (l *fragileLog) Append(ctx context.Context, fence session.Fence, events []dsh.Event) error {
	time.Sleep(time.Duration(l.f.d.roll(10)) * time.Millisecond)
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	if l.f.dark {
		return syscall.EIO
	}
	err := l.Log.Append(ctx, fence, events)
	if id := l.Header().ID; err == nil {
		l.f.appended[id] = append(l.f.appended[id], events...)
	}
	return err
}

func (l *fragileLog) Sync(context.Context) error {
	l.f.mu.Lock()
	id, n := l.Header().ID, len(l.f.appended[l.Header().ID])
	l.f.mu.Unlock()
	time.Sleep(time.Duration(l.f.d.roll(30)) * time.Millisecond)
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	if l.f.dark {
		return syscall.EIO
	}
	l.f.durable[id] = max(n, l.f.durable[id])
	return nil
}

// left returns what is left of a log, and a disk with all that is left.
func (f *fragile) left(t *testing.T) (map[dsh.SessionID][]dsh.Event, *fragile) {
	t.Helper()
	logs, disk := map[dsh.SessionID][]dsh.Event{}, newFragile(f.d)
	for h := range f.List(t.Context()) {
		events := slices.Clone(f.appended[h.ID][:f.durable[h.ID]])
		if len(events) == 0 {
			continue
		}
		log, err := disk.Create(t.Context(), h)
		if err == nil {
			err = errors.Join(session.Extend(t.Context(), log, events), log.Sync(t.Context()), log.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		logs[h.ID] = events
	}
	return logs, disk
}

// Whatever somebody was told before the power failed is in what is left of the
// logs: messages and facts that were acknowledged once, the ends of turns that
// were answered, the calls whose bodies ran, and children with their outcomes. What is left is a session that goes on.
func TestWhatWasToldSurvivesAPowerFailure(t *testing.T) {
	kinds := map[string]int{}
	seeds(t, 80, func(t *testing.T, seed uint64) {
		f := newFragile(&dice{rng: rand.New(rand.NewPCG(seed, 13))})
		f.play(t)
		logs, disk := f.left(t)
		for _, p := range f.promises {
			kinds[p.what]++
			found := 0
			for ev := range dsh.Expand(logs[p.id]) {
				if p.kept(ev) {
					found++
				}
			}
			if found != 1 {
				t.Errorf("%s was told of %s, and what is left has it %d times", p.what, p.id, found)
			}
		}
		for id, events := range logs {
			var laws loglaw.Laws
			if err := laws.AddAll(append(events, dsh.Closers(events)...)); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		rt := disk.start(t)
		defer stop(t, rt)
		if logs["s"] == nil {
			return
		}
		a, err := rt.Resume(t.Context(), "s", runtime.Spec{Provider: "mock", Model: "m"})
		if err == nil {
			err = a.Do(t.Context(), runtime.Clear())
		}
		if err != nil {
			t.Fatal(err)
		}
		if o, err := a.Run(t.Context(), "go on"); err != nil || !o.OK() {
			t.Errorf("afterwards: %+v, %v", o, err)
		}
	})
	t.Logf("what was told: %v", kinds)
	for _, what := range []string{"a message", "a fact", "an outcome", "a body", "a child's outcome"} {
		if kinds[what] == 0 {
			t.Errorf("nobody was told of %s", what)
		}
	}
}

func (f *fragile) start(t *testing.T) *runtime.Runtime {
	t.Helper()
	set, err := subagent.New(subagent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	touch := tool.New(tool.Definition{Name: "touch", Description: "Touches.", Mode: tool.Parallel,
		Execute: func(ctx context.Context, c tool.Call) (tool.Result, error) {
			i, _ := dsh.InitiatorFrom(ctx)
			f.told(i.Session, "a body", func(ev dsh.Event) bool {
				d, ok := ev.Data.(dsh.ToolStarted)
				return ok && d.CallID == c.ID
			})
			return tool.Result{}, nil
		}})
	rt, err := runtime.New(runtime.Options{
		Store: f, Tools: append(set.Tools(), touch), Hooks: set.Hooks(), PassivateAfter: 200 * time.Millisecond,
		Providers: map[string]llm.Provider{"mock": brain(func(_ dsh.Initiator, req *dsh.Request) script.Response {
			wait := script.Response{script.Delay{For: time.Duration(f.d.roll(200)) * time.Millisecond}}
			id := func() dsh.CallID { return dsh.CallID(fmt.Sprint("call-", f.d.roll(1e12))) }
			switch f.d.roll(6) {
			case 0:
				return append(wait, script.Calls(call(id(), "touch", "{}"), call(id(), "touch", "{}"))...)
			case 1:
				return append(wait, script.Calls(call(id(), "subagent", fmt.Sprintf(
					`{"description":"part","prompt":"go","run_in_background":%t}`, f.d.roll(2) == 0)))...)
			}
			return append(wait, script.Text("yes", 1)...)
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// play lets some people work with an agent until the power fails.
func (f *fragile) play(t *testing.T) {
	rt := f.start(t)
	ctx := context.Background()
	a, err := rt.Create(ctx, runtime.Spec{ID: "a", Session: "s", Provider: "mock", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	var people sync.WaitGroup
	for n := range 4 {
		people.Go(func() {
			for i := range 8 {
				time.Sleep(time.Duration(f.d.roll(600)) * time.Millisecond)
				limited, cancel := context.WithTimeout(ctx, time.Hour)
				f.ask(limited, a, fmt.Sprintf("%d/%d", n, i))
				cancel()
			}
		})
	}
	time.Sleep(time.Duration(100+f.d.roll(5000)) * time.Millisecond)
	f.fail()
	people.Wait()
	if err := rt.Close(ctx); err != nil && !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	synctest.Wait()
}

// ask does something of which it is told whether it happened.
func (f *fragile) ask(ctx context.Context, a *runtime.Agent, name string) {
	m := dsh.UserText("hello")
	m.ID = dsh.MessageID(name)
	inserted := func(ev dsh.Event) bool {
		d, ok := ev.Data.(dsh.InboxSpliced)
		return ok && slices.ContainsFunc(d.Inserted, func(in *dsh.Message) bool { return in.ID == m.ID })
	}
	ended := func(turn int, kind dsh.EndKind) func(dsh.Event) bool {
		return func(ev dsh.Event) bool {
			d, ok := ev.Data.(dsh.TurnEnd)
			return ok && d.Turn == turn && d.Reason.Kind == kind
		}
	}
	sent := map[int]func() error{
		0: func() error { return a.Followup(ctx, m) },
		1: func() error { return a.Steer(ctx, m) },
		2: func() error { return a.Inject(ctx, m) },
		3: func() error {
			return a.Do(ctx, runtime.Cancel(dsh.Cause{Kind: dsh.CauseUser}, false), runtime.Followup(m))
		},
	}
	switch n := f.d.roll(8); n {
	case 0, 1, 2, 3:
		if sent[n]() == nil {
			f.told("s", "a message", inserted)
		}
	case 4:
		fact := dsh.Opaque{Name: "todo/write", Raw: json.RawMessage(`{}`)}
		if seq, err := a.Append(ctx, fact, dsh.SurfaceOp{}, nil); err == nil {
			f.told("s", "a fact", func(ev dsh.Event) bool { return ev.Seq == seq && ev.Type() == fact.Name })
		}
	case 5:
		c, err := a.Spawn(ctx, runtime.ChildSpec{Label: "go"})
		if err != nil {
			return
		}
		o, err := c.Run(ctx, "go")
		if err == nil && o.Kind == delegation.Completed {
			f.told(c.Session(), "a child's outcome", ended(1, dsh.EndCompleted))
		}
	default:
		p, err := a.Start(ctx, m)
		if err != nil {
			return
		}
		f.told("s", "a message", inserted)
		if o, err := p.Wait(ctx); err == nil && !o.Discarded {
			f.told("s", "an outcome", ended(o.Turn, o.Ending.Kind))
		}
	}
}
