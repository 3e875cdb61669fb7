package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

// Foreground children end with their parent's turn, with what they had said.
func TestAbortReachesForeground(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got delegation.Outcome
		waiting := tool.New(tool.Definition{Name: "wait", Waits: true, Execute: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			p, _ := delegation.From(ctx)
			c, err := p.Delegate(ctx, delegation.Spec{Label: "child"})
			if err != nil {
				return tool.Result{}, err
			}
			got, err = c.RunMessage(ctx, dsh.UserText("go"))
			return tool.Result{}, errors.Join(err, got.Err())
		}})
		f := newFamily(t, runtime.Options{Tools: []tool.Tool{waiting}}, func(i dsh.Initiator, _ *dsh.Request) script.Response {
			if i.Depth == 0 {
				return script.Calls(call("c", "wait", "{}"))
			}
			return hang(dsh.TextDelta{Text: "thinking"})
		})
		if err := f.top.Followup(t.Context(), dsh.UserText("go")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := f.top.Cancel(t.Context(), dsh.Cause{Kind: dsh.CauseUser}, false); err != nil {
			t.Fatal(err)
		}
		if err := f.top.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got.Kind != delegation.Aborted || got.Cause.Kind != dsh.CauseParent || got.Text() != "thinking" {
			t.Errorf("outcome %+v", got)
		}
	})
}

// deafTool ignores its context for a while.
func deafTool(d time.Duration) tool.Tool {
	return tool.New(tool.Definition{Name: "deaf", Execute: func(context.Context, tool.Call) (tool.Result, error) {
		time.Sleep(d)
		return tool.Text("heard nothing"), nil
	}})
}

// A parent's turn closes when the background children have settled, or have
// had their time.
func TestAbortWaitsForBackground(t *testing.T) {
	for _, tc := range []struct {
		name string
		deaf time.Duration
		want time.Duration
		kind delegation.OutcomeKind
	}{
		{"in time", 10 * time.Second, 10 * time.Second, delegation.Aborted},
		{"deaf", time.Hour, 30 * time.Second, delegation.Limited},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFamily(t, runtime.Options{Tools: []tool.Tool{deafTool(tc.deaf)}}, func(i dsh.Initiator, req *dsh.Request) script.Response {
					if i.Depth == 0 || asked(req) {
						return hang()
					}
					return script.Calls(call("c", "deaf", "{}"))
				})
				c := f.spawn(t, runtime.ChildSpec{Label: "bg", Background: true})
				if err := errors.Join(c.Begin(t.Context(), dsh.UserText("go")), f.top.Followup(t.Context(), dsh.UserText("go"))); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				began := time.Now()
				if err := f.top.Cancel(t.Context(), dsh.Cause{Kind: dsh.CauseUser}, false); err != nil {
					t.Fatal(err)
				}
				if err := f.top.WaitIdle(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != tc.want {
					t.Errorf("quiet after %v, want %v", took, tc.want)
				}
				if o, err := c.Wait(t.Context()); err != nil || o.Kind != tc.kind {
					t.Errorf("outcome %+v, %v", o, err)
				}
				s, err := f.top.State(t.Context())
				if err != nil || s.Status != hook.Idle {
					t.Errorf("state %+v, %v", s, err)
				}
				if tc.kind == delegation.Aborted && len(s.Inbox.NextStep) != 1 {
					t.Error("the notice is not pending")
				}
				// The deaf one is disposed of with its parent, when it is done.
			})
		})
	}
}

func TestBackgroundSettles(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFamily(t, runtime.Options{}, func(i dsh.Initiator, req *dsh.Request) script.Response {
			return script.Text(fmt.Sprintf("%d heard %d", i.Depth, len(req.Messages)), 1)
		})
		c := f.spawn(t, runtime.ChildSpec{ID: "kid", Label: "job", Background: true, Persona: "Careful."})
		if err := c.Begin(t.Context(), dsh.UserText("go")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := f.top.Message(t.Context(), "kid", dsh.UserText("more"), delegation.Gear{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := f.ends(); len(got) != 2 {
			t.Fatalf("ends %q", got)
		}
		state, err := f.top.State(t.Context())
		if err != nil || state.LastTurn != 2 {
			t.Errorf("the parent had %d turns, %v", state.LastTurn, err)
		}
		kind, sender := delegation.Sender(state.Messages[0])
		if kind != delegation.SettledSource || sender != "kid" || !strings.Contains(dsh.TextOf(state.Messages[0].Content), "1 heard 2") {
			t.Errorf("notice %s from %s: %q", kind, sender, dsh.TextOf(state.Messages[0].Content))
		}
		for _, tc := range []struct{ id, code string }{{"nobody", delegation.CodeNotResumable}, {"top", delegation.CodeUnauthorized}} {
			err := f.top.Message(t.Context(), dsh.SessionID(tc.id), dsh.UserText("x"), delegation.Gear{})
			if !errors.Is(err, &delegation.Error{Code: tc.code}) {
				t.Errorf("message to %s: %v", tc.id, err)
			}
		}
	})
}

// A notice for a parent that is not live is in its inbox when it is resumed.
func TestNoticeIsNeverLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gates := make(chan struct{})
		f := newFamily(t, runtime.Options{Delegation: runtime.Delegation{OutliveDispose: true}}, func(i dsh.Initiator, _ *dsh.Request) script.Response {
			if i.Depth == 1 {
				<-gates
			}
			return script.Text("done", 1)
		})
		c := f.spawn(t, runtime.ChildSpec{Label: "bg", Background: true})
		if err := errors.Join(c.Begin(t.Context(), dsh.UserText("go")), f.top.Dispose(t.Context())); err != nil {
			t.Fatal(err)
		}
		close(gates)
		<-c.Done()
		top, err := f.Resume(t.Context(), "top", runtime.Spec{ID: "top", Provider: "mock", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		s, err := top.State(t.Context())
		if err != nil || len(s.Inbox.NextStep) != 1 {
			t.Fatalf("inbox %+v, %v", s.Inbox, err)
		}
		if kind, sender := delegation.Sender(s.Inbox.NextStep[0]); kind != delegation.SettledSource || sender != c.Session() {
			t.Errorf("notice %s from %s", kind, sender)
		}
	})
}

func TestInterruptKeepsTheInbox(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := 0
		f := newFamily(t, runtime.Options{}, func(i dsh.Initiator, _ *dsh.Request) script.Response {
			if n++; i.Depth == 1 && n == 1 {
				return hang(dsh.TextDelta{Text: "half"})
			}
			return script.Text("ok", 1)
		})
		c := f.spawn(t, runtime.ChildSpec{ID: "kid", Label: "job", Background: true})
		if err := errors.Join(c.Begin(t.Context(), dsh.UserText("one")), c.Followup(t.Context(), dsh.UserText("two"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := f.top.InterruptChild(t.Context(), "kid"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s, err := c.State(t.Context()); err != nil || s.Status != hook.Idle || len(s.Inbox.NextTurn) != 1 {
			t.Fatalf("state %+v, %v", s, err)
		}
		if err := c.Followup(t.Context(), dsh.UserText("three")); err != nil {
			t.Fatal(err)
		}
		if o, err := c.Wait(t.Context()); err != nil || !o.OK() || o.Turns != 3 {
			t.Errorf("outcome %+v, %v", o, err)
		}
	})
}

// exploding panics inside an agent at its nth event, as only a bug of ours can.
type exploding struct{ left int }

func (e *exploding) Logged(dsh.Event, func(loop.Input)) {
	if e.left--; e.left == 0 {
		panic("a bug")
	}
}

func (e *exploding) Noticed(hook.Notice, func(loop.Input)) {}

// A child whose own actor panics has an outcome all the same, and its log is
// closed.
func TestChildThatBreaks(t *testing.T) {
	for at := 1; at < 14; at++ {
		for _, background := range []bool{false, true} {
			bubble(t, func(t *testing.T) {
				opts := runtime.Options{Delegation: runtime.Delegation{
					Adopt: func(*runtime.Child, dsh.SessionHeader, []dsh.Event) agent.Observer { return &exploding{left: at} },
				}}
				f := newFamily(t, opts, answers(script.Text("ok", 1)))
				c, err := f.top.Spawn(t.Context(), runtime.ChildSpec{Label: "job", Background: background})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_ = c.Begin(ctx, dsh.UserText("go")) // it may have broken already
				synctest.Wait()
				select {
				case <-c.Done():
				default:
					t.Fatalf("panic at event %d, background %v: no outcome", at, background)
				}
				if err := f.top.Dispose(ctx); err != nil {
					t.Errorf("panic at event %d: %v", at, err)
				}
			})
		}
	}
}

// Listing children, sending them messages and hearing of them do not get in
// each other's way.
func TestListingBesideMessages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFamily(t, runtime.Options{}, answers(script.Text("ok", 1)))
		c := f.spawn(t, runtime.ChildSpec{ID: "kid", Label: "job", Background: true})
		if err := c.Begin(t.Context(), dsh.UserText("go")); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for n := range 50 {
			group.Go(func() {
				if n%2 == 0 {
					if err := f.top.Message(context.Background(), "kid", dsh.UserText("more"), delegation.Gear{}); err != nil {
						t.Error(err)
					}
					return
				}
				list, err := f.top.Children(context.Background(), true)
				if err != nil || len(list) != 1 || list[0].Problem != "" || list[0].Label != "job" {
					t.Errorf("%+v, %v", list, err)
				}
			})
		}
		group.Wait()
	})
}
