package dsh

import "fmt"

// Identifiers are opaque strings; the types keep them apart.
type (
	// AgentID names an agent within a runtime.
	AgentID string
	// SessionID names a session log within a store.
	SessionID string
	// MessageID names a message. It is unique within a session's inbox.
	MessageID string
	// CallID names a tool call. A model chooses it; it is unique within one
	// assistant message only.
	CallID string
)

// Seq is the position of an event in its session log: dense, from 0.
type Seq int64

// Pos says which question of a turn an answer belongs to. Turns count from 1
// and go on across resume; steps restart at 1 in each turn (0 before the first
// step); attempts restart at 0 in each step.
type Pos struct {
	Turn, Step, Attempt int
}

// String returns the position as turn.step.attempt.
func (p Pos) String() string { return fmt.Sprintf("%d.%d.%d", p.Turn, p.Step, p.Attempt) }
