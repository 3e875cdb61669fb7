package agent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/actortest"
	"github.com/dsh-actor/dsh-actor/tool"
)

// deafFor is a hook that ignores its context.
func deafFor(d time.Duration) hook.PreStep {
	return actortest.PreStep(func(ctx context.Context, s hook.Step, next hook.PreStepFunc) (hook.Decision, error) {
		time.Sleep(d)
		return next(ctx, s)
	})
}

// A hook that ignores its context keeps the turn open, not the mailbox.
func TestTurnWaitsForDeafHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := actortest.NewAgent(t, actortest.Options{Hooks: []any{deafFor(time.Minute)}})
		h.Followup("hello")
		synctest.Wait() // the hook sleeps
		h.Cancel()
		synctest.Wait() // the cancel was read
		h.WantLog("turn/start")
		if s, _ := h.State(); s.Status != hook.Running {
			t.Errorf("status %s while the hook runs", s.Status)
		}
		time.Sleep(time.Minute) // fake: returns at once
		synctest.Wait()
		h.WantLog("turn/start", "turn/end aborted")
	})
}

// The same for a tool body and for a provider.
func TestTurnWaitsForDeafToolAndProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := tool.New(tool.Definition{Name: "deaf", Execute: func(context.Context, tool.Call) (tool.Result, error) {
			time.Sleep(time.Minute)
			return tool.Text("done"), nil
		}})
		model := script.New(script.Options{},
			script.Calls(dsh.ToolCall{ID: "a", Name: "deaf", Arguments: "{}"}),
			append(script.Response{script.Wait{Gate: "g"}}, script.Text("late", 1)...),
		)
		h := actortest.NewAgent(t, actortest.Options{Model: model, Tools: []tool.Tool{deaf}})
		h.Followup("run it")
		synctest.Wait()
		h.Cancel()
		synctest.Wait()
		if lines := h.Lines(); lines[len(lines)-1] != "tool/call" {
			t.Errorf("the turn did not wait for the body: %q", lines)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if lines := h.Lines(); lines[len(lines)-1] != "turn/end aborted" {
			t.Errorf("log %q", lines)
		}

		h.Followup("ask again")
		synctest.Wait()
		h.Cancel()
		synctest.Wait()
		if s, _ := h.State(); s.Status != hook.Running {
			t.Errorf("status %s while the provider runs", s.Status)
		}
		model.Gates().Open("g")
		synctest.Wait()
		if lines := h.Lines(); lines[len(lines)-1] != "turn/end aborted" {
			t.Errorf("log %q", lines)
		}
	})
}

// What a cancel finds behind it in the mailbox is one burst: the prompt that
// came with it is claimed and lost, no hook is asked.
func TestBatchRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		h := actortest.NewAgent(t, actortest.Options{Hooks: []any{
			actortest.PreStep(func(ctx context.Context, s hook.Step, next hook.PreStepFunc) (hook.Decision, error) {
				asked++
				return next(ctx, s)
			}),
		}})
		h.Do(followup("hello"), cancelUser(true))
		synctest.Wait()
		h.WantLog("turn/start", "turn/end aborted")
		if asked > 0 {
			t.Errorf("the hook was asked %d times about a turn that was cancelled before", asked)
		}
	})
}

// A failing store stops the action that the barrier stands before, and the
// agent is ready for the next input.
func TestFailedBarrierEndsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken bool // written between turns, read by the writer behind them
		disk := &actortest.Disk{Fail: func() error {
			if broken {
				return errBroke
			}
			return nil
		}}
		model := script.New(script.Options{}, script.Text("hi", 1))
		h := actortest.NewAgent(t, actortest.Options{Model: model, Store: disk})
		broken = true
		h.Followup("hello")
		synctest.Wait()
		if model.Left() != 1 {
			t.Error("a request was made although the log is not durable")
		}
		h.WantLog("turn/start", "turn/end error")
		broken = false
		h.Followup("again")
		synctest.Wait()
		if lines := h.Lines(); lines[len(lines)-1] != "turn/end completed" || model.Left() != 0 {
			t.Errorf("log %q", lines)
		}
	})
}
