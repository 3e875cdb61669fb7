package delegation

import (
	"encoding/json"
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// OutcomeKind says how a child ended.
type OutcomeKind string

// Kinds of outcomes.
const (
	// Completed: it ended its work by itself.
	Completed OutcomeKind = "completed"
	// Failed: a request, a hook or the runtime failed; Failure says how.
	Failed OutcomeKind = "failed"
	// Aborted: somebody cancelled it; Cause says who.
	Aborted OutcomeKind = "aborted"
	// Limited: it met a limit; Limit says which.
	Limited OutcomeKind = "limited"
	// Rejected: its input was refused; Reason says why.
	Rejected OutcomeKind = "rejected"
	// Interrupted: it was cut short and had no say in it, as by the end of its
	// process. One that works in the background goes on with the next message.
	Interrupted OutcomeKind = "interrupted"
)

// Limit names what limited a child.
type Limit string

// Limits that end a child.
const (
	// LimitTokens: the model's output was cut off.
	LimitTokens Limit = "max-tokens"
	// LimitTime: its time was over.
	LimitTime Limit = "time"
	// LimitDeaf: it was cancelled and did not come to an end in time. It is
	// left to itself; its log tells how it ended after all.
	LimitDeaf Limit = "deaf"
)

// An Outcome is how a child ended. It is read from the child's log.
type Outcome struct {
	Kind    OutcomeKind
	Failure *dsh.Failure // of a Failed one
	Cause   dsh.Cause    // of an Aborted one
	Limit   Limit        // of a Limited one
	Reason  string       // of a Rejected one

	// Output is the content of the child's last message that has any, however
	// it ended: what there is of a partial answer counts.
	Output []dsh.Block
	// Structured is the output that was asked for by a schema, or nil.
	Structured json.RawMessage
	// Turns is how many turns did any work.
	Turns int
	// Usage sums the child's own requests; Descendants those of its children
	// and theirs that had settled by then, each counted once.
	Usage, Descendants dsh.Usage
}

// OK reports whether the child completed.
func (o Outcome) OK() bool { return o.Kind == Completed }

// Text returns the text of the output.
func (o Outcome) Text() string { return dsh.TextOf(o.Output) }

// Total returns the usage of the child and of its descendants.
func (o Outcome) Total() dsh.Usage { return o.Usage.Add(o.Descendants) }

// Code names the outcome for programs: empty for a completed child, the
// failure's code for a failed one.
func (o Outcome) Code() string {
	switch o.Kind {
	case Failed:
		if o.Failure != nil {
			return string(o.Failure.Code)
		}
		return string(dsh.CodeUnknown)
	case Aborted:
		return "CHILD_ABORTED"
	case Limited:
		switch o.Limit {
		case LimitTokens:
			return "CHILD_MAX_TOKENS"
		case LimitTime:
			return "CHILD_TIMEOUT"
		}
		return "CHILD_DEAF"
	case Rejected:
		return "CHILD_REJECTED"
	case Interrupted:
		return "CHILD_INTERRUPTED"
	}
	return ""
}

// String says in a few words how the child ended.
func (o Outcome) String() string {
	switch o.Kind {
	case Failed:
		if o.Failure != nil {
			return fmt.Sprintf("failed with %s: %s", o.Failure.Code, o.Failure.Message)
		}
		return "failed"
	case Aborted:
		return fmt.Sprintf("was aborted by %s", o.Cause.Kind)
	case Limited:
		switch o.Limit {
		case LimitTokens:
			return "was cut off by its token limit"
		case LimitTime:
			return "ran out of time"
		}
		return "did not stop in time when it was cancelled"
	case Rejected:
		return "was rejected: " + o.Reason
	case Interrupted:
		return "was interrupted before it had ended its work"
	}
	return "completed"
}

// Err returns nil for a completed child and otherwise an error with the
// outcome's code. A failed child's failure is its cause.
func (o Outcome) Err() error {
	if o.OK() {
		return nil
	}
	err := &Error{Code: o.Code(), Message: "the sub-agent " + o.String()}
	if o.Failure != nil {
		err.Cause = o.Failure
	}
	return err
}
