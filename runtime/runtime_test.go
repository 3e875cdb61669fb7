package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a runtime with one scripted provider, closed with the test.
type world struct {
	*runtime.Runtime
	model *script.Provider
	store *memory.Store
}

func newWorld(t *testing.T, opts runtime.Options, responses ...script.Response) world {
	t.Helper()
	w := world{model: script.New(script.Options{}, responses...), store: memory.New()}
	opts.Providers = map[string]llm.Provider{"mock": w.model}
	opts.Store = w.store
	var err error
	if w.Runtime, err = runtime.New(opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return w
}

// agent creates an agent with a route.
func (w world) agent(t *testing.T, spec runtime.Spec) *runtime.Agent {
	t.Helper()
	spec.Provider, spec.Model = "mock", "m"
	a, err := w.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// bubble runs a test with fake time.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// types returns the event types of a log, chunks left out.
func types(t *testing.T, a *runtime.Agent) []string {
	t.Helper()
	var out []string
	for ev, err := range a.Events(context.Background(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch d := ev.Data.(type) {
		case dsh.AssistantChunk:
		case dsh.TurnEnd:
			out = append(out, fmt.Sprintf("turn/end %s", d.Reason.Kind))
		default:
			out = append(out, ev.Type())
		}
	}
	return out
}

func hang(chunks ...dsh.Chunk) script.Response {
	return append(script.Chunks(chunks...), script.Hang{})
}

func TestRunTellsHowTheTurnEnded(t *testing.T) {
	for _, tc := range []struct {
		name     string
		response script.Response
		want     dsh.EndKind
		text     string
		is       error
	}{
		{"completed", script.Text("hello", 1), dsh.EndCompleted, "hello", nil},
		{"cut off", script.MaxTokens("hel"), dsh.EndMaxTokens, "hel", nil},
		{"failed", script.Error(&dsh.Failure{Code: dsh.CodeQuota, Message: "no credit"}), dsh.EndError, "", dsh.ErrQuota},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, runtime.Options{}, tc.response)
				o, err := w.agent(t, runtime.Spec{}).Run(t.Context(), "hi")
				if err != nil {
					t.Fatal(err)
				}
				if o.Ending.Kind != tc.want || o.Text() != tc.text || o.Turn != 1 {
					t.Errorf("outcome %+v, text %q", o, o.Text())
				}
				if tc.is != nil && !errors.Is(o.Err(), tc.is) {
					t.Errorf("Err() = %v, want %v", o.Err(), tc.is)
				}
				if (o.Err() == nil) != o.OK() {
					t.Errorf("OK() = %v with Err() = %v", o.OK(), o.Err())
				}
			})
		})
	}
}

func TestRunWithAContextThatEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, runtime.Options{}, hang(dsh.TextDelta{Text: "partial"}), script.Text("again", 1))
		a := w.agent(t, runtime.Spec{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Run(ctx, "hi"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Run = %v", err)
		}
		if err := a.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := types(t, a); got[len(got)-1] != "turn/end aborted" {
			t.Errorf("log %q", got)
		}
		if o, err := a.Run(t.Context(), "again"); err != nil || o.Text() != "again" {
			t.Errorf("Run = %+v, %v", o, err)
		}
	})
}

func TestRunWithdrawsAPromptThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, runtime.Options{}, append(script.Response{script.Wait{Gate: "g"}}, script.Text("first", 1)...))
		a := w.agent(t, runtime.Spec{})
		first := make(chan runtime.Outcome, 1)
		go func() { o, _ := a.Run(context.Background(), "first"); first <- o }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Run(ctx, "second"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Run = %v", err)
		}
		w.model.Gates().Open("g")
		if o := <-first; o.Text() != "first" {
			t.Errorf("the turn that ran was disturbed: %+v", o)
		}
		s, err := a.State(t.Context())
		if err != nil || !s.Inbox.Empty() || s.LastTurn != 1 {
			t.Errorf("state %+v, %v", s, err)
		}
	})
}

func TestCancelAndRedirectInOneGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, runtime.Options{}, hang(dsh.TextDelta{Text: "wrong way"}), script.Text("right way", 1))
		a := w.agent(t, runtime.Spec{})
		if err := a.Followup(t.Context(), dsh.UserText("go")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		err := a.Do(t.Context(),
			runtime.Cancel(dsh.Cause{Kind: dsh.CauseUser}, runtime.KeepInbox),
			runtime.Followup(dsh.UserText("do this instead")))
		if err != nil {
			t.Fatal(err)
		}
		if err := a.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s, _ := a.State(t.Context())
		if last := s.Messages[len(s.Messages)-1]; dsh.TextOf(last.Content) != "right way" {
			t.Errorf("the agent ends on %+v", last)
		}
	})
}

func TestRefusalsCanBeToldApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, runtime.Options{}, append(script.Response{script.Wait{Gate: "g"}}, script.Text("x", 1)...))
		a := w.agent(t, runtime.Spec{ID: "a"})
		m := &dsh.Message{ID: "m", Role: dsh.RoleUser, Source: dsh.UserSource{}}
		ctx := t.Context()
		check := func(what string, err, want error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		check("inject", a.Inject(ctx, m), nil)
		check("inject twice", a.Inject(ctx, m), runtime.ErrDuplicate)
		check("remove", a.Do(ctx, runtime.Remove("m")), nil)
		check("remove twice", a.Do(ctx, runtime.Remove("m")), runtime.ErrNotPending)
		_, err := w.Create(ctx, runtime.Spec{ID: "a"})
		check("create twice", err, runtime.ErrExists)
		_, err = w.Resume(ctx, "nowhere", runtime.Spec{})
		check("resume what is not there", err, runtime.ErrNotFound)
		_, err = w.Resume(ctx, a.Session(), runtime.Spec{})
		check("resume what is open", err, runtime.ErrInUse)
		_, err = a.Append(ctx, dsh.UserMessage{Message: m}, dsh.SurfaceOp{}, nil)
		check("append without a place", err, dsh.ErrSurface)
		_, err = a.Append(ctx, dsh.TurnStart{Turn: 9}, dsh.SurfaceOp{}, nil)
		check("append a border", err, runtime.ErrNotRecordable)
		check("followup", a.Followup(ctx, dsh.UserText("go")), nil)
		check("maintain", a.Maintain(ctx, func(context.Context) error { return nil }), runtime.ErrBusy)
		w.model.Gates().Open("g")
		check("dispose", a.Dispose(ctx), nil)
		check("followup after dispose", a.Followup(ctx, dsh.UserText("late")), runtime.ErrDisposed)
		check("close", w.Close(ctx), nil)
		check("close twice", w.Close(ctx), nil)
		_, err = w.Create(ctx, runtime.Spec{})
		check("create after close", err, runtime.ErrClosed)
	})
}

func TestTheIDIsFreeAfterDispose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, runtime.Options{})
		for range 3 {
			if err := w.agent(t, runtime.Spec{ID: "same"}).Dispose(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.Agents()) != 0 {
			t.Errorf("%d agents are left", len(w.Agents()))
		}
	})
}

func TestMaintenanceSeesItsCancel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newWorld(t, runtime.Options{}).agent(t, runtime.Spec{})
		result := make(chan error, 1)
		go func() {
			result <- a.Maintain(context.Background(), func(ctx context.Context) error {
				if i, ok := dsh.InitiatorFrom(ctx); !ok || i.Agent != a.ID() {
					return fmt.Errorf("initiator %+v", i)
				}
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}()
		synctest.Wait()
		if err := a.Cancel(t.Context(), dsh.Cause{Kind: dsh.CauseUser}, false); err != nil {
			t.Fatal(err)
		}
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("Maintain = %v", err)
		}
	})
}

func TestResumeGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, runtime.Options{}, script.Text("one", 1), script.Text("two", 1))
		a := w.agent(t, runtime.Spec{ID: "a"})
		if _, err := a.Run(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		if err := a.Dispose(t.Context()); err != nil {
			t.Fatal(err)
		}
		b, err := w.Resume(t.Context(), a.Session(), runtime.Spec{ID: "a", Provider: "mock", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		o, err := b.Run(t.Context(), "second")
		if err != nil || o.Turn != 2 || o.Text() != "two" {
			t.Errorf("Run = %+v, %v", o, err)
		}
		s, _ := b.State(t.Context())
		if len(s.Messages) != 4 {
			t.Errorf("%d messages after the resume, want 4", len(s.Messages))
		}
	})
}

func TestForkLeavesTheParentAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, runtime.Options{}, script.Text("one", 1), script.Text("fork", 1), script.Text("parent", 1))
		a := w.agent(t, runtime.Spec{ID: "a"})
		if _, err := a.Run(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		f, err := w.Fork(t.Context(), a.Session(), runtime.End, runtime.Spec{ID: "f", Provider: "mock", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		if o, err := f.Run(t.Context(), "in the fork"); err != nil || o.Text() != "fork" || o.Turn != 2 {
			t.Errorf("fork: %+v, %v", o, err)
		}
		if o, err := a.Run(t.Context(), "in the parent"); err != nil || o.Text() != "parent" || o.Turn != 2 {
			t.Errorf("parent: %+v, %v", o, err)
		}
		var refused *dsh.ForkError
		if _, err := w.Fork(t.Context(), a.Session(), 3, runtime.Spec{}); !errors.As(err, &refused) {
			t.Errorf("a fork inside a turn: %v", err)
		}
	})
}

func TestTheInitiatorIsKnownEverywhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[string]dsh.Initiator{}
		note := func(ctx context.Context, where string) {
			mu.Lock()
			defer mu.Unlock()
			seen[where], _ = dsh.InitiatorFrom(ctx)
		}
		call := script.Calls(dsh.ToolCall{ID: "c", Name: "look", Arguments: "{}"})
		call = append(script.Response{script.Do{Func: func(ctx context.Context) { note(ctx, "provider") }}}, call...)
		w := newWorld(t, runtime.Options{Hooks: []any{preStep(func(ctx context.Context) { note(ctx, "hook") })}},
			call, script.Text("done", 1))
		a := w.agent(t, runtime.Spec{Tools: []tool.Tool{
			tool.Func("look", "Looks.", func(ctx context.Context, _ struct{}) (string, error) {
				note(ctx, "tool")
				return "", nil
			}),
		}})
		if _, err := a.Run(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		want := dsh.Initiator{Agent: a.ID(), Session: a.Session(), Root: a.ID()}
		for _, where := range []string{"hook", "provider", "tool"} {
			if seen[where] != want {
				t.Errorf("%s: %+v, want %+v", where, seen[where], want)
			}
		}
	})
}

type preStep func(ctx context.Context)

func (f preStep) PreStep(ctx context.Context, s hook.Step, next hook.PreStepFunc) (hook.Decision, error) {
	f(ctx)
	return next(ctx, s)
}

// Closing a runtime keeps what was queued for the next start.
func TestCloseKeepsPendingInput(t *testing.T) {
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
		next, err := runtime.New(runtime.Options{
			Providers: map[string]llm.Provider{"mock": script.New(script.Options{}, script.Text("x", 1))}, Store: w.store,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = next.Close(context.Background()) }()
		b, err := next.Resume(t.Context(), a.Session(), runtime.Spec{Provider: "mock", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.State(t.Context())
		if err != nil || len(s.Inbox.NextTurn) != 1 || s.Status != hook.Idle {
			t.Errorf("state after the restart: %+v, %v", s, err)
		}
	})
}

// What would part a tool call from its result is refused; the tool can inject
// it instead.
func TestNothingPartsCallsFromResults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, runtime.Options{},
			script.Calls(dsh.ToolCall{ID: "c", Name: "note", Arguments: "{}"}), script.Text("done", 1))
		var refused error
		a := w.agent(t, runtime.Spec{Tools: []tool.Tool{
			tool.Func("note", "Notes.", func(ctx context.Context, _ struct{}) (string, error) {
				self, _ := hook.AgentFrom(ctx)
				m := dsh.PluginText("test", "by the way")
				m.ID = "x"
				_, refused = self.Append(ctx, dsh.UserMessage{Message: m}, dsh.Append, nil)
				return "", self.Inject(ctx, m)
			}),
		}})
		if o, err := a.Run(t.Context(), "go"); err != nil || !o.OK() {
			t.Fatalf("Run = %+v, %v", o, err)
		}
		if !errors.Is(refused, runtime.ErrBusy) {
			t.Errorf("Append = %v, want %v", refused, runtime.ErrBusy)
		}
		s, _ := a.State(t.Context())
		if err := dsh.CheckRequest(s.Messages); err != nil || len(s.Messages) != 5 {
			t.Errorf("%d messages, %v", len(s.Messages), err)
		}
	})
}
