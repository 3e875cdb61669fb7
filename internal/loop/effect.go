package loop

import (
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// An Effect is what a host must do for a machine: record something (*[Log],
// *[Notify], pointers since there are many of them), ask a question that one
// input answers ([Sync], [Admit], [Prepare], [Derive], [OpenStream], [Recover],
// [AskStopping], [AwaitChildren], [Classify],
// [Judge], [Run], [Review], [RunMaintenance]), pass an abort on ([Abort]) or
// take note of a turn's end ([EndTurn]).
//
//sumtype:decl
type Effect interface{ isEffect() }

// Effects.
type (
	// Log appends events, numbered and in order. They are immutable; what the
	// slice's capacity holds beyond them is the machine's.
	Log struct{ Events []dsh.Event }

	// Notify publishes a live notice.
	Notify struct{ Notice hook.Notice }

	// Sync asks for everything logged so far to be durable.
	Sync struct{ Pos dsh.Pos }

	// Admit asks the prompt and pre-step chains about a step. Config is the
	// configuration in force, for the prompt's variables; it is immutable.
	Admit struct {
		Pos      dsh.Pos
		Messages []*dsh.Message
		Config   *dsh.CallConfig
	}

	// Prepare asks the request chain and the adapter for a configuration. Config
	// is what they start from; it is immutable.
	Prepare struct {
		Pos    dsh.Pos
		Config *dsh.CallConfig
	}

	// Derive asks the session for the history through an event, durable.
	Derive struct {
		Pos     dsh.Pos
		Through dsh.Seq
	}

	// OpenStream asks a model.
	OpenStream struct {
		Pos     dsh.Pos
		Request *dsh.Request
	}

	// Recover asks the request-error chain.
	Recover struct {
		Pos      dsh.Pos
		Provider string
		Failure  *dsh.Failure
		// Content is what the attempt had streamed, Earlier the codes of the
		// step's earlier failures.
		Content []dsh.Block
		Earlier []dsh.Code
	}

	// AskStopping asks the turn-stopping hooks.
	AskStopping struct{ Pos dsh.Pos }

	// AwaitChildren asks for the agent's children to have settled, which the
	// abort of the turn was passed on to.
	AwaitChildren struct{ Pos dsh.Pos }

	// Classify asks for the mode of a call.
	Classify struct {
		Pos   dsh.Pos
		Index int
		Call  dsh.ToolCall
	}

	// Judge asks the pre-execute chain about a call.
	Judge struct {
		Pos   dsh.Pos
		Index int
		Call  dsh.ToolCall
	}

	// Run asks for a call's body to run.
	Run struct {
		Pos   dsh.Pos
		Index int
		Call  dsh.ToolCall
	}

	// Review asks the post-execute chain about an outcome; with Skip only
	// observers see it.
	Review struct {
		Pos     dsh.Pos
		Index   int
		Call    dsh.ToolCall
		Outcome hook.Outcome
		Skip    bool
	}

	// RunMaintenance asks for the maintenance task to run.
	RunMaintenance struct{ Pos dsh.Pos }

	// Abort tells everything that is open at Pos to come to an end.
	Abort struct {
		Pos   dsh.Pos
		Cause dsh.Cause
	}

	// EndTurn tells that a turn is over: nothing is open any more.
	EndTurn struct {
		Turn   int
		Ending dsh.Ending
		// Usage sums the turn's requests, failed attempts too.
		Usage dsh.Usage
		// Answer is the turn's last assistant message with content, or nil.
		Answer *dsh.Message
	}
)

func (*Log) isEffect()           {}
func (*Notify) isEffect()        {}
func (Sync) isEffect()           {}
func (Admit) isEffect()          {}
func (Prepare) isEffect()        {}
func (Derive) isEffect()         {}
func (OpenStream) isEffect()     {}
func (Recover) isEffect()        {}
func (AskStopping) isEffect()    {}
func (AwaitChildren) isEffect()  {}
func (Classify) isEffect()       {}
func (Judge) isEffect()          {}
func (Run) isEffect()            {}
func (Review) isEffect()         {}
func (RunMaintenance) isEffect() {}
func (Abort) isEffect()          {}
func (EndTurn) isEffect()        {}
