package delegation

import (
	"context"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// A Parent is an agent as the keeper of its children. Methods are safe for
// concurrent use; children are named by their sessions.
type Parent interface {
	// Delegate makes a live child that waits for its first message. It fails
	// with an [*Error] where a limit or a rule forbids it.
	Delegate(ctx context.Context, spec Spec) (Child, error)
	// Message gives a background child of this agent a turn of its own. A
	// child that has settled is resumed from its log with the gear.
	Message(ctx context.Context, child dsh.SessionID, m *dsh.Message, gear Gear) error
	// Interrupt cancels the turn of a descendant and keeps its inbox. Where
	// there is nothing to interrupt nothing happens.
	Interrupt(ctx context.Context, descendant dsh.SessionID) error
	// Report hands a message to the agent's own live parent, at once or, if
	// quiet, with whatever wakes the parent next. It returns the message's ID.
	Report(ctx context.Context, m *dsh.Message, quiet bool) (dsh.MessageID, error)
	// Children lists the children, live and stored, oldest first; deep lists
	// all descendants, each behind its parent.
	Children(ctx context.Context, deep bool) ([]Entry, error)
}

// A Child is a child as its parent's code sees it.
type Child interface {
	Session() dsh.SessionID
	// RunMessage sends the first message and waits for the outcome; the child
	// is disposed of by then. When ctx ends, the child is cancelled with cause
	// parent and waited for, within bounds; the outcome tells. The error is
	// about the child's being started at all.
	RunMessage(ctx context.Context, m *dsh.Message) (Outcome, error)
	// Begin sends the first message of a child that works in the background,
	// and returns when its inbox has it. The child settles by itself.
	Begin(ctx context.Context, m *dsh.Message) error
	// Dispose ends the child and waits until it is gone.
	Dispose(ctx context.Context) error
}

// From returns the agent on whose behalf code runs as the parent that it may
// be; ok is false outside any agent.
func From(ctx context.Context) (p Parent, ok bool) {
	a, _ := hook.AgentFrom(ctx)
	p, ok = a.(Parent)
	return p, ok
}

// An Entry is a child in a list.
type Entry struct {
	ID     dsh.SessionID
	Parent dsh.SessionID
	Depth  int
	// Mode and Label are the descriptor's.
	Mode  Mode
	Label string
	// Status is what the child does.
	Status Status
	// Outcome is how its last life ended; nil for one that is live, was never
	// asked for anything, or has a Problem.
	Outcome *Outcome
	// HasChildren says that the child has children of its own, live or stored.
	HasChildren bool
	// Problem says why nothing is known of the child: its log is "corrupt" or
	// "unavailable". It is empty for any other.
	Problem string
}

// Status is what a child does.
type Status string

// Statuses of a child.
const (
	// Running children have a turn open or work to do.
	Running Status = "running"
	// Resident children are live and between turns.
	Resident Status = "idle"
	// Ready children exist in the store only.
	Ready Status = "ready"
	// CutShort children exist in the store only, and their last life was
	// [Interrupted].
	CutShort Status = "interrupted"
)

// An Observer is a hook that is told of children: each start is followed by
// exactly one end. It is called on the goroutine that starts or ends the child,
// which waits for it; what it panics with changes nothing.
type Observer interface {
	ChildStarted(s Started)
	ChildEnded(e Ended)
}

// Started tells that a child began to live.
type Started struct {
	// Run names this life of the child; a child that is resumed has another.
	Run       string
	Initiator dsh.Initiator // of the child
	Transport Transport
	Label     string
	// Background says that the child works by itself and settles.
	Background bool
}

// Ended tells that a child's life is over.
type Ended struct {
	Started
	Outcome Outcome
	// Registered says that the runtime still knows the child under its ID.
	Registered bool
}
