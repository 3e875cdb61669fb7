package llm

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// Messages the stream accepts.
type (
	// Open is the first message: ask Serve for the request and answer
	// ReplyTo. Context names the initiator, as Initiator, which is immutable,
	// does for other actors; only an Abort cancels it.
	Open struct {
		Initiator *dsh.Initiator

		Context context.Context //nolint:containedctx // it is the stream's life.
		Serve   hook.StreamFunc
		Request *dsh.Request
		ReplyTo *actor.PID
	}

	// Abort cancels the request's context with Cause. The feed still ends as
	// any other does.
	Abort struct {
		Pos   dsh.Pos
		Cause error
	}
)

// Fed is the message that the stream sends, any number of times: Feed has
// something to take. The last one finds the feed ended.
type Fed struct {
	Pos  dsh.Pos
	Feed *Feed
}
