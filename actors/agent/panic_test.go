package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/actortest"
	"github.com/dsh-actor/dsh-actor/internal/actortest/loglaw"
	"github.com/dsh-actor/dsh-actor/internal/loop"
	"github.com/dsh-actor/dsh-actor/tool"
)

var errBroke = errors.New("it broke")

func followup(text string) loop.Deliver { return agent.Followup(dsh.UserText(text)) }

func cancelUser(keep bool) loop.Cancel {
	return loop.Cancel{Cause: dsh.Cause{Kind: dsh.CauseUser}, KeepInbox: keep}
}

// boom is how user code ends badly: it panics, or it ends its goroutine.
type boom struct {
	name string
	do   func()
}

var booms = []boom{
	{"panic", func() { panic("boom") }},
	{"panic with an error", func() { panic(errBroke) }},
	{"goexit", runtime.Goexit},
}

func echo(run func()) tool.Tool {
	return tool.New(tool.Definition{Name: "echo", Mode: tool.Parallel, Execute: func(context.Context, tool.Call) (tool.Result, error) {
		run()
		return tool.Text("echoed"), nil
	}})
}

func nothing() {}

// Whatever user code does to its goroutine, the turn ends, the log obeys the
// laws, and the next turn is as good as any.
func TestUserCodeThatBreaks(t *testing.T) {
	call := script.Calls(dsh.ToolCall{ID: "a", Name: "echo", Arguments: "{}"})
	text := script.Text("done", 2)
	failing := script.Error(&dsh.Failure{Code: dsh.CodeServer, Message: "down"})
	type world struct {
		model script.Response // of the first request, followed by text
		hooks []any
		tools []tool.Tool
	}
	for _, c := range []struct {
		name string
		make func(breaks func()) world
		want string // the end of the first turn
	}{
		{"pre-step", func(breaks func()) world {
			return world{hooks: []any{actortest.PreStep(func(ctx context.Context, s hook.Step, next hook.PreStepFunc) (hook.Decision, error) {
				breaks()
				return next(ctx, s)
			})}}
		}, "turn/end error"},
		{"prompt", func(breaks func()) world {
			return world{hooks: []any{actortest.Prompt(func(ctx context.Context, a hook.Assembly, next hook.PromptFunc) (hook.Assembly, error) {
				breaks()
				return next(ctx, a)
			})}}
		}, "turn/end error"},
		{"request", func(breaks func()) world {
			return world{hooks: []any{actortest.Request(func(ctx context.Context, p hook.Proposal, next hook.RequestFunc) (dsh.CallConfig, error) {
				breaks()
				return next(ctx, p)
			})}}
		}, "turn/end error"},
		{"stream hook", func(breaks func()) world {
			return world{hooks: []any{actortest.Stream(func(ctx context.Context, req *dsh.Request, next hook.StreamFunc) iter.Seq2[dsh.Chunk, error] {
				return func(yield func(dsh.Chunk, error) bool) {
					breaks()
					next(ctx, req)(yield)
				}
			})}}
		}, "turn/end error"},
		{"provider", func(breaks func()) world {
			return world{model: script.Response{script.Emit{Chunk: dsh.TextDelta{Text: "half"}}, script.Do{Func: func(context.Context) { breaks() }}}}
		}, "turn/end error"},
		{"request-error", func(breaks func()) world {
			return world{model: failing, hooks: []any{actortest.RequestError(func(ctx context.Context, f hook.FailedRequest, next hook.RequestErrorFunc) (bool, error) {
				breaks()
				return next(ctx, f)
			})}}
		}, "turn/end error"},
		{"turn-stopping", func(breaks func()) world {
			return world{hooks: []any{actortest.TurnStopping(func(context.Context, hook.EndingTurn) error { breaks(); return nil })}}
		}, "turn/end error"},
		{"pre-execute", func(breaks func()) world {
			return world{model: call, tools: []tool.Tool{echo(nothing)}, hooks: []any{
				actortest.PreTool(func(ctx context.Context, c hook.Call, next hook.PreToolFunc) (hook.Verdict, error) {
					breaks()
					return next(ctx, c)
				}),
			}}
		}, "turn/end completed"},
		{"guard", func(breaks func()) world {
			return world{model: call, tools: []tool.Tool{echo(nothing)}, hooks: []any{
				actortest.Guard(func(context.Context, hook.Call) (bool, string, error) { breaks(); return false, "", nil }),
			}}
		}, "turn/end completed"},
		{"around-tool", func(breaks func()) world {
			return world{model: call, tools: []tool.Tool{echo(nothing)}, hooks: []any{
				actortest.AroundTool(func(ctx context.Context, c hook.Call, next hook.AroundToolFunc) (hook.Outcome, error) {
					breaks()
					return next(ctx, c)
				}),
			}}
		}, "turn/end completed"},
		{"tool", func(breaks func()) world {
			return world{model: call, tools: []tool.Tool{echo(breaks)}}
		}, "turn/end completed"},
		{"classifier", func(breaks func()) world {
			return world{model: call, tools: []tool.Tool{classified{echo(nothing), breaks}}}
		}, "turn/end completed"},
		{"post-execute", func(breaks func()) world {
			return world{model: call, tools: []tool.Tool{echo(nothing)}, hooks: []any{
				actortest.PostTool(func(ctx context.Context, c hook.Call, o hook.Outcome, next hook.PostToolFunc) (hook.Review, error) {
					breaks()
					return next(ctx, c, o)
				}),
			}}
		}, "turn/end completed"},
		{"tool-result", func(breaks func()) world {
			return world{model: call, tools: []tool.Tool{echo(nothing)}, hooks: []any{
				actortest.ToolResult(func(context.Context, hook.Call, hook.Outcome) { breaks() }),
			}}
		}, "turn/end completed"},
		{"notified", func(breaks func()) world {
			return world{hooks: []any{actortest.Notified(func(hook.Agent, hook.Notice) { breaks() })}}
		}, "turn/end completed"},
	} {
		for _, b := range booms {
			t.Run(c.name+"/"+b.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					broke := false // one piece of user code runs at a time here
					w := c.make(func() {
						if !broke {
							broke = true
							b.do()
						}
					})
					model := script.New(script.Options{})
					if w.model != nil {
						model.Add(w.model)
					}
					model.Add(text, text)
					h := actortest.NewAgent(t, actortest.Options{Model: model, Hooks: w.hooks, Tools: w.tools})
					h.Followup("hello")
					synctest.Wait()
					if !broke {
						t.Fatal("nothing broke")
					}
					lines := h.Lines()
					if last := lines[len(lines)-1]; last != c.want {
						t.Errorf("log ends %s, want %s: %q", last, c.want, lines)
					}
					h.Followup("again")
					synctest.Wait()
					if lines := h.Lines(); lines[len(lines)-1] != "turn/end completed" {
						t.Errorf("the next turn: %q", lines)
					}
					if err := loglaw.Check(h.Log()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// classified is a tool whose classifier breaks.
type classified struct {
	tool.Tool
	breaks func()
}

func (c classified) Classify(json.RawMessage) tool.Mode { c.breaks(); return tool.Parallel }

// A provider that panics when it is asked for a model fails the request.
func TestProviderModelPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := actortest.NewAgent(t, actortest.Options{Model: badModel{script.New(script.Options{})}})
		h.Followup("hello")
		synctest.Wait()
		if lines := h.Lines(); lines[len(lines)-1] != "turn/end error" {
			t.Errorf("log %q", lines)
		}
	})
}

type badModel struct{ llm.Provider }

func (badModel) Model(string) llm.Model { panic("no models today") }

// breaker panics in the actor itself, behind the nth event or notice.
type breaker struct {
	left int
	at   string
}

func (b *breaker) count(at string) {
	if b.left--; b.left == 0 {
		b.at = at
		panic("a bug")
	}
}

func (b *breaker) Logged(ev dsh.Event, _ func(loop.Input))   { b.count(ev.Type()) }
func (b *breaker) Noticed(n hook.Notice, _ func(loop.Input)) { b.count(n.Type()) }

// A panic in the actor itself, wherever it strikes, leaves nobody waiting and a
// log that can be repaired.
func TestActorPanicLeavesNobodyWaiting(t *testing.T) {
	struck := map[string]bool{}
	for n := 1; ; n++ {
		done := false
		synctest.Test(t, func(t *testing.T) {
			b := &breaker{left: n}
			h := actortest.NewAgent(t, actortest.Options{
				Observer: b, Tools: []tool.Tool{echo(nothing)},
				Model: script.New(script.Options{},
					script.Calls(dsh.ToolCall{ID: "a", Name: "echo", Arguments: "{}"}), script.Text("done", 2)),
			})
			outcome := make(chan agent.Outcome, 1)
			h.Try(outcome, followup("hello"))
			idle := h.WaitIdle()
			_, alive := h.State()
			maintained := h.Maintain(func(context.Context) error { return nil })
			synctest.Wait()
			if h.Failure() == nil { // n is beyond the turn's end
				done = true
				if !idle || !alive || maintained != nil || len(outcome) != 1 {
					t.Errorf("no panic: idle %v, alive %v, maintained %v, %d outcomes", idle, alive, maintained, len(outcome))
				}
				return
			}
			struck[b.at] = true
			select {
			case <-h.Gone():
			default:
				t.Errorf("a panic at %s, and the agent is still there", b.at)
			}
			if _, ok := h.Try(nil, followup("anybody?")); ok {
				t.Error("a dead agent answers")
			}
			if !strings.Contains(h.Err().Error(), "a bug") {
				t.Errorf("waiters are told %v", h.Err())
			}
			log := h.Log()
			if err := loglaw.Check(append(log[:len(log):len(log)], dsh.Closers(log)...)); err != nil {
				t.Errorf("a panic at %s: %v", b.at, err)
			}
		})
		if done || t.Failed() {
			break
		}
	}
	for _, at := range []string{"agent/created", "turn/start", "assistant/chunk", "tool/call", "tool/result", "turn/end"} {
		if !struck[at] {
			t.Errorf("no panic at %s: %v", at, struck)
		}
	}
}
