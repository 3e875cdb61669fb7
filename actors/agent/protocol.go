package agent

import (
	"context"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
)

// Messages the agent accepts. Whoever waits for a reply must also watch the
// handle's Gone channel: an agent that stops answers nobody any more. Reply
// channels need room for one value.
type (
	// Do applies commands, one after the other and with nothing in between:
	// no answer of a hook, a model or a tool is looked at before the last.
	// Commands are the loop's: Deliver, Replace, Remove, Clear, Cancel and
	// Append. A refused one does not keep the others from being applied.
	Do struct {
		Commands []loop.Input
		Reply    chan<- Done
		// Outcome, if set, gets what becomes of the message that the first
		// command delivers.
		Outcome chan<- Outcome
	}

	// Maintain runs a task while the agent is idle; the reply is the task's
	// error or loop.ErrBusy.
	Maintain struct {
		Task  func(ctx context.Context) error
		Reply chan<- error
	}

	// WaitIdle asks to be told when neither a turn nor maintenance is open.
	WaitIdle struct{ Reply chan<- struct{} }

	// Unwait withdraws a WaitIdle.
	Unwait struct{ Reply chan<- struct{} }

	// Inspect asks for the agent's state.
	Inspect struct{ Reply chan<- State }

	// Subscribe asks for the agent's notices. One that finds the channel full
	// is lost to it.
	Subscribe struct{ Notices chan<- hook.Notice }

	// Unsubscribe withdraws a Subscribe.
	Unsubscribe struct{ Notices chan<- hook.Notice }

	// Retire stops the agent, as Dispose does, as soon as it is quiet: no turn
	// is open, nothing that would open one is pending and no child works in
	// the background. There is no reply; the handle tells that it is gone.
	Retire struct{ KeepInbox bool }

	// Nudge lets an agent that is to retire look again.
	Nudge struct{}

	// Passivate asks the agent to stop, as if it were asleep, if it is quiet and
	// its log has not grown behind Next: no turn or task is open, nobody waits
	// for anything and no child works. Nothing is logged and nobody is told.
	// Messages that come too late are not taken; the handle says so (see
	// [Handle.Rested]).
	Passivate struct {
		Next  dsh.Seq
		Reply chan<- Passivated
	}

	// Dispose cancels what runs, waits for everything that was started,
	// closes the session and stops the agent. The reply is the session's.
	Dispose struct {
		KeepInbox bool
		Reply     chan<- error
	}
)

// Messages the agent sends.
type (
	// Done answers [Do]: why each command was refused, or nil, and the
	// number of the next event when the last one had been applied.
	Done struct {
		Errs []error
		Next dsh.Seq
	}

	// Outcome tells what became of a message: the end of the turn that
	// claimed it, or that it was discarded.
	Outcome struct {
		Turn      int
		Ending    dsh.Ending
		Usage     dsh.Usage
		Answer    *dsh.Message
		Discarded bool
	}

	// Passivated answers [Passivate]: whether the agent stops, what of its life
	// the log does not tell (see loop.Config), and whether input is pending.
	Passivated struct{ OK, Requested, Pending bool }

	// State is a snapshot of an agent.
	State struct {
		Status   hook.Status
		LastTurn int
		Next     dsh.Seq
		Inbox    dsh.Inbox
		Surface  []dsh.Seq
		Messages []*dsh.Message
	}
)

// answer is what a goroutine that the agent started sends back.
type answer struct{ input loop.Input }

// maintained is the answer of a maintenance task.
type maintained struct {
	pos   dsh.Pos
	err   error
	reply chan<- error
}

// Err returns the first error of a Done.
func (d Done) Err() error {
	for _, err := range d.Errs {
		if err != nil {
			return err
		}
	}
	return nil
}
