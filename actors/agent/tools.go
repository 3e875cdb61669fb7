package agent

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dsh-actor/dsh-actor/actors/toolpool"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
	"github.com/dsh-actor/dsh-actor/tool"
)

// call returns a tool call as hooks see it.
func (h *host) call(pos dsh.Pos, c dsh.ToolCall) hook.Call {
	return hook.Call{Agent: h.face, Pos: pos, ID: c.ID, Tool: c.Name, Args: tool.NormalizeArgs(c.Arguments)}
}

// classify finds a call's mode: exclusive for an unknown tool. Only a tool's
// own classifier is user code and gets a goroutine.
func (h *host) classify(c actor.Context, e loop.Classify) {
	entry, ok := h.cfg.Tools.Snapshot().Lookup(e.Call.Name)
	switch {
	case !ok:
		h.known = append(h.known, loop.Classified{Pos: e.Pos, Call: e.Index, Mode: tool.Exclusive})
	case entry.NeedsClassify():
		args := tool.NormalizeArgs(e.Call.Arguments)
		h.reply(c, loop.Classified{Pos: e.Pos, Call: e.Index}, func() loop.Input {
			return loop.Classified{Pos: e.Pos, Call: e.Index, Mode: entry.ModeOf(args)}
		})
	default:
		mode := entry.ModeOf(tool.NormalizeArgs(e.Call.Arguments))
		h.known = append(h.known, loop.Classified{Pos: e.Pos, Call: e.Index, Mode: mode})
	}
}

// judge asks the pre-execute hooks and guards; without any the call runs.
func (h *host) judge(c actor.Context, e loop.Judge) {
	ask := h.cfg.Hooks.PreTool
	if ask == nil {
		h.known = append(h.known, loop.Judged{Pos: e.Pos, Call: e.Index})
		return
	}
	ctx, call := h.turnContext(), h.call(e.Pos, e.Call)
	h.reply(c, loop.Judged{Pos: e.Pos, Call: e.Index, Err: hook.ErrExited}, func() loop.Input {
		verdict, err := ask(ctx, call)
		return loop.Judged{Pos: e.Pos, Call: e.Index, Verdict: verdict, Err: err}
	})
}

// run hands a call to the pool.
func (h *host) run(c actor.Context, e loop.Run) {
	entry, known := h.cfg.Tools.Snapshot().Lookup(e.Call.Name)
	c.Send(h.cfg.Pool, toolpool.Run{
		Initiator: &h.cfg.Initiator, Waits: known && entry.Waits(),
		Pos: e.Pos, Index: e.Index, Context: h.turnContext(), Call: h.call(e.Pos, e.Call),
		Execute: h.cfg.Hooks.Around(h.execute), ReplyTo: h.self,
	})
}

// execute is the end of the around-tool chain: the tool as it is registered
// now. It runs on the call's goroutine.
func (h *host) execute(ctx context.Context, call hook.Call) (hook.Outcome, error) {
	set := h.cfg.Tools.Snapshot()
	entry, ok := set.Lookup(call.Tool)
	if !ok {
		return hook.Outcome{}, tool.UnknownTool(set, call.Tool)
	}
	r, err := entry.Run(ctx, tool.Call{ID: call.ID, Name: call.Tool, Args: call.Args})
	return hook.Outcome{Content: r.Content, Conclude: r.Conclude, Context: r.Context, Meta: r.Meta}, err
}

// outcome returns what the loop is told of a body that ended. An error that
// only says that the context was cancelled is the abort itself.
func (h *host) outcome(r toolpool.Result) hook.Outcome {
	switch {
	case r.Err == nil:
		return r.Outcome
	case errors.Is(r.Err, toolpool.ErrNotStarted):
		return loop.NotDispatched()
	case h.aborted != nil && errors.Is(r.Err, context.Canceled):
		return loop.Aborted(r.Outcome.Context)
	}
	o := loop.Failed(r.Err)
	o.Context, o.Meta = r.Outcome.Context, r.Outcome.Meta
	return o
}

// review asks the post-execute hooks and shows observers the result; without
// any the outcome stands.
func (h *host) review(c actor.Context, e loop.Review) {
	if hooks := h.cfg.Hooks; hooks.ToolResult == nil && (hooks.PostTool == nil || e.Skip) {
		h.known = append(h.known, loop.Reviewed{Pos: e.Pos, Call: e.Index, Outcome: e.Outcome})
		return
	}
	h.askReview(c, e)
}

func (h *host) askReview(c actor.Context, e loop.Review) {
	ask, show := h.cfg.Hooks.PostTool, h.cfg.Hooks.ToolResult
	if e.Skip {
		ask = nil
	}
	ctx, call := h.turnContext(), h.call(e.Pos, e.Call)
	h.reply(c, loop.Reviewed{Pos: e.Pos, Call: e.Index, Outcome: loop.Failed(hook.ErrExited)}, func() loop.Input {
		outcome := e.Outcome
		if ask != nil {
			outcome = reviewed(ctx, ask, call, outcome)
		}
		if show != nil {
			show(ctx, call, outcome)
		}
		return loop.Reviewed{Pos: e.Pos, Call: e.Index, Outcome: outcome}
	})
}

func reviewed(ctx context.Context, ask hook.PostToolFunc, call hook.Call, o hook.Outcome) hook.Outcome {
	r, err := ask(ctx, call, o)
	switch {
	case err != nil:
		return loop.Failed(err)
	case r.Block:
		blocked := loop.Blocked(r.Feedback)
		blocked.Context = r.Context
		return blocked
	}
	if r.Content != nil {
		o.Content = r.Content
	}
	if len(r.Context) > 0 {
		o.Context = append(o.Context[:len(o.Context):len(o.Context)], r.Context...)
	}
	return o
}
