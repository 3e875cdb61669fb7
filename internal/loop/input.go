package loop

import (
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/tool"
)

// An Input is what happens to a machine: a command from outside, the answer to
// a question that an effect asked, or [Continue].
//
// Commands: [Start], [Deliver], [Wake], [Replace], [Remove], [Clear],
// [Cancel], [Maintain], [Append]. Answers, each exactly once per question: [Synced],
// [Admitted], [Refused], [Prepared], [Derived], [StreamEnded], [Recovered],
// [Settled], [ChildrenSettled], [HookFailed], [Classified], [Judged], [Ran], [Reviewed],
// [Maintained]; and, any number of times before StreamEnded, [Streamed].
//
//sumtype:decl
type Input interface{ isInput() }

// Commands.
type (
	// Start is the first input of a machine's life. It marks the end of a
	// seed and announces the agent.
	Start struct{ Source hook.Source }

	// Deliver makes a message pending in Target (or [Nearest]), at its end
	// or, with Front, at its beginning. Wake opens a turn if none is open.
	Deliver struct {
		Message *dsh.Message
		Target  dsh.Target
		Wake    bool
		Front   bool
	}

	// Wake opens a turn if none is open and something is pending: what waits in
	// the inbox of a resumed session needs nothing else.
	Wake struct{}

	// Replace puts a message where the one with ID is pending.
	Replace struct {
		ID      dsh.MessageID
		Message *dsh.Message
	}

	// Remove withdraws a pending message.
	Remove struct{ ID dsh.MessageID }

	// Clear withdraws all pending messages.
	Clear struct{}

	// Cancel aborts what runs and, unless KeepInbox, withdraws what is
	// pending. The first cause of a running phase wins. With Holding it does
	// so only if the open turn has claimed that message.
	Cancel struct {
		Cause     dsh.Cause
		KeepInbox bool
		Holding   dsh.MessageID
	}

	// Maintain begins a maintenance task; only an idle machine takes it.
	Maintain struct{}

	// Append logs a fact that a hook, a tool or a policy has to record.
	Append struct {
		Fact    dsh.Fact
		Surface dsh.SurfaceOp
		Sources *dsh.Sources
	}

	// Continue lets the machine go on from a border between two transitions.
	// The host sends it whenever [Machine.Between] says so, after inputs that
	// observers of the effects just performed have caused.
	Continue struct{}
)

// Nearest is the target of a message that is a turn of its own for an idle
// machine and joins the next step of one that is not.
const Nearest dsh.Target = ""

// Answers.
type (
	// Synced answers [Sync]: the log is durable, or Err says why not.
	Synced struct {
		Pos dsh.Pos
		Err error
	}

	// Admitted answers [Admit]: the step may be entered with Messages.
	Admitted struct {
		Pos      dsh.Pos
		Messages []*dsh.Message
		Prompt   Prompt
	}

	// Refused answers [Admit]: the step may not be entered.
	Refused struct{ Pos dsh.Pos }

	// Prepared answers [Prepare] with the configuration to send, what the
	// adapter filled in and the window of its model. Config is immutable.
	Prepared struct {
		Pos           dsh.Pos
		Config        *dsh.CallConfig
		Defaults      dsh.AdapterDefaults
		ContextWindow int
	}

	// Derived answers [Derive] with the history up to the asked event, which
	// is durable by then, or says why not.
	Derived struct {
		Pos      dsh.Pos
		Messages []*dsh.Message
		Err      error
	}

	// Streamed brings chunks of the open stream, in order. The machine keeps
	// the slice.
	Streamed struct {
		Pos    dsh.Pos
		Chunks []dsh.Chunk
	}

	// StreamEnded answers [OpenStream]: nothing more comes. Err is nil after
	// a stream that ended by itself.
	StreamEnded struct {
		Pos dsh.Pos
		Err error
	}

	// Recovered answers [Recover].
	Recovered struct {
		Pos   dsh.Pos
		Retry bool
	}

	// Settled answers [AskStopping].
	Settled struct{ Pos dsh.Pos }

	// ChildrenSettled answers [AwaitChildren].
	ChildrenSettled struct{ Pos dsh.Pos }

	// HookFailed answers [Admit], [Prepare], [Recover] or [AskStopping]: the
	// chain failed.
	HookFailed struct {
		Pos dsh.Pos
		Err error
	}

	// Classified answers [Classify].
	Classified struct {
		Pos  dsh.Pos
		Call int
		Mode tool.Mode
	}

	// Judged answers [Judge]. Err is the error of a policy.
	Judged struct {
		Pos     dsh.Pos
		Call    int
		Verdict hook.Verdict
		Err     error
	}

	// Ran answers [Run].
	Ran struct {
		Pos     dsh.Pos
		Call    int
		Outcome hook.Outcome
	}

	// Reviewed answers [Review]. Outcome is final.
	Reviewed struct {
		Pos     dsh.Pos
		Call    int
		Outcome hook.Outcome
	}

	// ToolsFailed tells that the tools' plumbing itself is broken: no further
	// call starts, running ones are waited for, the turn ends in an error.
	ToolsFailed struct {
		Pos dsh.Pos
		Err error
	}

	// Maintained answers [RunMaintenance].
	Maintained struct{ Pos dsh.Pos }
)

// Prompt is what a step's request says besides its messages.
type Prompt struct {
	System string
	// Err is why the system prompt cannot be rendered; it fails the step.
	Err   error
	Tools []dsh.ToolSchema
	// Context is the runtime context, ordered, without empty sections.
	Context []hook.Section
}

func (Start) isInput()           {}
func (Deliver) isInput()         {}
func (Wake) isInput()            {}
func (Replace) isInput()         {}
func (Remove) isInput()          {}
func (Clear) isInput()           {}
func (Cancel) isInput()          {}
func (Maintain) isInput()        {}
func (Append) isInput()          {}
func (Continue) isInput()        {}
func (Synced) isInput()          {}
func (Admitted) isInput()        {}
func (Refused) isInput()         {}
func (Prepared) isInput()        {}
func (Derived) isInput()         {}
func (Streamed) isInput()        {}
func (StreamEnded) isInput()     {}
func (Recovered) isInput()       {}
func (Settled) isInput()         {}
func (ChildrenSettled) isInput() {}
func (HookFailed) isInput()      {}
func (Classified) isInput()      {}
func (Judged) isInput()          {}
func (Ran) isInput()             {}
func (Reviewed) isInput()        {}
func (ToolsFailed) isInput()     {}
func (Maintained) isInput()      {}

// position returns the position that an answer carries; ok is false for
// commands and for Continue.
func position(in Input) (pos dsh.Pos, ok bool) {
	switch in := in.(type) {
	case Synced:
		return in.Pos, true
	case Admitted:
		return in.Pos, true
	case Refused:
		return in.Pos, true
	case Prepared:
		return in.Pos, true
	case Derived:
		return in.Pos, true
	case Streamed:
		return in.Pos, true
	case StreamEnded:
		return in.Pos, true
	case Recovered:
		return in.Pos, true
	case Settled:
		return in.Pos, true
	case ChildrenSettled:
		return in.Pos, true
	case HookFailed:
		return in.Pos, true
	case Classified:
		return in.Pos, true
	case Judged:
		return in.Pos, true
	case Ran:
		return in.Pos, true
	case Reviewed:
		return in.Pos, true
	case ToolsFailed:
		return in.Pos, true
	case Maintained:
		return in.Pos, true
	case Start, Deliver, Wake, Replace, Remove, Clear, Cancel, Maintain, Append, Continue:
	}
	return dsh.Pos{}, false
}
