package session

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Messages the session accepts. Append, Flush and Derive come from the agent
// that owns the log; mailbox order is log order.
type (
	// Append adds events that the agent numbered. A gap is a bug and fails
	// the session. There is no answer.
	Append struct{ Events []dsh.Event }

	// Flush asks for the log through an event to be durable. The session
	// answers ReplyTo with exactly one [Flushed] of the same Pos.
	Flush struct {
		Pos     dsh.Pos
		Through dsh.Seq
		ReplyTo *actor.PID
	}

	// Derive asks for the history that the log makes through an event, once
	// that is durable. The session answers ReplyTo with exactly one
	// [Derived] of the same Pos.
	Derive struct {
		Pos     dsh.Pos
		Through dsh.Seq
		ReplyTo *actor.PID
	}

	// Sync asks for everything that came before it to be durable: a barrier
	// for somebody who is no actor. One [Synced] is sent to Reply, which must
	// have room.
	Sync struct{ Reply chan<- Synced }

	// Read asks what there is from a sequence number on. The session sends
	// one [Available] to Reply, which must have room for it: at once or, with
	// Wait, when there is anything or nothing can come any more.
	Read struct {
		From  dsh.Seq
		Wait  bool
		Reply chan<- Available
	}

	// Unread withdraws a Read that was not answered yet.
	Unread struct{ Reply chan<- Available }

	// Close makes the log durable, gives it up, ends all readers and stops
	// the session. One error or nil is sent to Reply, which must have room.
	Close struct{ Reply chan<- error }
)

// Messages the session sends.
type (
	// Flushed answers [Flush]. Err says why the log is not durable; the
	// events are kept and written with the next flush.
	Flushed struct {
		Pos dsh.Pos
		Err error
	}

	// Synced answers [Sync]: the number of the event behind the last one that
	// it is about, and why that is not durable.
	Synced struct {
		Next dsh.Seq
		Err  error
	}

	// Derived answers [Derive]. Messages is an immutable snapshot that took
	// no time to make, however long the history is.
	Derived struct {
		Pos      dsh.Pos
		Messages []*dsh.Message
		Err      error
	}

	// Available answers [Read]. Stored says that the store has events from
	// the asked number through Through; otherwise Events holds those that it
	// does not have yet, packed, the first of which may begin earlier.
	Available struct {
		Stored  bool
		Through dsh.Seq
		Events  []dsh.Event
		Closed  bool
	}

	// Failed tells the agent that the session broke and stops: through a bug, or
	// because its log was lost to a later owner (see [Lost]).
	Failed struct{ Err error }
)
