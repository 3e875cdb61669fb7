// Package verify folds a session log as whoever continues the session does, and
// says what would keep them from it and what else is odd. It reads events only:
// where they come from is their store's affair.
package verify

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/brackets"
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

// A Fold folds events. The zero value has seen none.
type Fold struct {
	// Inherited is how many events were copied from another session, whose
	// pending input is not this one's.
	Inherited dsh.Seq

	next     dsh.Seq
	history  dsh.History
	inbox    dsh.Inbox
	brackets brackets.Brackets
	open     []dsh.Event // of the open turn, chunks left out but for the last
	findings []Finding
}

// Apply folds an event, packed or not. An error says why a log that goes on with
// it cannot be continued: its number is not due, its type is unknown, or it
// contradicts what came before. The event does not count then.
func (f *Fold) Apply(ev *dsh.Event) error {
	if ev.Seq != f.next {
		return fmt.Errorf("event %d where %d is due", ev.Seq, f.next)
	}
	if err := dsh.CheckKnown(ev); err != nil {
		return err
	}
	if err := f.history.Apply(ev); err != nil {
		return fmt.Errorf("event %d: %w", ev.Seq, err)
	}
	if d, ok := ev.Data.(dsh.InboxSpliced); ok && ev.Seq >= f.Inherited {
		if err := f.inbox.Apply(d); err != nil {
			return fmt.Errorf("event %d: %w", ev.Seq, err)
		}
	}
	if odd := f.brackets.Odd(ev); odd != "" && len(f.findings) < maxFindings {
		f.findings = append(f.findings, Finding{ev.Seq, odd})
	}
	f.brackets.Apply(ev)
	f.remember(ev)
	f.next += ev.Span()
	return nil
}

// remember keeps what tells how to close the open turn.
func (f *Fold) remember(ev *dsh.Event) {
	if f.brackets.Turn == 0 {
		f.open = nil
		return
	}
	if n := len(f.open); n > 0 && isChunk(&f.open[n-1]) {
		f.open = f.open[:n-1]
	}
	f.open = append(f.open, *ev)
}

func isChunk(ev *dsh.Event) bool {
	switch ev.Data.(type) {
	case dsh.AssistantChunk, dsh.ChunkRun:
		return true
	default:
		return false
	}
}

// Next returns the number of the event behind the last.
func (f *Fold) Next() dsh.Seq { return f.next }

// Turn returns the turn that is open, 0 for none.
func (f *Fold) Turn() int { return f.brackets.Turn }

// Closers returns the events that close the open turn, as [dsh.Closers] does.
func (f *Fold) Closers() []dsh.Event { return dsh.Closers(f.open) }

// Findings returns what is odd about the log so far: the first twenty brackets
// that do not nest, and whether strict providers would refuse what a model would
// be sent once the open turn is closed. It ends the fold.
func (f *Fold) Findings() []Finding {
	found := f.findings
	for _, c := range f.Closers() {
		if err := f.history.Apply(&c); err != nil {
			return append(found, Finding{c.Seq, "the open turn cannot be closed: " + err.Error()})
		}
	}
	if err := dsh.CheckRequest(f.history.Messages()); err != nil {
		found = append(found, Finding{f.next, "a strict provider would refuse the history: " + err.Error()})
	}
	return found
}
