package delegation

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Codes of an [Error]. Codes never change their meaning; new ones may be added.
const (
	CodeDepth        = "DEPTH_LIMIT"              // children would be too deep
	CodeChildren     = "CHILD_LIMIT"              // the parent has too many live children
	CodeTree         = "TREE_LIMIT"               // the tree has too many live children
	CodeProcess      = "PROCESS_LIMIT"            // the process has too many live children
	CodeDraining     = "DRAINING"                 // the parent's children are being stopped
	CodeNoProvider   = "NO_PROVIDER"              // there is no such transport
	CodeNotResumable = "NOT_RESUMABLE"            // no background child has this ID
	CodeUnauthorized = "UNAUTHORIZED"             // the child is another agent's
	CodeParentGone   = "PARENT_UNAVAILABLE"       // the parent is not live
	CodeDuplicate    = "DUPLICATE_CHILD"          // a child with this ID is there
	CodeCancelled    = "CANCELLED"                // the caller gave up before the child existed
	CodeNoStore      = "PERSISTENCE_UNAVAILABLE"  // background children need a store that keeps
	CodeFilter       = "BAD_TOOL_FILTER"          // the filter names tools that there are not
	CodeSchema       = "UNSUPPORTED_SCHEMA"       // no output can be checked against it
	CodeNoStructured = "NO_STRUCTURED_OUTPUT"     // the child ended without the output asked for
	CodeUnavailable  = "CONTINUATION_UNAVAILABLE" // there is no background here
	CodeNoAgent      = "NO_AGENT"                 // nobody to delegate for
)

// An Error is why something about children was refused.
type Error struct {
	Code    string
	Message string
	Cause   error
}

// Errorf returns an Error with a formatted message; %w sets its cause.
func Errorf(code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	e := &Error{Code: code, Message: err.Error()}
	if wrapped, ok := err.(interface{ Unwrap() error }); ok {
		e.Cause = wrapped.Unwrap()
	}
	return e
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is an Error with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// ErrorName is the name of errors of this package in a tool result.
const ErrorName = "SubagentError"

// Failure returns the name and code as they are logged.
func (e *Error) Failure() dsh.ToolFailure { return dsh.ToolFailure{Name: ErrorName, Code: e.Code} }
