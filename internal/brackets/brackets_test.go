package brackets_test

import (
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/brackets"
)

// fold returns what is odd about the last of some facts, and what is open then.
func fold(facts ...dsh.Fact) (odd string, b brackets.Brackets) {
	for _, fact := range facts {
		ev := dsh.Event{Data: fact}
		odd = b.Odd(&ev)
		b.Apply(&ev)
	}
	return odd, b
}

func TestOdd(t *testing.T) {
	turn, step := dsh.TurnStart{Turn: 1}, dsh.StepStart{Turn: 1, Step: 1}
	for _, tt := range []struct {
		facts      []dsh.Fact
		odd        string
		turn, step int // open behind it
	}{
		{[]dsh.Fact{turn}, "", 1, 0},
		{[]dsh.Fact{turn, turn}, "turn 1 starts inside turn 1", 1, 0},
		{[]dsh.Fact{dsh.TurnStart{Turn: 3}}, "turn 3 starts where turn 1 is next", 3, 0},
		{[]dsh.Fact{turn, step, dsh.StepEnd{Turn: 1, Step: 1}, dsh.TurnEnd{Turn: 1}, dsh.TurnStart{Turn: 2}}, "", 2, 0},
		{[]dsh.Fact{dsh.TurnEnd{Turn: 1}}, "turn 1 ends and no turn is open", 0, 0},
		{[]dsh.Fact{turn, dsh.TurnEnd{Turn: 2}}, "turn 2 ends and turn 1 is open", 0, 0},
		{[]dsh.Fact{turn, step, dsh.TurnEnd{Turn: 1}}, "turn 1 ends and its step 1 does not", 0, 0},
		{[]dsh.Fact{step}, "step 1.1 starts and no turn is open", 1, 1},
		{[]dsh.Fact{turn, step, step}, "step 1.1 starts inside step 1", 1, 1},
		{[]dsh.Fact{turn, dsh.StepStart{Turn: 1, Step: 2}}, "step 1.2 starts where step 1 is next", 1, 2},
		{[]dsh.Fact{turn, step, dsh.StepEnd{Turn: 1, Step: 2}}, "step/end of step 1.2 in step 1.1", 1, 0},
		{[]dsh.Fact{turn, dsh.AssistantMessage{Turn: 1, Step: 1}}, "assistant/message of step 1.1, and no step is open", 1, 0},
		{[]dsh.Fact{turn, step, dsh.ToolStarted{Turn: 1, Step: 1}}, "", 1, 1},
		{[]dsh.Fact{turn, step, dsh.ToolFinished{Turn: 2, Step: 1}}, "tool/result of step 2.1 in step 1.1", 1, 1},
	} {
		if odd, b := fold(tt.facts...); odd != tt.odd || b.Turn != tt.turn || b.Step != tt.step {
			t.Errorf("%+v: %q, %+v; want %+v", tt.facts, odd, b, tt)
		}
	}
	var b brackets.Brackets
	old := dsh.Event{Data: dsh.ToolFinished{Turn: 1, Step: 1}, Surface: dsh.SurfaceOp{Kind: dsh.SurfaceReplace}}
	if odd := b.Odd(&old); odd != "" {
		t.Errorf("an old result that was shortened: %s", odd)
	}
}

// In a sound log nothing is odd and nothing stays open.
func TestSound(t *testing.T) {
	var b brackets.Brackets
	for _, ev := range sessiontest.Turn(1, 0) {
		if odd := b.Odd(&ev); odd != "" {
			t.Errorf("event %d: %s", ev.Seq, odd)
		}
		b.Apply(&ev)
	}
	if b.Turn != 0 || b.Step != 0 {
		t.Errorf("open: %+v", b)
	}
}
