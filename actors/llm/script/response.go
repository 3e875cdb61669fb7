package script

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf16"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Response is what one request is answered with. It is immutable once a
// provider has it and may be served many times.
type Response []Step

// A Step is one thing that a stream does: [Emit], [Wait], [Hang], [Do],
// [Delay] or [Fail].
//
//sumtype:decl
type Step interface{ isStep() }

// Steps of a response.
type (
	// Emit yields a chunk.
	Emit struct{ Chunk dsh.Chunk }

	// Wait waits until the gate is open. It does not react to an abort.
	Wait struct{ Gate string }

	// Hang waits until the request is aborted, then for the gate if it names
	// one, and fails with the context's error. Nothing follows it.
	Hang struct{ Gate string }

	// Do runs Func on the stream's goroutine with the stream's context.
	Do struct{ Func func(ctx context.Context) }

	// Delay lets time pass. An abort ends it, and the stream with the
	// context's error.
	Delay struct{ For time.Duration }

	// Fail ends the stream with an error: a [*dsh.Failure] for one that an
	// adapter understood. Nothing follows it.
	Fail struct{ Err error }
)

func (Emit) isStep()  {}
func (Wait) isStep()  {}
func (Hang) isStep()  {}
func (Do) isStep()    {}
func (Delay) isStep() {}
func (Fail) isStep()  {}

// An Answer is what a model has to say, in the order of its fields. Each part
// is a block of its own: a start, deltas and an end.
type Answer struct {
	// Reasoning and Text make no block when they are empty.
	Reasoning string
	Text      string
	// Pieces is how many deltas Text is cut into, all but the last of the
	// same length; the default is 1.
	Pieces int
	Calls  []dsh.ToolCall
	// Usage is told before the finish unless it is nil.
	Usage *dsh.Usage
	// Finish defaults to tool-calls if there are calls, else to stop.
	Finish      dsh.FinishKind
	ReplayState json.RawMessage
}

// Response returns the steps that stream the answer.
func (a Answer) Response() Response {
	var r Response
	index := 0
	block := func(blockType string, end dsh.Block, deltas ...dsh.Chunk) {
		r = append(r, Emit{dsh.BlockStart{Index: index, BlockType: blockType}})
		r = append(r, Chunks(deltas...)...)
		r = append(r, Emit{dsh.BlockEnd{Index: index, Block: end}})
		index++
	}
	if a.Reasoning != "" {
		block(dsh.ReasoningBlock, dsh.Reasoning{Text: a.Reasoning}, dsh.ReasoningDelta{Index: index, Text: a.Reasoning})
	}
	if a.Text != "" {
		var deltas []dsh.Chunk
		for _, piece := range cut(a.Text, a.Pieces) {
			deltas = append(deltas, dsh.TextDelta{Index: index, Text: piece})
		}
		block(dsh.TextBlock, dsh.Text{Text: a.Text}, deltas...)
	}
	for _, c := range a.Calls {
		name := c.Name
		block(dsh.ToolCallBlock, c, dsh.ToolCallDelta{Index: index, ID: c.ID, Name: &name, ArgumentsDelta: c.Arguments})
	}
	if a.Usage != nil {
		r = append(r, Emit{*a.Usage})
	}
	return append(r, Emit{dsh.Finish{Reason: dsh.FinishReason{Kind: a.finish()}, ReplayState: a.ReplayState}})
}

func (a Answer) finish() dsh.FinishKind {
	switch {
	case a.Finish != "":
		return a.Finish
	case len(a.Calls) > 0:
		return dsh.FinishToolCalls
	}
	return dsh.FinishStop
}

// Text answers with text in so many pieces.
func Text(text string, pieces int) Response {
	return Answer{Text: text, Pieces: pieces}.Response()
}

// Reasoning answers with text after thinking.
func Reasoning(reasoning, text string) Response {
	return Answer{Reasoning: reasoning, Text: text}.Response()
}

// Calls answers with tool calls.
func Calls(calls ...dsh.ToolCall) Response {
	return Answer{Calls: calls}.Response()
}

// MaxTokens answers with text that the output cap cut off.
func MaxTokens(text string) Response {
	return Answer{Text: text, Finish: dsh.FinishMaxTokens}.Response()
}

// Error finishes with a failure after the given chunks. It is a failure that
// the stream reports; [Fail] is one of the adapter.
func Error(failure *dsh.Failure, after ...dsh.Chunk) Response {
	reason := dsh.FinishReason{Kind: dsh.FinishError, Failure: failure}
	return append(Chunks(after...), Emit{dsh.Finish{Reason: reason}})
}

// Chunks emits chunks as they are.
func Chunks(chunks ...dsh.Chunk) Response {
	r := make(Response, 0, len(chunks)+1)
	for _, c := range chunks {
		r = append(r, Emit{c})
	}
	return r
}

// cut splits text into at most n pieces of equal length, the last one shorter.
// Lengths are in UTF-16 units, as the authors of scenarios count them, but a
// character is never split.
func cut(text string, n int) []string {
	units := 0
	for _, r := range text {
		units += utf16.RuneLen(r)
	}
	if n < 2 || units < 2 {
		return []string{text}
	}
	size := (units + n - 1) / n
	var pieces []string
	start, filled := 0, 0
	for i, r := range text {
		if filled >= size {
			pieces = append(pieces, text[start:i])
			start, filled = i, 0
		}
		filled += utf16.RuneLen(r)
	}
	return append(pieces, text[start:])
}
