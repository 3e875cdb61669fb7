package toolpool

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// Messages the pool accepts.
type (
	// Run asks the pool to execute one call. The pool answers ReplyTo with
	// exactly one [Result] of the same Pos and Index, whatever happens: a
	// panic, a full queue and an aborted call are results too. Context is
	// the turn's.
	Run struct {
		// Initiator is the agent on whose behalf the body runs; immutable.
		Initiator *dsh.Initiator

		Pos     dsh.Pos
		Index   int
		Context context.Context //nolint:containedctx // it is the body's.
		Call    hook.Call
		Execute hook.AroundToolFunc
		ReplyTo *actor.PID
		// Waits says that the body mostly waits for other agents. It takes no
		// place in the pool, so that a chain of waiting agents cannot fill it.
		Waits bool
	}

	// Abort drops the sender's queued calls; each still yields its Result.
	// Running bodies are told through their context.
	Abort struct {
		Pos     dsh.Pos
		ReplyTo *actor.PID
	}
)

// Result is the message that the pool sends for each [Run]. Err is why there
// is no outcome: the body's error or panic, or [ErrNotStarted].
type Result struct {
	Pos     dsh.Pos
	Index   int
	Outcome hook.Outcome
	Err     error
}
