package agent

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
)

// reply runs ask on a goroutine of its own and sends its answer back. ask
// calls user code only through the chains of hook, which turn a panic into an
// error; if user code ends the goroutine the answer is exited. So an answer
// always comes. The goroutine starts when the message at hand is done: no
// command of a batch finds it running already.
func (h *host) reply(c actor.Context, exited loop.Input, ask func() loop.Input) {
	root, self := c.ActorSystem().Root, h.self
	answering := func() {
		in := exited
		defer func() { root.Send(self, answer{input: in}) }()
		in = ask()
	}
	h.later(func() { go answering() })
}

// admit assembles the prompt and asks the pre-step hooks, unless the turn was
// cancelled by the message that opened it. Without hooks the answer is known
// at once and no goroutine starts.
func (h *host) admit(c actor.Context, e loop.Admit) {
	hooks := h.cfg.Hooks
	if hooks.Prompt == nil && hooks.PreStep == nil {
		h.known = append(h.known, loop.Admitted{Pos: e.Pos, Messages: e.Messages, Prompt: h.plainPrompt(e.Config)})
		return
	}
	ctx, agent := h.turnContext(), h.face
	assembly := h.assembly(e)
	h.reply(c, loop.HookFailed{Pos: e.Pos, Err: hook.ErrExited}, func() loop.Input {
		if ctx.Err() != nil {
			return loop.HookFailed{Pos: e.Pos, Err: context.Cause(ctx)}
		}
		prompt, err := assemble(ctx, hooks.Prompt, assembly)
		if err != nil {
			return loop.HookFailed{Pos: e.Pos, Err: err}
		}
		d := hook.Decision{Messages: e.Messages}
		if hooks.PreStep != nil {
			d, err = hooks.PreStep(ctx, hook.Step{Agent: agent, Pos: e.Pos, Messages: e.Messages})
		}
		switch {
		case err != nil:
			return loop.HookFailed{Pos: e.Pos, Err: err}
		case d.Reject:
			return loop.Refused{Pos: e.Pos}
		}
		return loop.Admitted{Pos: e.Pos, Messages: d.Messages, Prompt: prompt}
	})
}

// prepare asks the request hooks and then the adapter.
func (h *host) prepare(c actor.Context, e loop.Prepare) {
	ask := h.cfg.Hooks.Request
	if ask == nil {
		h.known = append(h.known, h.resolve(e.Pos, e.Config))
		return
	}
	ctx, agent := h.turnContext(), h.face
	h.reply(c, loop.HookFailed{Pos: e.Pos, Err: hook.ErrExited}, func() loop.Input {
		config, err := ask(ctx, hook.Proposal{Agent: agent, Pos: e.Pos, Config: *e.Config})
		if err != nil {
			return loop.HookFailed{Pos: e.Pos, Err: err}
		}
		return h.resolve(e.Pos, &config)
	})
}

// resolve lets the adapter fill in what it would send anyway. It may run on
// any goroutine.
func (h *host) resolve(pos dsh.Pos, config *dsh.CallConfig) loop.Input {
	provider, ok := h.cfg.Providers(config.Provider)
	if !ok {
		return loop.Prepared{Pos: pos, Config: config}
	}
	model, err := describe(provider, config.Model)
	if err != nil {
		return loop.HookFailed{Pos: pos, Err: err}
	}
	resolved, filled := model.Resolve(*config)
	if filled != (dsh.AdapterDefaults{}) {
		config = new(dsh.CallConfig)
		*config = resolved
	}
	return loop.Prepared{Pos: pos, Config: config, Defaults: filled, ContextWindow: model.ContextWindow}
}

func describe(p llm.Provider, model string) (m llm.Model, err error) {
	defer hook.Catch("provider", &err)
	return p.Model(model), nil
}

// recover asks the request-error hooks; without any the failure stands.
func (h *host) recover(c actor.Context, e loop.Recover) {
	ask := h.cfg.Hooks.RequestError
	if ask == nil {
		h.known = append(h.known, loop.Recovered{Pos: e.Pos})
		return
	}
	ctx, agent := h.turnContext(), h.face
	h.reply(c, loop.HookFailed{Pos: e.Pos, Err: hook.ErrExited}, func() loop.Input {
		retry, err := ask(ctx, hook.FailedRequest{
			Agent: agent, Pos: e.Pos, Provider: e.Provider, Failure: e.Failure,
			Content: e.Content, Earlier: e.Earlier,
		})
		if err != nil {
			return loop.HookFailed{Pos: e.Pos, Err: err}
		}
		return loop.Recovered{Pos: e.Pos, Retry: retry}
	})
}

// askStopping asks the turn-stopping hooks; without any the turn ends.
func (h *host) askStopping(c actor.Context, e loop.AskStopping) {
	ask := h.cfg.Hooks.TurnStopping
	if ask == nil {
		h.known = append(h.known, loop.Settled(e))
		return
	}
	ctx, agent := h.turnContext(), h.face
	h.reply(c, loop.HookFailed{Pos: e.Pos, Err: hook.ErrExited}, func() loop.Input {
		if err := ask(ctx, hook.EndingTurn{Agent: agent, Pos: e.Pos}); err != nil {
			return loop.HookFailed{Pos: e.Pos, Err: err}
		}
		return loop.Settled(e)
	})
}
