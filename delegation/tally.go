package delegation

import (
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Tally folds the events of one life of a child into how it ended. The zero
// value has seen none.
//
// The last turn that consumed work decides: one that reached a step, or that
// claimed input and did not end completed. A turn that found nothing to do does
// not count.
type Tally struct {
	turns   int
	last    dsh.Ending
	dropped bool // input was withdrawn that no turn had taken
	worked  bool // the open turn reached a step
	claimed bool // the open turn took input
	usage   dsh.Usage
	output  []dsh.Block
	text    strings.Builder // streamed since the last message
}

// Add folds one event, packed or not.
func (t *Tally) Add(ev *dsh.Event) {
	switch d := ev.Data.(type) {
	case dsh.TurnStart:
		t.worked, t.claimed = false, false
	case dsh.InboxSpliced:
		switch {
		case d.Removed == 0:
		case d.Outcome == dsh.OutcomeCanceled:
			t.dropped = t.dropped || d.Target == dsh.NextTurn && len(d.Inserted) == 0
		default:
			t.claimed = true
		}
	case dsh.StepStart:
		t.worked, t.dropped = true, false
	case dsh.ChunkRun:
		for _, c := range d.Chunks {
			t.chunk(c)
		}
	case dsh.AssistantChunk:
		t.chunk(d.Chunk)
	case dsh.AssistantMessage:
		if d.Usage != nil {
			t.usage = t.usage.Add(*d.Usage)
		}
		if len(d.Message.Content) > 0 {
			t.output = d.Message.Content
		}
	case dsh.TurnEnd:
		if t.worked || t.claimed && d.Reason.Kind != dsh.EndCompleted {
			t.turns++
			t.last = d.Reason
		}
	default:
	}
}

func (t *Tally) chunk(c dsh.Chunk) {
	if d, ok := c.(dsh.TextDelta); ok && t.output == nil {
		t.text.WriteString(d.Text)
	}
}

// Outcome returns how the life ended that the events tell of. Quiet is the
// outcome of one in which nothing was asked of the child.
func (t *Tally) Outcome(quiet OutcomeKind) Outcome {
	o := Outcome{Kind: quiet, Turns: t.turns, Usage: t.usage, Output: t.output}
	if o.Output == nil && t.text.Len() > 0 {
		o.Output = []dsh.Block{dsh.Text{Text: t.text.String()}}
	}
	switch t.last.Kind {
	case dsh.EndCompleted:
		o.Kind = Completed
		if t.dropped {
			o.Kind, o.Cause = Aborted, dsh.Cause{Kind: dsh.CauseParent}
		}
	case dsh.EndMaxTokens:
		o.Kind, o.Limit = Limited, LimitTokens
	case dsh.EndAborted:
		o.Kind, o.Cause = Aborted, t.last.Cause
	case dsh.EndBlocked:
		o.Kind, o.Reason = Rejected, "a hook refused its input"
	case dsh.EndError:
		o.Kind, o.Failure = Failed, t.last.Failure
	case dsh.EndInterrupted:
		o.Kind = Interrupted
	default:
		if t.dropped {
			o.Kind, o.Cause = Aborted, dsh.Cause{Kind: dsh.CauseParent}
		}
	}
	if o.Kind == Failed && o.Failure == nil {
		o.Failure = &dsh.Failure{Code: dsh.CodeUnknown, Message: "it ended without having worked"}
	}
	return o
}
