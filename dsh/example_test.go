package dsh_test

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// The chunks of a stream become the blocks of an answer.
func ExampleAssembler() {
	var a dsh.Assembler
	for _, c := range []dsh.Chunk{
		dsh.BlockStart{Index: 0, BlockType: dsh.TextBlock},
		dsh.TextDelta{Index: 0, Text: "Three "},
		dsh.TextDelta{Index: 0, Text: "lines."},
		dsh.Usage{InputTokens: 40, OutputTokens: 3},
		dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}},
	} {
		a.Add(c)
	}
	fmt.Println(dsh.TextOf(a.Blocks()))
	fmt.Println(a.Usage().OutputTokens, a.Finish().Reason.Kind)
	// Output:
	// Three lines.
	// 3 stop
}

// The events of a log become what the model sees. A replacement shortens it;
// the log itself only grows.
func ExampleHistory() {
	say := func(seq dsh.Seq, text string) *dsh.Event {
		return &dsh.Event{Seq: seq, Surface: dsh.Append, Data: dsh.UserMessage{Message: dsh.UserText(text)}}
	}
	summary := say(2, "Greetings were exchanged.")
	summary.Surface = dsh.Replace(0, 1)
	summary.Sources = dsh.Cite(0, 1)

	var h dsh.History
	for _, ev := range []*dsh.Event{say(0, "Hello."), say(1, "Good day."), summary, say(3, "How are you?")} {
		if err := h.Apply(ev); err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, m := range h.Messages() {
		fmt.Println(dsh.TextOf(m.Content))
	}
	// Output:
	// Greetings were exchanged.
	// How are you?
}

// A log that breaks off inside a turn is completed before it is used again.
func ExampleClosers() {
	call := dsh.ToolCall{ID: "call_1", Name: "deploy", Arguments: "{}"}
	answer := &dsh.Message{Role: dsh.RoleAssistant, Content: []dsh.Block{call}, Source: dsh.ModelSource{}}
	log := []dsh.Event{
		{Seq: 0, Data: dsh.TurnStart{Turn: 1}},
		{Seq: 1, Data: dsh.StepStart{Turn: 1, Step: 1}},
		{Seq: 2, Data: dsh.AssistantMessage{Turn: 1, Step: 1, Message: answer}, Surface: dsh.Append},
		{Seq: 3, Data: dsh.ToolStarted{Turn: 1, Step: 1, CallID: "call_1", Name: "deploy", Arguments: "{}"}},
	}
	for _, ev := range dsh.Closers(log) {
		fmt.Println(ev.Seq, ev.Type())
		if d, ok := ev.Data.(dsh.ToolFinished); ok {
			fmt.Println(" ", d.Error.Code)
		}
	}
	// Output:
	// 4 tool/result
	//   TOOL_OUTCOME_UNKNOWN
	// 5 step/end
	// 6 turn/end
}

// One event is one line of a log.
func ExampleEvent_AppendJSON() {
	ev := dsh.Event{Seq: 1, Time: 1790000000002, Data: dsh.TurnStart{Turn: 1}}
	fmt.Println(string(ev.AppendJSON(nil)))
	// Output:
	// {"type":"turn/start","seq":1,"time":1790000000002,"data":{"turn":1}}
}
