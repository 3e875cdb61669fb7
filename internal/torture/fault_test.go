package torture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

// faulty is a store whose appends and syncs fail from number from on, count of
// them. It knows what is durable.
type faulty struct {
	session.Store
	from, count int
	err         error

	mu            sync.Mutex
	calls, failed int
	appended      []dsh.Event
	durable       int // of them
}

func (f *faulty) Volatile() bool { return false }

func (f *faulty) Create(ctx context.Context, h dsh.SessionHeader) (session.Log, error) {
	log, err := f.Store.Create(ctx, h)
	if err != nil {
		return nil, err
	}
	return &faultyLog{Log: log, store: f}, nil
}

func (f *faulty) fault() error {
	f.calls++
	if n := f.calls - 1; n >= f.from && n < f.from+f.count {
		f.failed++
		return f.err
	}
	return nil
}

// broken reports whether the store still fails.
func (f *faulty) broken() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed > 0 && f.failed < f.count
}

func (f *faulty) seen() (calls, failed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls, f.failed
}

// onDisk returns what a crash now would leave.
func (f *faulty) onDisk() []dsh.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(dsh.Expand(f.appended[:f.durable]))
}

type faultyLog struct {
	session.Log
	store *faulty
}

func (l *faultyLog) Append(ctx context.Context, fence session.Fence, events []dsh.Event) error {
	f := l.store
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(events) == 0 {
		return nil // touches no disk
	}
	if err := f.fault(); err != nil {
		return err
	}
	f.appended = append(f.appended, events...)
	return l.Log.Append(ctx, fence, events)
}

func (l *faultyLog) Sync(ctx context.Context) error {
	f := l.store
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fault(); err != nil {
		return err
	}
	if err := l.Log.Sync(ctx); err != nil {
		return err
	}
	f.durable = len(f.appended)
	return nil
}

// Whatever call of the store fails, once or for a while: a turn that meets the
// failure ends in an error that names it; no model is asked and no tool body
// runs on what is not durable; and the session goes on when the disk does.
func TestFaults(t *testing.T) {
	files := func(t *testing.T) session.Store {
		s, err := jsonl.Open(t.TempDir(), jsonl.Options{Encoding: jsonl.Raw, SyncEach: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		name  string
		count int
		err   error
		store func(*testing.T) session.Store
	}{
		{"once", 1, syscall.EIO, func(*testing.T) session.Store { return memory.New() }},
		{"full", 3, syscall.ENOSPC, func(*testing.T) session.Store { return memory.New() }},
		{"long", 20, syscall.ENOSPC, func(*testing.T) session.Store { return memory.New() }},
		{"files once", 1, syscall.ENOSPC, files},
		{"files", 4, syscall.EIO, files},
	} {
		t.Run(c.name, func(t *testing.T) {
			ends := map[dsh.EndKind]int{}
			from := 0
			for met := true; met; from++ {
				f := &faulty{Store: c.store(t), from: from, count: c.count, err: c.err}
				synctest.Test(t, func(t *testing.T) { broken(t, f, ends) })
				if t.Failed() {
					t.Fatalf("failing from call %d", from)
				}
				_, failed := f.seen()
				met = failed > 0
			}
			t.Logf("failing from each of %d calls: turns ended %v", from-1, ends)
			if ends[dsh.EndError] == 0 || ends[dsh.EndCompleted] == 0 {
				t.Error("no turn met a failure, or each did")
			}
		})
	}
}

// broken runs turns on a store until they have met its failures and it is well
// again.
func broken(t *testing.T, f *faulty, ends map[dsh.EndKind]int) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var mu sync.Mutex
	bodies, requests := map[dsh.CallID]int{}, 0
	touch := func(name string, mode tool.Mode) tool.Tool {
		return tool.New(tool.Definition{Name: name, Description: "Touches.", Mode: mode,
			Execute: func(_ context.Context, call tool.Call) (tool.Result, error) {
				mu.Lock()
				defer mu.Unlock()
				bodies[call.ID]++
				if !slices.ContainsFunc(f.onDisk(), func(ev dsh.Event) bool {
					d, ok := ev.Data.(dsh.ToolStarted)
					return ok && d.CallID == call.ID
				}) {
					t.Errorf("the body of %s runs and its tool/call is not durable", call.ID)
				}
				return tool.Result{}, nil
			}})
	}
	model := script.Func(script.Options{}, func(req *dsh.Request) script.Response {
		mu.Lock()
		defer mu.Unlock()
		requests++
		var history dsh.History
		var header dsh.HeaderFold
		for _, ev := range f.onDisk() {
			header.Apply(&ev)
			if err := history.Apply(&ev); err != nil {
				t.Error(err)
			}
		}
		if digest(header.Header, history.Messages()) != digest(req.Header, req.Messages) {
			t.Errorf("request %v is not what the durable log yields", req.Pos)
		}
		if err := dsh.CheckRequest(req.Messages); err != nil {
			t.Error(err)
		}
		if req.Pos.Step > 2 {
			return script.Text("Done.", 3)
		}
		call := func(i int, name string) dsh.ToolCall {
			return dsh.ToolCall{ID: dsh.CallID(fmt.Sprintf("%d/%d", requests, i)), Name: name, Arguments: "{}"}
		}
		a := script.Answer{Text: "Let me see.", Calls: []dsh.ToolCall{
			call(0, "touch"), call(1, "touches"), call(2, "touches"), call(3, "touch"),
		}}
		// Long enough for what is written behind.
		return append(script.Response{script.Delay{For: 2 * session.WriteDelay}}, a.Response()...)
	})
	rt, err := runtime.New(runtime.Options{
		Store: f, Providers: map[string]llm.Provider{"script": model},
		Tools: []tool.Tool{touch("touch", tool.Exclusive), touch("touches", tool.Parallel)},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := rt.Create(ctx, runtime.Spec{ID: "a", Session: "a", Provider: "script", Model: "m", CWD: "/torture"})
	if err != nil {
		t.Fatal(err)
	}
	turn := func() {
		t.Helper()
		_, before := f.seen()
		o, err := a.Run(ctx, "Touch things.")
		if err != nil && !errors.Is(err, runtime.ErrNotDurable) {
			t.Fatal(err)
		}
		ends[o.Ending.Kind]++
		_, after := f.seen()
		switch {
		case o.OK():
		case o.Ending.Kind != dsh.EndError || after == before:
			t.Errorf("a turn that met %d failures ended %+v", after-before, o.Ending)
		case o.Ending.Failure == nil || !errors.Is(o.Ending.Failure, f.err):
			t.Errorf("the turn's failure is %v", o.Ending.Failure)
		}
	}
	turn()
	turn()
	for range f.count {
		if f.broken() {
			turn()
		}
	}
	if _, before := f.seen(); before == f.count {
		if o, err := a.Run(ctx, "And again."); err != nil || !o.OK() {
			t.Errorf("on a disk that is well: %+v, %v", o.Ending, err)
		}
	}
	state, err := a.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	closed := rt.Close(ctx)
	if closed != nil && !errors.Is(closed, f.err) {
		t.Error(closed)
	}
	events, err := readLog(ctx, f.Store, "a")
	if err != nil {
		t.Fatal(err)
	}
	if closed == nil && (len(events) != int(state.Next) || len(dsh.Closers(events)) > 0) {
		t.Errorf("%d events of %d are stored, %d closers are missing", len(events), state.Next, len(dsh.Closers(events)))
	}
	var ran []string
	for id, n := range bodies {
		ran = append(ran, slices.Repeat([]string{string(id)}, n)...)
	}
	if err := errors.Join(compareRequests(append(events, dsh.Closers(events)...), nil), compareBodies(events, ran)); err != nil {
		t.Error(err)
	}
}
