package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Tool is something a model can ask to be done. Optional behaviour is added
// by the interfaces [Moded], [Classifier], [Limited] and [Waiter].
type Tool interface {
	// Schema tells the model of the tool. It is asked once, at registration.
	Schema() dsh.ToolSchema

	// Execute does the work. It runs on its own goroutine, may block, and
	// must return soon after ctx is cancelled, which happens with the turn;
	// the turn stays open until it returns. Arguments were validated against
	// the schema. An error becomes an error result that the model reads; an
	// [*Error] in its chain names it for programs. A panic is an error result
	// too. ctx names the initiator and, by hook.AgentFrom, the agent.
	Execute(ctx context.Context, call Call) (Result, error)
}

// A Call is one call of a tool.
type Call struct {
	ID   dsh.CallID
	Name string
	// Args is a JSON object that fits the schema.
	Args json.RawMessage
}

// A Result is what a tool hands back. The zero value is a result without
// content.
type Result struct {
	Content []dsh.Block
	// Conclude ends the turn at this step, unless input is waiting.
	Conclude bool
	// Context is delivered to the next step behind the result, also when
	// Execute returns an error.
	Context []*dsh.Message
	// Meta is logged beside the result and never sent to a model.
	Meta json.RawMessage
}

// Text returns a result with one text block.
func Text(text string) Result { return Result{Content: []dsh.Block{dsh.Text{Text: text}}} }

// Textf returns a result with one formatted text block.
func Textf(format string, args ...any) Result { return Text(fmt.Sprintf(format, args...)) }

// Mode says whether calls of a tool may overlap with others.
type Mode uint8

// Modes of a call. An exclusive call is a barrier: it runs alone.
const (
	Exclusive Mode = iota
	Parallel
)

// String returns "exclusive" or "parallel".
func (m Mode) String() string {
	if m == Parallel {
		return "parallel"
	}
	return "exclusive"
}

// Moded is a tool whose calls all have one mode. Without it, and without
// [Classifier], a tool is exclusive.
type Moded interface{ Mode() Mode }

// A Classifier decides the mode of each call from its arguments, which fit the
// schema. It is asked just before a call would start, on a goroutine of its
// own; a panic means exclusive.
type Classifier interface {
	Classify(args json.RawMessage) Mode
}

// Limited is a tool whose calls are cancelled after a time; the result is an
// error with code TIMEOUT.
type Limited interface{ Timeout() time.Duration }

// Waiter is a tool whose calls mostly wait for other agents. They take no place
// in the pool of tool bodies, so that agents that wait for each other cannot
// fill it.
type Waiter interface{ Waits() bool }

// An Error is a tool's error with a code for programs. Its text is what the
// model reads.
type Error struct {
	// Name defaults to "HarnessError".
	Name    string
	Code    string
	Message string
	Cause   error
}

// Errorf returns an Error with a formatted message; %w sets its cause.
func Errorf(code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Cause: err}
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Failure returns the name and code as they are logged.
func (e *Error) Failure() dsh.ToolFailure {
	if e.Name == "" {
		return dsh.ToolFailure{Name: "HarnessError", Code: e.Code}
	}
	return dsh.ToolFailure{Name: e.Name, Code: e.Code}
}
