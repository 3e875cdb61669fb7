package hook

import (
	"context"
	"encoding/json"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Call is a tool call on its way through the pipeline.
type Call struct {
	Agent Agent
	Pos   dsh.Pos
	ID    dsh.CallID
	Tool  string
	// Args is the arguments as JSON: an empty text became {}, and a text that
	// is no JSON became a JSON string holding it, which no tool accepts.
	Args json.RawMessage
}

// A Verdict says whether a call may run. The zero value allows it.
type Verdict struct {
	Kind VerdictKind
	// Reason is told to the model; a default text stands in for an empty one.
	Reason string
}

// VerdictKind is the kind of a [Verdict].
type VerdictKind uint8

// Kinds of verdicts. Ask needs somebody to approve; where nobody can, it
// denies.
const (
	Allow VerdictKind = iota
	Deny
	Ask
)

// PreToolFunc is the rest of a PreTool chain; its end allows.
type PreToolFunc func(ctx context.Context, c Call) (Verdict, error)

// A PreTool hook decides whether a call runs. Calls are asked about one at a
// time, in the model's order, before their bodies start. An error becomes the
// call's error result and skips the PostTool chain.
type PreTool interface {
	PreTool(ctx context.Context, c Call, next PreToolFunc) (Verdict, error)
}

// A Guard can only deny: it is asked after the PreTool chain allowed the call,
// and no other hook can overrule it.
type Guard interface {
	Guard(ctx context.Context, c Call) (denied bool, reason string, err error)
}

// An Outcome is the result of a call as it is logged.
type Outcome struct {
	Content []dsh.Block
	IsError bool
	// Error names the error for programs, or is nil.
	Error *dsh.ToolFailure
	// Conclude ends the turn at this step; an error never concludes.
	Conclude bool
	// Context is delivered to the next step behind the result.
	Context []*dsh.Message
	// Meta is logged beside the result and never sent to a model; nil is
	// absent.
	Meta json.RawMessage
}

// AroundToolFunc runs a call's body; its end is the tool itself.
type AroundToolFunc func(ctx context.Context, c Call) (Outcome, error)

// An AroundTool hook wraps the bodies of calls, on their goroutines.
type AroundTool interface {
	AroundTool(ctx context.Context, c Call, next AroundToolFunc) (Outcome, error)
}

// A Review says what becomes of an outcome. The zero value accepts it.
type Review struct {
	// Block turns the outcome into an error result that says Feedback and
	// drops the context that the tool attached.
	Block    bool
	Feedback string
	// Content replaces the outcome's content unless nil.
	Content []dsh.Block
	// Context is delivered to the next step behind the tool's own.
	Context []*dsh.Message
}

// PostToolFunc is the rest of a PostTool chain; its end accepts.
type PostToolFunc func(ctx context.Context, c Call, o Outcome) (Review, error)

// A PostTool hook reviews the outcome of a call before it is logged. Outcomes
// are reviewed one at a time, in the model's order. An error becomes the
// call's error result.
type PostTool interface {
	PostTool(ctx context.Context, c Call, o Outcome, next PostToolFunc) (Review, error)
}

// A ToolResult hook observes the final outcome of a call just before it is
// logged.
type ToolResult interface {
	ToolResult(ctx context.Context, c Call, o Outcome)
}
