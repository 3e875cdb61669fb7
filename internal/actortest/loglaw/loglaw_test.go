package loglaw_test

import (
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/actortest/loglaw"
)

// A law that nothing can break proves nothing: each is broken once here.
func TestLawsCatchBreaches(t *testing.T) {
	answer := dsh.Event{Surface: dsh.Append, Sources: dsh.Cite(), Data: dsh.AssistantMessage{
		Turn: 1, Step: 1, Message: &dsh.Message{Role: dsh.RoleAssistant, Content: []dsh.Block{
			dsh.ToolCall{ID: "a"}, dsh.ToolCall{ID: "b"},
		}},
	}}
	call := func(id dsh.CallID) dsh.Event {
		return dsh.Event{Data: dsh.ToolStarted{Turn: 1, Step: 1, CallID: id}}
	}
	result := func(id dsh.CallID, cites ...dsh.Seq) dsh.Event {
		return dsh.Event{Surface: dsh.Append, Sources: dsh.Cite(cites...), Data: dsh.ToolFinished{
			Turn: 1, Step: 1, Message: &dsh.Message{Role: dsh.RoleUser, Content: []dsh.Block{dsh.ToolResult{CallID: id}}},
		}}
	}
	fact := func(f dsh.Fact) dsh.Event { return dsh.Event{Data: f} }
	turn, step := fact(dsh.TurnStart{Turn: 1}), fact(dsh.StepStart{Turn: 1, Step: 1})
	stepEnd := fact(dsh.StepEnd{Turn: 1, Step: 1})
	turnEnd := fact(dsh.TurnEnd{Turn: 1, Reason: dsh.Ending{Kind: dsh.EndCompleted}})

	for _, c := range []struct {
		name, want string
		log        []dsh.Event
	}{
		{"good", "", []dsh.Event{turn, step, answer, call("a"), call("b"), result("a", 3), result("b", 4), stepEnd, turnEnd}},
		{"turn skipped", "law 2", []dsh.Event{fact(dsh.TurnStart{Turn: 2})}},
		{"turn in turn", "law 2", []dsh.Event{turn, fact(dsh.TurnStart{Turn: 2})}},
		{"step outside", "law 2", []dsh.Event{step}},
		{"turn ends in step", "law 2", []dsh.Event{turn, step, turnEnd}},
		{"open at the end", "law 2", []dsh.Event{turn}},
		{"call order", "law 3", []dsh.Event{turn, step, answer, call("b")}},
		{"result order", "law 3", []dsh.Event{turn, step, answer, call("a"), call("b"), result("b", 4)}},
		{"wrong citation", "law 3", []dsh.Event{turn, step, answer, call("a"), call("b"), result("a", 4)}},
		{"result missing", "law 3", []dsh.Event{turn, step, answer, call("a"), result("a", 3), stepEnd}},
		{"result twice", "law 3", []dsh.Event{turn, step, answer, call("a"), result("a", 3), result("a", 3)}},
		{"result without call", "law 3", []dsh.Event{turn, step, answer, result("a")}},
		{"two answers", "law 4", []dsh.Event{turn, step, answer, answer}},
		{"no cause", "law 5", []dsh.Event{turn, fact(dsh.TurnEnd{Turn: 1, Reason: dsh.Ending{Kind: dsh.EndAborted}})}},
		{"splice", "law 6", []dsh.Event{fact(dsh.InboxSpliced{Target: dsh.NextStep, Removed: 1})}},
		{"surface", "law 7", []dsh.Event{fact(dsh.UserMessage{Message: dsh.UserText("x")})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.log {
				c.log[i].Seq = dsh.Seq(i)
			}
			err := loglaw.Check(c.log)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
