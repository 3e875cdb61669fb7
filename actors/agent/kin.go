package agent

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/loop"
)

// cascade passes a cancel of an idle agent on: its machine has nothing to
// abort, its children may have.
func (h *host) cascade(command loop.Input) {
	if cancel, ok := command.(loop.Cancel); ok && !cancel.KeepInbox && h.m.Idle() {
		h.abortChildren()
	}
}

func (h *host) abortChildren() {
	if h.cfg.Kin != nil {
		h.cfg.Kin.Abort()
	}
}

// awaitChildren asks for the children to settle; without any the answer is
// known at once.
func (h *host) awaitChildren(c actor.Context, e loop.AwaitChildren) {
	root, self, settled := c.ActorSystem().Root, h.self, loop.ChildrenSettled(e)
	tell := func() { root.Send(self, answer{input: settled}) }
	if h.cfg.Kin == nil || !h.cfg.Kin.Await(tell) {
		h.front = append(h.front, settled)
	}
}

// retires reports whether an idle agent that is to retire is quiet by now.
func (h *host) retires(c actor.Context) bool {
	if h.retiring == nil || h.m.Pending(dsh.NextTurn) > 0 || h.cfg.Kin != nil && h.cfg.Kin.Busy() {
		return false
	}
	h.feed(c, loop.Cancel{Cause: dsh.Cause{Kind: dsh.CauseDisposed}, KeepInbox: h.retiring.KeepInbox})
	h.send(c)
	return true
}

// refuse takes nothing from anybody: who waits for a reply sees the agent go.
// The library lets messages in until the agent's own children have stopped.
func (h *host) refuse(c actor.Context) {
	switch msg := c.Message().(type) {
	case *actor.Stopped:
		h.stopped()
	case llm.Fed:
		_, _, _ = msg.Feed.Take() // so that a stream of a previous life can end
	}
}
