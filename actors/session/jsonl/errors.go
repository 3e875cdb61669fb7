package jsonl

import (
	"errors"
	"fmt"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Errors of the store, to be compared with errors.Is, beside those of
// [session.Store], dsh.ErrVersion and dsh.ErrUnknownEvent.
var (
	// ErrCorrupt says that a log is damaged in a way that no crash explains.
	ErrCorrupt = errors.New("session log is corrupt")
	// ErrEncoding says that a log is compressed in a store that is not, or
	// the other way round.
	ErrEncoding = errors.New("session log has the other encoding")
	// ErrReadOnly refuses to write through a [Reader].
	ErrReadOnly = errors.New("session log was opened for reading")
)

// A LogError says where a log cannot be read. It wraps the reason, and
// [ErrCorrupt] if the log is damaged.
type LogError struct {
	Path string
	// Line counts from 1 over what the file holds, decompressed. It is 0
	// where the damage hides the lines.
	Line int
	Err  error
}

// Error names file, line and reason.
func (e *LogError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err)
}

// Unwrap returns the reason.
func (e *LogError) Unwrap() error { return e.Err }

// damage returns reason as damage to a log.
func damage(path string, line int, reason error) error {
	return &LogError{Path: path, Line: line, Err: fmt.Errorf("%w: %w", ErrCorrupt, reason)}
}

// Holder is the process that owns a log.
type Holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// An InUseError says who owns a log. It is a [session.ErrInUse].
type InUseError struct {
	ID dsh.SessionID
	// Holder is zero if the owner did not say who it is.
	Holder Holder
}

// Error names the holder.
func (e *InUseError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("%s: %v by another process", e.ID, session.ErrInUse)
	}
	return fmt.Sprintf("%s: %v by process %d on %s since %s",
		e.ID, session.ErrInUse, e.Holder.PID, e.Holder.Host, e.Holder.Since.Format(time.RFC3339))
}

// Unwrap returns [session.ErrInUse].
func (e *InUseError) Unwrap() error { return session.ErrInUse }
