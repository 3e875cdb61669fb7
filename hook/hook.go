package hook

import (
	"context"
	"iter"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// An Agent is what a hook or a tool may do with the agent it runs for. Its
// methods send a message and wait until the agent accepted it, which it does
// at once whatever its state; they are safe for concurrent use. Once the agent
// is gone they return an error.
type Agent interface {
	ID() dsh.AgentID
	Session() dsh.SessionID
	// Followup queues m for a turn of its own and wakes the agent. A message
	// without an ID gets one.
	Followup(ctx context.Context, m *dsh.Message) error
	// Steer queues m for the nearest step and wakes the agent.
	Steer(ctx context.Context, m *dsh.Message) error
	// Inject queues m for the nearest step without waking the agent.
	Inject(ctx context.Context, m *dsh.Message) error
	// Cancel aborts what runs and, unless keepInbox, drops what is pending.
	Cancel(ctx context.Context, cause dsh.Cause, keepInbox bool) error
	// Append logs a fact. A surface fact needs op; sources may be nil. It
	// returns the fact's sequence number, or why the log refused it.
	Append(ctx context.Context, fact dsh.Fact, op dsh.SurfaceOp, sources *dsh.Sources) (dsh.Seq, error)
}

type agentKey struct{}

// WithAgent returns ctx naming a as the agent on whose behalf code runs.
func WithAgent(ctx context.Context, a Agent) context.Context {
	return context.WithValue(ctx, agentKey{}, a)
}

// Outside returns ctx naming neither an agent nor an initiator.
func Outside(ctx context.Context) context.Context {
	return context.WithValue(dsh.Outside(ctx), agentKey{}, nil)
}

// AgentFrom returns the agent on whose behalf code runs; ok is false outside
// any agent.
func AgentFrom(ctx context.Context) (a Agent, ok bool) {
	a, ok = ctx.Value(agentKey{}).(Agent)
	return a, ok
}

// A Step is a step about to be opened.
type Step struct {
	Agent Agent
	Pos   dsh.Pos
	// Messages is what was claimed for the step; a hook may pass on another
	// slice but may not write to this one's messages.
	Messages []*dsh.Message
}

// A Decision says whether a step is entered and with which messages.
type Decision struct {
	// Reject ends the turn as blocked; the claimed messages stay consumed.
	Reject   bool
	Messages []*dsh.Message
}

// PreStepFunc is the rest of a PreStep chain; its end enters with s.Messages.
type PreStepFunc func(ctx context.Context, s Step) (Decision, error)

// A PreStep hook decides what enters a step. It may rewrite the messages,
// reject the step, or call next to delegate; not calling next ends the chain.
//
// PreStep runs on its own goroutine and may block. ctx is cancelled with the
// turn; the turn stays open until PreStep returns, so return soon after.
type PreStep interface {
	PreStep(ctx context.Context, s Step, next PreStepFunc) (Decision, error)
}

// A Section is a named part of the system prompt or of the runtime context.
// Sections are ordered by Order, then by name; one with an empty text adds
// nothing.
type Section struct {
	Name  string
	Text  string
	Order float64
}

// An Assembly is what a step's prompt is made of.
type Assembly struct {
	Agent Agent
	Pos   dsh.Pos
	// Sections make the system prompt, joined by blank lines. Texts may use
	// {{name}} for a variable; one without a value fails the step.
	Sections []Section
	// Context is what the model should know of the moment. It is logged as a
	// message when it differs from what the history last said.
	Context   []Section
	Variables map[string]string
	Tools     []dsh.ToolSchema
}

// PromptFunc is the rest of a Prompt chain; its end returns a unchanged.
type PromptFunc func(ctx context.Context, a Assembly) (Assembly, error)

// A Prompt hook changes what a step's prompt is assembled from. It runs once
// per proposed step, before the PreStep chain, on its own goroutine. Slices
// and maps of the Assembly are the hook's to change.
type Prompt interface {
	Prompt(ctx context.Context, a Assembly, next PromptFunc) (Assembly, error)
}

// A Proposal is a model request about to be made.
type Proposal struct {
	Agent  Agent
	Pos    dsh.Pos
	Config dsh.CallConfig
}

// RequestFunc is the rest of a Request chain; its end returns p.Config.
type RequestFunc func(ctx context.Context, p Proposal) (dsh.CallConfig, error)

// A Request hook may replace the configuration of a model request. What it
// returns is logged and stays in force for later requests. It runs once per
// attempt, on its own goroutine.
type Request interface {
	Request(ctx context.Context, p Proposal, next RequestFunc) (dsh.CallConfig, error)
}

// StreamFunc serves a model request. The sequence yields chunks in order; a
// non-nil error ends it.
type StreamFunc func(ctx context.Context, req *dsh.Request) iter.Seq2[dsh.Chunk, error]

// A Stream hook serves, wraps or records a model stream. It is iterated on
// the stream's goroutine.
type Stream interface {
	Stream(ctx context.Context, req *dsh.Request, next StreamFunc) iter.Seq2[dsh.Chunk, error]
}

// A Witness is a Stream hook that stands behind all others, next to the adapter,
// in whatever order they were registered: it sees the request that is sent. It
// changes nothing.
type Witness interface {
	Stream
	Witness()
}

// A FailedRequest is a model request that failed.
type FailedRequest struct {
	Agent    Agent
	Pos      dsh.Pos
	Provider string
	Failure  *dsh.Failure
	// Content is what the attempt had streamed, cut calls too. It is in the
	// log as chunks and reaches no later request.
	Content []dsh.Block
	// Earlier holds the codes of the step's earlier attempts, in order. A
	// step ends with an answer, so it counts since the last one.
	Earlier []dsh.Code
}

// RequestErrorFunc is the rest of a RequestError chain; its end says no.
type RequestErrorFunc func(ctx context.Context, f FailedRequest) (retry bool, err error)

// A RequestError hook may repair what made a request fail and ask for another
// attempt, which is rebuilt from the log. It runs on its own goroutine and may
// wait; ctx ends the wait when the turn is cancelled.
type RequestError interface {
	RequestError(ctx context.Context, f FailedRequest, next RequestErrorFunc) (retry bool, err error)
}

// An EndingTurn is a turn that would end now.
type EndingTurn struct {
	Agent Agent
	Pos   dsh.Pos
}

// A TurnStopping hook is asked before a turn ends; whatever it steers or
// injects continues the turn. The hooks of one agent are asked one after the
// other.
type TurnStopping interface {
	TurnStopping(ctx context.Context, t EndingTurn) error
}

// Source says how a session came to be.
type Source string

// Sources of a session.
const (
	Startup Source = "startup"
	Resume  Source = "resume"
)

// A SessionStart hook is told of a session before its agent can be reached by
// anyone else; what it injects precedes the first prompt.
type SessionStart interface {
	SessionStart(ctx context.Context, a Agent, s Source) error
}
