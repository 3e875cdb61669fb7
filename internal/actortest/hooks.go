package actortest

import (
	"context"
	"iter"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// Functions as hooks, one type per extension point.
type (
	PreStep      func(ctx context.Context, s hook.Step, next hook.PreStepFunc) (hook.Decision, error)
	Prompt       func(ctx context.Context, a hook.Assembly, next hook.PromptFunc) (hook.Assembly, error)
	Request      func(ctx context.Context, p hook.Proposal, next hook.RequestFunc) (dsh.CallConfig, error)
	Stream       func(ctx context.Context, req *dsh.Request, next hook.StreamFunc) iter.Seq2[dsh.Chunk, error]
	RequestError func(ctx context.Context, f hook.FailedRequest, next hook.RequestErrorFunc) (bool, error)
	TurnStopping func(ctx context.Context, t hook.EndingTurn) error
	PreTool      func(ctx context.Context, c hook.Call, next hook.PreToolFunc) (hook.Verdict, error)
	Guard        func(ctx context.Context, c hook.Call) (bool, string, error)
	AroundTool   func(ctx context.Context, c hook.Call, next hook.AroundToolFunc) (hook.Outcome, error)
	PostTool     func(ctx context.Context, c hook.Call, o hook.Outcome, next hook.PostToolFunc) (hook.Review, error)
	ToolResult   func(ctx context.Context, c hook.Call, o hook.Outcome)
	Notified     func(a hook.Agent, n hook.Notice)
)

func (f PreStep) PreStep(ctx context.Context, s hook.Step, next hook.PreStepFunc) (hook.Decision, error) {
	return f(ctx, s, next)
}

func (f Prompt) Prompt(ctx context.Context, a hook.Assembly, next hook.PromptFunc) (hook.Assembly, error) {
	return f(ctx, a, next)
}

func (f Request) Request(ctx context.Context, p hook.Proposal, next hook.RequestFunc) (dsh.CallConfig, error) {
	return f(ctx, p, next)
}

func (f Stream) Stream(ctx context.Context, req *dsh.Request, next hook.StreamFunc) iter.Seq2[dsh.Chunk, error] {
	return f(ctx, req, next)
}

func (f RequestError) RequestError(ctx context.Context, r hook.FailedRequest, next hook.RequestErrorFunc) (bool, error) {
	return f(ctx, r, next)
}

func (f TurnStopping) TurnStopping(ctx context.Context, t hook.EndingTurn) error { return f(ctx, t) }

func (f PreTool) PreTool(ctx context.Context, c hook.Call, next hook.PreToolFunc) (hook.Verdict, error) {
	return f(ctx, c, next)
}

func (f Guard) Guard(ctx context.Context, c hook.Call) (denied bool, reason string, err error) {
	return f(ctx, c)
}

func (f AroundTool) AroundTool(ctx context.Context, c hook.Call, next hook.AroundToolFunc) (hook.Outcome, error) {
	return f(ctx, c, next)
}

func (f PostTool) PostTool(ctx context.Context, c hook.Call, o hook.Outcome, next hook.PostToolFunc) (hook.Review, error) {
	return f(ctx, c, o, next)
}

func (f ToolResult) ToolResult(ctx context.Context, c hook.Call, o hook.Outcome) { f(ctx, c, o) }

func (f Notified) Notified(a hook.Agent, n hook.Notice) { f(a, n) }
