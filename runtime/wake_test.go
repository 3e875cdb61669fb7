package runtime_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// A wake runs what a resumed session has pending, without a word of its own; an
// agent knows where its own events begin.
func TestWakeRunsWhatIsPending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, runtime.Options{}, hang())
		a := w.agent(t, runtime.Spec{})
		for _, text := range []string{"running", "queued"} {
			if err := a.Followup(t.Context(), dsh.UserText(text)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		model := script.New(script.Options{Record: true}, script.Text("done", 1))
		next, err := runtime.New(runtime.Options{Providers: map[string]llm.Provider{"mock": model}, Store: w.store})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = next.Close(context.Background()) }()
		b, err := next.Resume(t.Context(), a.Session(), runtime.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		var stored dsh.Seq
		for ev, err := range b.Events(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Type() != dsh.TypeEndSeed {
				stored = ev.Seq + 1
			}
		}
		if a.Loaded() != 0 || b.Loaded() != stored {
			t.Errorf("loaded %d and %d, want 0 and %d", a.Loaded(), b.Loaded(), stored)
		}
		for range 2 { // the second finds nothing pending
			if err := b.Wake(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := b.WaitIdle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s, err := b.State(t.Context())
		if err != nil || s.LastTurn != 2 || !s.Inbox.Empty() {
			t.Fatalf("state %+v, %v", s, err)
		}
		last := model.Requests()[0].Messages
		if got := dsh.TextOf(last[len(last)-1].Content); got != "queued" {
			t.Errorf("the model was told %q", got)
		}

		f, err := next.Fork(t.Context(), a.Session(), runtime.End, runtime.Spec{})
		if err != nil || f.Loaded() != s.Next {
			t.Errorf("a fork of %d events loaded %d: %v", s.Next, f.Loaded(), err)
		}
	})
}

// A session that somebody else owns is forked where the store can look at it.
func TestForkOfASessionInUse(t *testing.T) {
	dir := t.TempDir()
	open := func(responses ...script.Response) *runtime.Runtime {
		store, err := jsonl.Open(dir, jsonl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rt, err := runtime.New(runtime.Options{
			Providers: map[string]llm.Provider{"mock": script.New(script.Options{}, responses...)}, Store: store,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = rt.Close(context.Background()) })
		return rt
	}
	owner := open(script.Text("one", 1))
	a, err := owner.Create(t.Context(), runtime.Spec{Provider: "mock", Model: "m", CWD: "/srv/demo"})
	if err != nil {
		t.Fatal(err)
	}
	if o, err := a.Run(t.Context(), "first"); err != nil || !o.OK() {
		t.Fatalf("%+v, %v", o, err)
	}
	if err := a.Inject(t.Context(), dsh.UserText("not taken along")); err != nil { // behind it all is in the file
		t.Fatal(err)
	}
	b, err := open(script.Text("two", 1)).Fork(t.Context(), a.Session(), runtime.End, runtime.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if o, err := b.Run(t.Context(), "second"); err != nil || o.Turn != 2 || o.Text() != "two" {
		t.Errorf("%+v, %v", o, err)
	}
	if s, err := b.State(t.Context()); err != nil || len(s.Messages) != 4 {
		t.Errorf("%d messages, %v", len(s.Messages), err)
	}
}
