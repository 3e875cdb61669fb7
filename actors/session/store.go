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
	// ErrStale refuses an owner whom a later one has taken the place of.
	ErrStale = errors.New("session log has a later owner")
)

// Lost reports whether a store refused a write for good: the log is somebody
// else's by now, or closed. Whoever meets that has to open the log again.
func Lost(err error) bool {
	return errors.Is(err, ErrStale) || errors.Is(err, ErrConflict) || errors.Is(err, ErrClosed)
}

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

// Lineage is what a [Store] may be beside: one that finds the children of a
// session faster than by a look at all logs. A resumed agent asks for its own.
type Lineage interface {
	// Children yields the headers of the logs that name parent as theirs,
	// oldest first. Logs that cannot be read have no known parent and are left
	// out; an error is about the look itself and ends it.
	Children(ctx context.Context, parent dsh.SessionID) iter.Seq2[dsh.SessionHeader, error]
}

// A Viewer is a store whose logs can be read beside their owner, whoever that
// is. A log that it returns refuses to be written, and need not be closed.
type Viewer interface {
	View(ctx context.Context, id dsh.SessionID) (Log, error)
}

// A Deleter is a store that can take logs out.
type Deleter interface {
	// Delete removes a log for good ([ErrNotFound]). One that somebody owns may
	// be refused ([ErrInUse]).
	Delete(ctx context.Context, id dsh.SessionID) error
}

// A Log is one session's events in a store. Append, Sync and Close are called
// by one owner at a time; Read is safe beside them, and after Close.
type Log interface {
	Header() dsh.SessionHeader
	// Epoch is that of the ownership that Create or Open began.
	Epoch() Epoch
	// Append adds events, which may be packed, behind fence. It keeps the
	// slice. All or none of the events are stored.
	Append(ctx context.Context, fence Fence, events []dsh.Event) error
	// Sync makes what was appended durable.
	Sync(ctx context.Context) error
	// Read returns packed events that cover from and what follows it, at
	// least one if there is any, about limit sequence numbers (0 means no
	// limit). The first may begin before from.
	Read(ctx context.Context, from dsh.Seq, limit int) ([]dsh.Event, error)
	// Close gives the log up; it does not sync.
	Close() error
}

// An Epoch numbers the ownerships of one log: each is larger than all before
// it. It says nothing else.
type Epoch int64

// A Fence is what every append says of itself, so that nobody writes who only
// believes to own the log: whose process was taken for dead, say, while it was
// asleep. A store of files has a lock for that; one that machines share compares
// the fence with what it has.
type Fence struct {
	// Epoch is the writer's. Any but that of the log's last owner is refused
	// ([ErrStale]).
	Epoch Epoch
	// Next is the number of the first event. Any but the one behind the last
	// event stored is refused ([ErrConflict]).
	Next dsh.Seq
}

// Extend appends events, which know what they follow, as the log's present owner.
func Extend(ctx context.Context, log Log, events []dsh.Event) error {
	if len(events) == 0 {
		return nil
	}
	return log.Append(ctx, Fence{Epoch: log.Epoch(), Next: events[0].Seq}, events)
}
