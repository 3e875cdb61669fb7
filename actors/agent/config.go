package agent

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
	"github.com/dsh-actor/dsh-actor/tool"
)

// Shared is what agents have in common. Its fields are never written after the
// first of them was spawned.
type Shared struct {
	// Pool is the actor that runs tools.
	Pool *actor.PID
	// Streams is how a model stream is spawned.
	Streams *actor.Props
	// Providers finds the adapter of a route.
	Providers func(name string) (llm.Provider, bool)
	// Rests is called on the actor's goroutine whenever an agent is idle behind
	// a message; it must not block. Nil is allowed.
	Rests func()
	// Logger is never nil.
	Logger *zap.Logger

	rendered atomic.Pointer[rendered] // the last plain prompt of any of them; see prompt.go
}

// Config is what an agent needs. It is never written after the agent was
// spawned.
type Config struct {
	*Shared
	Initiator dsh.Initiator
	// Machine is the loop, new or restored; the agent owns it.
	Machine *loop.Machine
	// Source is how the session came to be; empty for an agent that was
	// passivated and goes on.
	Source hook.Source
	// Session is the actor that keeps the log.
	Session *actor.PID
	// Tools is the agent's own scope.
	Tools *tool.Registry
	// Hooks is never nil.
	Hooks *hook.Set
	// Prompt is never nil.
	Prompt *Prompt
	// Face is what hooks and tools get as the agent; nil gives them the
	// handle.
	Face func(*Handle) hook.Agent
	// Kin is the agent's children; nil for an agent without.
	Kin Kin
	// Observer, if set, acts synchronously. It is for the project's own
	// tests.
	Observer Observer
	// Stopped is called once, on the actor's goroutine, when the agent has
	// stopped for whatever reason; it must not block. Nil is allowed.
	Stopped func()
}

// Prompt is what an agent's prompts are made of beside the runtime's own.
type Prompt struct {
	// System is the persona, a template; CWD the working directory or empty.
	System, CWD string
	// Sections and Context are further sections of the system prompt and of
	// the runtime context.
	Sections, Context []hook.Section
}

// Kin is the children of an agent, as whoever keeps them sees them. Its
// methods are called on the actor's goroutine and never wait.
type Kin interface {
	// Abort passes the abort of the agent's turn on to the children that work
	// in the background.
	Abort()
	// Await calls settled, once and on any goroutine, when the children that
	// Abort reached have settled. It returns false, and does not call, if there
	// are none.
	Await(settled func()) bool
	// Busy reports whether children work in the background: the agent does not
	// retire before they have settled, and is nudged when they have.
	Busy() bool
}

// An Observer sees every event right behind its append and every notice right
// when it is published, and may apply commands there and then. It runs on the
// actor's goroutine. With an observer chunks are taken one at a time, and any
// fact may be appended.
type Observer interface {
	Logged(ev dsh.Event, do func(loop.Input))
	Noticed(n hook.Notice, do func(loop.Input))
}
