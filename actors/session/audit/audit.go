// Package audit folds a session log as whoever continues the session does, and
// says what would keep them from it and what else is odd. It reads events only:
// where they come from is their store's affair.
package audit

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// maxFindings bounds how many findings are kept of a log.
const maxFindings = 20

// A Finding is something odd about a log that keeps nobody from continuing it.
type Finding struct {
	// Seq is the event that it is about, or one behind the last.
	Seq dsh.Seq
	// Text says what is odd.
	Text string
}

// An Audit folds events. The zero value has seen none.
type Audit struct {
	// Inherited is how many events were copied from another session, whose
	// pending input is not this one's.
	Inherited dsh.Seq

	next     dsh.Seq
	history  dsh.History
	inbox    dsh.Inbox
	lastTurn int
	turn     int         // open; 0 for none
	step     int         // open; 0 for none
	open     []dsh.Event // of the open turn, chunks left out but for the last
	findings []Finding
}

// Apply folds an event, packed or not. An error says why a log that goes on with
// it cannot be continued: its number is not due, its type is unknown, or it
// contradicts what came before. The event does not count then.
func (a *Audit) Apply(ev *dsh.Event) error {
	if ev.Seq != a.next {
		return fmt.Errorf("event %d where %d is due", ev.Seq, a.next)
	}
	if err := dsh.CheckKnown(ev); err != nil {
		return err
	}
	if err := a.history.Apply(ev); err != nil {
		return fmt.Errorf("event %d: %w", ev.Seq, err)
	}
	if d, ok := ev.Data.(dsh.InboxSpliced); ok && ev.Seq >= a.Inherited {
		if err := a.inbox.Apply(d); err != nil {
			return fmt.Errorf("event %d: %w", ev.Seq, err)
		}
	}
	a.brackets(ev)
	a.remember(ev)
	a.next += ev.Span()
	return nil
}

// remember keeps what tells how to close the open turn.
func (a *Audit) remember(ev *dsh.Event) {
	if a.turn == 0 {
		a.open = nil
		return
	}
	if n := len(a.open); n > 0 && isChunk(&a.open[n-1]) {
		a.open = a.open[:n-1]
	}
	a.open = append(a.open, *ev)
}

func isChunk(ev *dsh.Event) bool {
	switch ev.Data.(type) {
	case dsh.AssistantChunk, dsh.ChunkRun:
		return true
	default:
		return false
	}
}

// brackets follows turns and steps and notes what does not nest.
func (a *Audit) brackets(ev *dsh.Event) {
	switch d := ev.Data.(type) {
	case dsh.TurnStart:
		if a.turn != 0 {
			a.find(ev, "turn %d starts while turn %d is open", d.Turn, a.turn)
		} else if d.Turn != a.lastTurn+1 {
			a.find(ev, "turn %d follows turn %d", d.Turn, a.lastTurn)
		}
		a.turn, a.lastTurn, a.step = d.Turn, d.Turn, 0
	case dsh.TurnEnd:
		if a.turn != d.Turn || a.step != 0 {
			a.find(ev, "turn %d ends in %s", d.Turn, a.where())
		}
		a.turn, a.step = 0, 0
	case dsh.StepStart:
		if a.turn == 0 || a.turn != d.Turn || a.step != 0 {
			a.find(ev, "step %d of turn %d starts in %s", d.Step, d.Turn, a.where())
		}
		a.step = d.Step
	case dsh.StepEnd:
		a.within(ev, d.Turn, d.Step)
		a.step = 0
	case dsh.AssistantMessage:
		a.within(ev, d.Turn, d.Step)
	case dsh.ToolStarted:
		a.within(ev, d.Turn, d.Step)
	case dsh.ToolFinished:
		a.within(ev, d.Turn, d.Step)
	default: // opens and closes nothing
	}
}

// within notes an event that is not in its step.
func (a *Audit) within(ev *dsh.Event, turn, step int) {
	if ev.Surface.Kind() == dsh.SurfaceReplace {
		return // an old one, shortened
	}
	if a.turn != turn || a.step != step || step == 0 {
		a.find(ev, "%s of turn %d, step %d stands in %s", ev.Type(), turn, step, a.where())
	}
}

func (a *Audit) where() string {
	switch {
	case a.turn == 0:
		return "no turn"
	case a.step == 0:
		return fmt.Sprintf("turn %d, outside its steps", a.turn)
	}
	return fmt.Sprintf("turn %d, step %d", a.turn, a.step)
}

func (a *Audit) find(ev *dsh.Event, format string, args ...any) {
	if len(a.findings) < maxFindings {
		a.findings = append(a.findings, Finding{ev.Seq, fmt.Sprintf(format, args...)})
	}
}

// Next returns the number of the event behind the last.
func (a *Audit) Next() dsh.Seq { return a.next }

// Turn returns the turn that is open, 0 for none.
func (a *Audit) Turn() int { return a.turn }

// Closers returns the events that close the open turn, as [dsh.Closers] does.
func (a *Audit) Closers() []dsh.Event { return dsh.Closers(a.open) }

// Findings returns what is odd about the log so far: the first twenty brackets
// that do not nest, and whether strict providers would refuse what a model would
// be sent once the open turn is closed. It ends the fold.
func (a *Audit) Findings() []Finding {
	found := a.findings
	for _, c := range a.Closers() {
		if err := a.history.Apply(&c); err != nil {
			return append(found, Finding{c.Seq, "the open turn cannot be closed: " + err.Error()})
		}
	}
	if err := dsh.CheckRequest(a.history.Messages()); err != nil {
		found = append(found, Finding{a.next, "a strict provider would refuse the history: " + err.Error()})
	}
	return found
}
