package agent

import (
	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
	"github.com/dsh-actor/dsh-actor/tool"
)

// Config is what an agent needs. It is shared and never written after the
// agent was spawned.
type Config struct {
	Initiator dsh.Initiator
	// Machine is the loop, new or restored; the agent owns it.
	Machine *loop.Machine
	// Source is how the session came to be.
	Source hook.Source
	// Session and Pool are the actors that the agent works with.
	Session *actor.PID
	Pool    *actor.PID
	// Streams is how a model stream is spawned.
	Streams *actor.Props
	// Providers finds the adapter of a route.
	Providers func(name string) (llm.Provider, bool)
	// Tools is the agent's own scope.
	Tools *tool.Registry
	// Hooks is never nil.
	Hooks *hook.Set
	// System is the persona, a template; CWD the working directory or empty.
	System string
	CWD    string
	// Observer, if set, acts synchronously. It is for the project's own
	// tests.
	Observer Observer
	// Crashed is called once, on the actor's goroutine, when the agent
	// failed; it must not block. Nil is allowed.
	Crashed func(error)
	// Logger is never nil.
	Logger *zap.Logger
}

// An Observer sees every event right behind its append and every notice right
// when it is published, and may apply commands there and then. It runs on the
// actor's goroutine. With an observer chunks are taken one at a time, and any
// fact may be appended.
type Observer interface {
	Logged(ev dsh.Event, do func(loop.Input))
	Noticed(n hook.Notice, do func(loop.Input))
}
