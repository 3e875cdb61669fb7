package dispatch

import (
	"log/slog"
	"slices"

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
	shrink(system)
	return system
}

// buckets is how many of the registry's 1,024 buckets are kept, of 32 maps each.
const buckets = 16

// shrink makes the registry of a system without actors smaller: a map takes
// hundreds of bytes for its first entry and tens for the next, so that 32,768 of
// them would be among the largest things that an idle actor costs.
func shrink(system *actor.ActorSystem) {
	registry := system.ProcessRegistry
	registry.LocalPIDs.LocalPIDs = slices.Clone(registry.LocalPIDs.LocalPIDs[:buckets])
	// The library's own, whose buckets are others now.
	registry.Add(system.DeadLetter, "deadletter")
	registry.Add(actor.NewEventStreamProcess(system), "eventstream")
}
