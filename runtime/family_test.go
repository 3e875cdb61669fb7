package runtime_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/actortest/loglaw"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// A brain answers for every agent of a runtime; it is told whose request it is.
type brain func(i dsh.Initiator, req *dsh.Request) script.Response

func (b brain) Model(string) llm.Model { return llm.Model{} }

func (b brain) Stream(ctx context.Context, req *dsh.Request) iter.Seq2[dsh.Chunk, error] {
	i, _ := dsh.InitiatorFrom(ctx)
	return script.New(script.Options{}, b(i, req)).Stream(ctx, req)
}

// family is a runtime with a brain, whose children's ends are recorded.
type family struct {
	*runtime.Runtime
	store *memory.Store
	top   *runtime.Agent

	mu      sync.Mutex
	started []delegation.Started
	ended   []delegation.Ended

	unclosed []dsh.SessionID // logs that nobody is to close
}

func (f *family) ChildStarted(s delegation.Started) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = append(f.started, s)
}

func (f *family) ChildEnded(e delegation.Ended) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, e)
}

func newFamily(t *testing.T, opts runtime.Options, b brain) *family {
	t.Helper()
	f := &family{store: memory.New()}
	opts.Providers = map[string]llm.Provider{"mock": b}
	opts.Store = f.store
	opts.Hooks = append(opts.Hooks, f)
	var err error
	if f.Runtime, err = runtime.New(opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.close(t) })
	if f.top, err = f.Create(t.Context(), runtime.Spec{ID: "top", Session: "top", Provider: "mock", Model: "m"}); err != nil {
		t.Fatal(err)
	}
	return f
}

// close closes the runtime and holds what is left to the laws: every child that
// started ended once, and every log is balanced.
func (f *family) close(t *testing.T) {
	t.Helper()
	if err := f.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ends := map[string]int{}
	for _, e := range f.ended {
		ends[e.Run]++
	}
	for _, s := range f.started {
		if ends[s.Run] != 1 {
			t.Errorf("child %s ended %d times", s.Initiator.Agent, ends[s.Run])
		}
	}
	if len(ends) != len(f.started) {
		t.Errorf("%d children started, %d ended", len(f.started), len(ends))
	}
	for h := range f.store.List(context.Background()) {
		if slices.Contains(f.unclosed, h.ID) {
			continue
		}
		log, err := f.store.Open(context.Background(), h.ID)
		if err != nil {
			t.Errorf("open %s: %v", h.ID, err)
			continue
		}
		events, err := log.Read(context.Background(), 0, 0)
		if err != nil {
			t.Error(err)
		}
		laws := loglaw.Laws{Inherited: h.SeedLength}
		if err := laws.AddAll(events); err != nil {
			t.Errorf("log of %s: %v", h.ID, err)
		} else if err := laws.Closed(); err != nil {
			t.Errorf("log of %s: %v", h.ID, err)
		}
		_ = log.Close()
	}
}

// ends returns the outcomes so far, in the order in which they were told.
func (f *family) ends() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, e := range f.ended {
		out = append(out, e.Label+" "+e.Outcome.String())
	}
	return out
}

// spawn makes a child of the top agent.
func (f *family) spawn(t *testing.T, spec runtime.ChildSpec) *runtime.Child {
	t.Helper()
	c, err := f.top.Spawn(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answers is a brain that gives the same answer to everyone.
func answers(r script.Response) brain {
	return func(dsh.Initiator, *dsh.Request) script.Response { return r }
}

// asked reports whether the request holds a tool's result already.
func asked(req *dsh.Request) bool {
	last := req.Messages[len(req.Messages)-1]
	return slices.ContainsFunc(last.Content, func(b dsh.Block) bool { _, ok := b.(dsh.ToolResult); return ok })
}

func call(id dsh.CallID, name, args string) dsh.ToolCall {
	return dsh.ToolCall{ID: id, Name: name, Arguments: args}
}
