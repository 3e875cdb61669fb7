package hook

import "github.com/dsh-actor/dsh-actor/dsh"

// A Notice is a live event of an agent: [Created], [SessionStarted],
// [Inserted], [Claimed], [Discarded], [StatusChanged], [Erred] or [Disposed].
// Notices are for coordination; facts are read from the log.
//
//sumtype:decl
type Notice interface {
	// Type returns the name of the live event.
	Type() string
	isNotice()
}

// Notices of an agent.
type (
	// Created is the first notice of an agent's life.
	Created struct{}

	// SessionStarted tells how the session came to be.
	SessionStarted struct{ Source Source }

	// Inserted tells that a message is pending.
	Inserted struct{ Message *dsh.Message }

	// Claimed tells that a pending message was taken into a turn.
	Claimed struct {
		Message *dsh.Message
		Turn    int
	}

	// Discarded tells that a pending message was removed without a claim.
	Discarded struct{ Message *dsh.Message }

	// StatusChanged tells the public status.
	StatusChanged struct{ Status Status }

	// Erred tells that a turn is about to end with an error.
	Erred struct {
		Turn, Step int
		Err        error
	}

	// Disposed is the last notice of an agent's life.
	Disposed struct{}
)

// Status is the public status of an agent.
type Status string

// Statuses of an agent. Maintenance counts as idle.
const (
	Idle    Status = "idle"
	Running Status = "running"
)

// Type returns "agent/created".
func (Created) Type() string { return "agent/created" }

// Type returns "agent/session-start".
func (SessionStarted) Type() string { return "agent/session-start" }

// Type returns "agent/inbox/inserted".
func (Inserted) Type() string { return "agent/inbox/inserted" }

// Type returns "agent/inbox/claimed".
func (Claimed) Type() string { return "agent/inbox/claimed" }

// Type returns "agent/inbox/discarded".
func (Discarded) Type() string { return "agent/inbox/discarded" }

// Type returns "agent/status".
func (StatusChanged) Type() string { return "agent/status" }

// Type returns "agent/error".
func (Erred) Type() string { return "agent/error" }

// Type returns "agent/disposed".
func (Disposed) Type() string { return "agent/disposed" }

func (Created) isNotice()        {}
func (SessionStarted) isNotice() {}
func (Inserted) isNotice()       {}
func (Claimed) isNotice()        {}
func (Discarded) isNotice()      {}
func (StatusChanged) isNotice()  {}
func (Erred) isNotice()          {}
func (Disposed) isNotice()       {}

// A Notified hook observes an agent's notices, in order, on a goroutine that
// runs while there are any. It slows nobody down; one that blocks delays
// later notices only.
type Notified interface {
	Notified(a Agent, n Notice)
}
