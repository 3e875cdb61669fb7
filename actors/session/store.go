package session

import (
	"context"
	"errors"
	"iter"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Errors of stores, to be compared with errors.Is.
var (
	ErrNotFound = errors.New("session not found")
	ErrExists   = errors.New("session exists already")
	ErrInUse    = errors.New("session is in use")
	ErrClosed   = errors.New("session log is closed")
	// ErrConflict refuses events that do not follow the last one stored.
	ErrConflict = errors.New("session log was written by somebody else")
)

// A Store keeps session logs. It is safe for concurrent use.
type Store interface {
	// Create makes an empty log and opens it. The header's ID must be free
	// ([ErrExists]).
	Create(ctx context.Context, h dsh.SessionHeader) (Log, error)
	// Open opens a log to be continued. One owner at a time has it
	// ([ErrInUse], [ErrNotFound]).
	Open(ctx context.Context, id dsh.SessionID) (Log, error)
	// List yields the headers of all logs, oldest first. An error concerns
	// one log and does not end the list.
	List(ctx context.Context) iter.Seq2[dsh.SessionHeader, error]
	// Volatile reports that logs live in memory only: appending is instant
	// and there is nothing to make durable.
	Volatile() bool
}

// A Log is one session's events in a store. Append, Sync and Close are called
// by one owner at a time; Read is safe beside them, and after Close.
type Log interface {
	Header() dsh.SessionHeader
	// Append adds events, which may be packed and are numbered on from the
	// last ([ErrConflict] otherwise). It keeps the slice. All or none of the
	// events are stored.
	Append(ctx context.Context, events []dsh.Event) error
	// Sync makes what was appended durable.
	Sync(ctx context.Context) error
	// Read returns packed events that cover from and what follows it, at
	// least one if there is any, about limit sequence numbers (0 means no
	// limit). The first may begin before from.
	Read(ctx context.Context, from dsh.Seq, limit int) ([]dsh.Event, error)
	// Close gives the log up; it does not sync.
	Close() error
}
