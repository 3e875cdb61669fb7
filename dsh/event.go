package dsh

import "encoding/json"

// An Event is one record of a session log, immutable once logged. Almost
// every event stands for itself; one whose Data is a [ChunkRun] is the packed
// form of several (see [Event.Span] and [Expand]).
type Event struct {
	Seq  Seq
	Time int64 // Unix milliseconds
	Data Fact
	// Surface is set on the surface types (user/message, assistant/message,
	// tool/result) and on no other.
	Surface SurfaceOp
	// Sources cites earlier events; only surface types have them.
	Sources *Sources
	// Ignorable lets a reader skip an event whose type it does not know.
	Ignorable bool
}

// Type returns the name of the event's type.
func (e *Event) Type() string { return e.Data.Type() }

// Span returns how many sequence numbers the event takes: the number of
// chunks of a [ChunkRun], else 1.
func (e *Event) Span() Seq {
	if run, ok := e.Data.(ChunkRun); ok {
		return Seq(len(run.Chunks))
	}
	return 1
}

// Last returns the last sequence number that the event takes.
func (e *Event) Last() Seq { return e.Seq + e.Span() - 1 }

// A Fact is the data of an event, one type per event type: [TurnStart],
// [TurnEnd], [StepStart], [StepEnd], [UserMessage], [AssistantChunk],
// [ChunkRun], [AssistantMessage], [ToolStarted], [ToolFinished],
// [RequestHeader], [RequestParameters], [RequestContext], [RequestSent],
// [InboxSpliced], [EndSeed], [RetryScheduled], [RetryStarted] or, for a type
// that this package does not look into, [Opaque].
//
//sumtype:decl
type Fact interface {
	// Type returns the name of the event type.
	Type() string
	isFact()
}

// Facts that the loop logs.
type (
	// TurnStart opens a turn.
	TurnStart struct{ Turn int }

	// TurnEnd closes a turn and says why.
	TurnEnd struct {
		Turn   int
		Reason Ending
	}

	// StepStart opens a step: one model request and the tool calls that it
	// asked for.
	StepStart struct{ Turn, Step int }

	// StepEnd closes a step, also after a failure or an abort.
	StepEnd struct{ Turn, Step int }

	// UserMessage is a user-role message that the model sees.
	UserMessage struct{ Message *Message }

	// AssistantChunk is one chunk of a model stream as it came.
	AssistantChunk struct {
		Turn, Step int
		Chunk      Chunk
	}

	// ChunkRun is consecutive AssistantChunk events of one attempt, logged
	// at the same time. It exists in memory only and never empty.
	ChunkRun struct {
		Turn, Step int
		Chunks     []Chunk
	}

	// AssistantMessage is a model's answer, folded from the chunks that the
	// event cites. Interrupted marks the prefix of one that was cancelled.
	AssistantMessage struct {
		Turn, Step  int
		Message     *Message
		Usage       *Usage
		Interrupted bool
	}

	// ToolStarted (tool/call) is logged before a call's policies and body.
	ToolStarted struct {
		Turn, Step int
		CallID     CallID
		Name       string
		Arguments  string
	}

	// ToolFinished (tool/result) holds a call's result message.
	ToolFinished struct {
		Turn, Step int
		Message    *Message
		Error      *ToolFailure
		Meta       json.RawMessage
	}

	// RequestHeader is logged when the header of a request differs from the
	// last one and at the first request of an agent's life.
	RequestHeader struct {
		Header *Header
		Reason HeaderReason
	}

	// RequestParameters is logged, before the header if there is one, when
	// the parameters of a request differ from the last ones. It is an event
	// type of our own: always ignorable, never in the log of an agent without
	// parameters.
	RequestParameters struct{ Parameters Parameters }

	// RequestSent is logged by an agent that is audited, right before an
	// adapter is handed a request: what the request was, as digests. It is
	// an event type of our own: always ignorable, and of no effect.
	RequestSent struct {
		Turn, Step, Attempt int
		// Through is the last event of the history that the request was
		// derived from.
		Through Seq
		// Messages is how many there are.
		Messages int
		Digest   RequestDigest
	}

	// RequestContext is logged when the route or its context window changed.
	// ContextWindow is in tokens; 0 is unknown.
	RequestContext struct {
		Provider, Model string
		ContextWindow   int
	}

	// InboxSpliced is one change of a pending list, in normalised
	// coordinates. A Removed of 0 is left out of the log; Outcome
	// is "canceled" on a removal that is not a claim.
	InboxSpliced struct {
		Target   Target
		Start    int
		Removed  int
		Inserted []*Message
		Outcome  string
	}

	// EndSeed marks where history that was loaded or copied ends.
	EndSeed struct{}

	// RetryScheduled (llm/retry) is logged before a retry's wait begins.
	RetryScheduled struct {
		RetryID    string
		Turn, Step int
		Provider   string
		Mode       string
		PolicyKey  string
		Retry      int
		MaxRetries *int
		DelayMs    int64
		Failure    *Failure
	}

	// RetryStarted (llm/retry-started) is logged after the wait.
	RetryStarted struct {
		RetryID    string
		Turn, Step int
		Retry      int
	}

	// Opaque is the data of any other event type, kept raw.
	Opaque struct {
		Name string
		Raw  json.RawMessage
	}
)

// Event types.
const (
	TypeTurnStart        = "turn/start"
	TypeTurnEnd          = "turn/end"
	TypeStepStart        = "step/start"
	TypeStepEnd          = "step/end"
	TypeUserMessage      = "user/message"
	TypeAssistantChunk   = "assistant/chunk"
	TypeAssistantMessage = "assistant/message"
	TypeToolStarted      = "tool/call"
	TypeToolFinished     = "tool/result"
	TypeRequestHeader    = "request/header"
	TypeRequestContext   = "request/context"
	TypeParameters       = "dsh-actor/parameters"
	TypeRequestSent      = "dsh-actor/request"
	TypeInboxSpliced     = "agent/inbox/spliced"
	TypeEndSeed          = "session/end-seed"
	TypeRetryScheduled   = "llm/retry"
	TypeRetryStarted     = "llm/retry-started"
)

// Type returns "turn/start".
func (TurnStart) Type() string { return TypeTurnStart }

// Type returns "turn/end".
func (TurnEnd) Type() string { return TypeTurnEnd }

// Type returns "step/start".
func (StepStart) Type() string { return TypeStepStart }

// Type returns "step/end".
func (StepEnd) Type() string { return TypeStepEnd }

// Type returns "user/message".
func (UserMessage) Type() string { return TypeUserMessage }

// Type returns "assistant/chunk".
func (AssistantChunk) Type() string { return TypeAssistantChunk }

// Type returns "assistant/chunk", the type of each event of the run.
func (ChunkRun) Type() string { return TypeAssistantChunk }

// Type returns "assistant/message".
func (AssistantMessage) Type() string { return TypeAssistantMessage }

// Type returns "tool/call".
func (ToolStarted) Type() string { return TypeToolStarted }

// Type returns "tool/result".
func (ToolFinished) Type() string { return TypeToolFinished }

// Type returns "request/header".
func (RequestHeader) Type() string { return TypeRequestHeader }

// Type returns "dsh-actor/parameters".
func (RequestParameters) Type() string { return TypeParameters }

// Type returns "dsh-actor/request".
func (RequestSent) Type() string { return TypeRequestSent }

// Type returns "request/context".
func (RequestContext) Type() string { return TypeRequestContext }

// Type returns "agent/inbox/spliced".
func (InboxSpliced) Type() string { return TypeInboxSpliced }

// Type returns "session/end-seed".
func (EndSeed) Type() string { return TypeEndSeed }

// Type returns "llm/retry".
func (RetryScheduled) Type() string { return TypeRetryScheduled }

// Type returns "llm/retry-started".
func (RetryStarted) Type() string { return TypeRetryStarted }

// Type returns the name that the event had.
func (o Opaque) Type() string { return o.Name }

func (TurnStart) isFact()         {}
func (TurnEnd) isFact()           {}
func (StepStart) isFact()         {}
func (StepEnd) isFact()           {}
func (UserMessage) isFact()       {}
func (AssistantChunk) isFact()    {}
func (ChunkRun) isFact()          {}
func (AssistantMessage) isFact()  {}
func (ToolStarted) isFact()       {}
func (ToolFinished) isFact()      {}
func (RequestHeader) isFact()     {}
func (RequestContext) isFact()    {}
func (RequestParameters) isFact() {}
func (RequestSent) isFact()       {}
func (InboxSpliced) isFact()      {}
func (EndSeed) isFact()           {}
func (RetryScheduled) isFact()    {}
func (RetryStarted) isFact()      {}
func (Opaque) isFact()            {}

// Target names one of the two lists of an inbox.
type Target string

// Targets of pending messages.
const (
	NextTurn Target = "next-turn"
	NextStep Target = "next-step"
)

// OutcomeCanceled is the outcome of an inbox removal that is not a claim.
const OutcomeCanceled = "canceled"

// HeaderReason says why a request header was logged.
type HeaderReason string

// Reasons of a [RequestHeader].
const (
	HeaderInitial HeaderReason = "initial"
	HeaderResume  HeaderReason = "resume"
	HeaderChange  HeaderReason = "change"
)

// EndKind says how a turn ended.
type EndKind string

// Kinds of a turn's end. EndInterrupted is only written when a crashed log is
// repaired.
const (
	EndCompleted   EndKind = "completed"
	EndMaxTokens   EndKind = "max-tokens"
	EndBlocked     EndKind = "blocked"
	EndAborted     EndKind = "aborted"
	EndError       EndKind = "error"
	EndInterrupted EndKind = "interrupted"
)

// Ending is the reason of a [TurnEnd]. Cause is set with EndAborted, Failure
// with EndError.
type Ending struct {
	Kind    EndKind
	Cause   Cause
	Failure *Failure
}

// Cause says who cancelled a turn. The zero Cause is no cause.
type Cause struct {
	Kind CauseKind
	// Reason is the hook's reason with CauseHook.
	Reason string
}

// CauseKind is the kind of a [Cause].
type CauseKind string

// Kinds of causes.
const (
	CauseUser     CauseKind = "user"
	CauseParent   CauseKind = "parent"
	CauseHook     CauseKind = "hook"
	CauseDisposed CauseKind = "disposed"
)

// ToolFailure names the error of a tool result for programs.
type ToolFailure struct{ Name, Code string }

// Names and codes of tool failures that the runtime itself produces.
var (
	ToolUnknown        = ToolFailure{Name: "ToolNotFoundError", Code: "UNKNOWN_TOOL"}
	ToolInvalidArgs    = ToolFailure{Name: "ToolArgsError", Code: "INVALID_ARGS"}
	ToolAborted        = ToolFailure{Name: "AbortError", Code: "ABORTED"}
	ToolNotDispatched  = ToolFailure{Name: "AbortError", Code: "ABORTED_BEFORE_DISPATCH"}
	ToolOutcomeUnknown = ToolFailure{Name: "ToolOutcomeUnknownError", Code: "TOOL_OUTCOME_UNKNOWN"}
	ToolNotStarted     = ToolFailure{Name: "ToolNotStartedError", Code: "TOOL_NOT_STARTED"}
)

// SurfaceOp says what a surface event does to the surface: [Append] or
// [Replace]. The zero value stands for none.
type SurfaceOp struct{ op *surfaceOp }

type surfaceOp struct {
	kind       SurfaceKind
	start, end Seq
}

// SurfaceKind is the kind of a [SurfaceOp].
type SurfaceKind uint8

// Kinds of surface operations.
const (
	SurfaceNone SurfaceKind = iota
	SurfaceAppend
	SurfaceReplace
)

// Append is the surface operation of a new node at the end.
var Append = SurfaceOp{&surfaceOp{kind: SurfaceAppend}}

// Replace returns the surface operation of a node in place of those from start
// through end, in surface order.
func Replace(start, end Seq) SurfaceOp {
	return SurfaceOp{&surfaceOp{kind: SurfaceReplace, start: start, end: end}}
}

// Kind returns which operation it is.
func (s SurfaceOp) Kind() SurfaceKind {
	if s.op == nil {
		return SurfaceNone
	}
	return s.op.kind
}

// Range returns the sequence numbers of the first and the last node that a
// replace shadows.
func (s SurfaceOp) Range() (start, end Seq) {
	if s.op == nil {
		return 0, 0
	}
	return s.op.start, s.op.end
}

// SessionHeader is what a log says about its session: its first line.
type SessionHeader struct {
	Version   int
	ID        SessionID
	CreatedAt int64 // Unix milliseconds
	// CWD is the working directory, absolute, or empty.
	CWD string
	// ParentSession is where a fork or a sub-agent comes from, or empty.
	ParentSession SessionID
	// SeedLength is how many events were copied from the parent; HasSeed
	// tells an absent one from 0.
	SeedLength Seq
	HasSeed    bool
	// Origin is "subagent" or empty.
	Origin          string
	DelegationDepth int
	AgentPreset     string
}

// FormatVersion is the version of the session format that this package knows.
const FormatVersion = 0
