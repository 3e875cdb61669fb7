package brackets

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Brackets is what is open in a log. The zero value is that of an empty one.
type Brackets struct {
	// Turn and Step are open; 0 for none.
	Turn, Step int

	turns, steps int // the last that began, steps of the open turn
}

// Odd returns what is odd about an event that is next, or "". Of events that
// belong into a step it looks at those for which [Brackets.Outside] is asked here:
// a step's end, an answer, a call and a result.
func (b *Brackets) Odd(ev *dsh.Event) string {
	switch d := ev.Data.(type) {
	case dsh.TurnStart:
		switch {
		case b.Turn != 0:
			return fmt.Sprintf("turn %d starts inside turn %d", d.Turn, b.Turn)
		case d.Turn != b.turns+1:
			return fmt.Sprintf("turn %d starts where turn %d is next", d.Turn, b.turns+1)
		}
	case dsh.TurnEnd:
		switch {
		case b.Turn != d.Turn:
			return fmt.Sprintf("turn %d ends and %s is open", d.Turn, b.turn())
		case b.Step != 0:
			return fmt.Sprintf("turn %d ends and its step %d does not", d.Turn, b.Step)
		}
	case dsh.StepStart:
		switch {
		case b.Turn == 0 || b.Turn != d.Turn:
			return fmt.Sprintf("step %d.%d starts and %s is open", d.Turn, d.Step, b.turn())
		case b.Step != 0:
			return fmt.Sprintf("step %d.%d starts inside step %d", d.Turn, d.Step, b.Step)
		case d.Step != b.steps+1:
			return fmt.Sprintf("step %d.%d starts where step %d is next", d.Turn, d.Step, b.steps+1)
		}
	case dsh.StepEnd:
		return b.Outside(ev, d.Turn, d.Step)
	case dsh.AssistantMessage:
		return b.fresh(ev, d.Turn, d.Step)
	case dsh.ToolStarted:
		return b.fresh(ev, d.Turn, d.Step)
	case dsh.ToolFinished:
		return b.fresh(ev, d.Turn, d.Step)
	default: // opens and closes nothing
	}
	return ""
}

// fresh is Outside but for an old event that was shortened, which may be anywhere.
func (b *Brackets) fresh(ev *dsh.Event, turn, step int) string {
	if ev.Surface.Kind == dsh.SurfaceReplace {
		return ""
	}
	return b.Outside(ev, turn, step)
}

// Outside returns what is odd about an event that belongs into a step, or "" if
// that is open.
func (b *Brackets) Outside(ev *dsh.Event, turn, step int) string {
	switch {
	case b.Step == 0:
		return fmt.Sprintf("%s of step %d.%d, and no step is open", ev.Type(), turn, step)
	case turn != b.Turn || step != b.Step:
		return fmt.Sprintf("%s of step %d.%d in step %d.%d", ev.Type(), turn, step, b.Turn, b.Step)
	}
	return ""
}

// turn names the open turn.
func (b *Brackets) turn() string {
	if b.Turn == 0 {
		return "no turn"
	}
	return fmt.Sprintf("turn %d", b.Turn)
}

// Apply opens and closes what an event does, odd or not.
func (b *Brackets) Apply(ev *dsh.Event) {
	switch d := ev.Data.(type) {
	case dsh.TurnStart:
		*b = Brackets{Turn: d.Turn, turns: d.Turn}
	case dsh.TurnEnd:
		b.Turn, b.Step = 0, 0
	case dsh.StepStart:
		b.Turn, b.Step, b.steps = d.Turn, d.Step, d.Step
	case dsh.StepEnd:
		b.Step = 0
	default: // opens and closes nothing
	}
}
