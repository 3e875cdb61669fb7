package dispatch

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
)

// NewSystem returns an actor system that logs to logger and does not report
// messages whose receiver is gone: whoever waits for an answer watches the
// receiver too, and the library's report leaves a goroutine behind for a
// second.
func NewSystem(logger *slog.Logger) *actor.ActorSystem {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	system.EventStream = eventstream.NewEventStream() // without the library's own subscribers
	return system
}
