package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// answer folds the chunks of one stream into dsh's. It has at most one text
// and one reasoning block, since the wire has one field for each, and a block
// per tool call; a block's index is its place in the order in which they
// appeared.
type answer struct {
	options   *Options
	maxTokens int
	tools     bool // the request offered tools

	out       []dsh.Chunk
	blocks    int
	text      *prose
	reasoning *prose
	calls     calls
	think     thinkSplitter

	details  details
	extra    json.RawMessage
	logprobs []json.RawMessage

	finish string // lower case; empty until the server told one
	usage  *dsh.Usage
}

// prose is a text or reasoning block.
type prose struct {
	index int
	text  strings.Builder
}

func newAnswer(o *Options, h *dsh.Header) *answer {
	return &answer{options: o, maxTokens: h.Config.MaxTokens, tools: len(h.Tools) > 0}
}

// add folds one chunk and returns what it adds to the stream. The slice is
// valid until the next call.
func (a *answer) add(c *wireChunk) []dsh.Chunk {
	a.out = a.out[:0]
	a.count(c.Usage)
	for i := range c.Choices {
		choice := &c.Choices[i]
		if choice.Index.n != 0 {
			continue // one was asked for
		}
		a.count(choice.Usage)
		a.addDelta(&choice.Delta)
		a.addDelta(&choice.Message)
		a.logprobs = append(a.logprobs, choice.Logprobs.Content...)
		if reason := choice.Finish.text; reason != "" && reason != "null" {
			a.finish = strings.ToLower(reason)
		}
	}
	return a.out
}

// count takes the newest usage. Servers that send it more than once send the
// sum so far.
func (a *answer) count(u *wireUsage) {
	if u == nil {
		return
	}
	if usage, ok := u.usage(); ok {
		a.usage = &usage
	}
}

func (a *answer) addDelta(d *wireDelta) {
	a.addReasoning(d.reasoningText())
	for _, piece := range d.ReasoningDetails {
		a.details.add(piece)
	}
	if len(d.ExtraContent) > 0 {
		a.extra = json.RawMessage(d.ExtraContent)
	}
	text := d.Content.text
	if a.options.SplitThink {
		var reasoning string
		reasoning, text = a.think.split(text)
		a.addReasoning(reasoning)
	}
	a.addText(text)
	a.addText(d.Refusal.text)
	a.calls.next()
	for _, c := range d.calls() {
		a.addCall(&c)
	}
}

func (a *answer) addText(s string) {
	if s == "" {
		return
	}
	if a.text == nil {
		a.text = &prose{index: a.open(dsh.TextBlock)}
	}
	a.text.text.WriteString(s)
	a.out = append(a.out, dsh.TextDelta{Index: a.text.index, Text: s})
}

func (a *answer) addReasoning(s string) {
	if s == "" {
		return
	}
	if a.reasoning == nil {
		a.reasoning = &prose{index: a.open(dsh.ReasoningBlock)}
	}
	a.reasoning.text.WriteString(s)
	a.out = append(a.out, dsh.ReasoningDelta{Index: a.reasoning.index, Text: s})
}

func (a *answer) addCall(d *wireDeltaCall) {
	call, fresh := a.calls.find(d)
	if fresh {
		call.block = a.open(dsh.ToolCallBlock)
	}
	if len(d.ExtraContent) > 0 {
		call.extra = json.RawMessage(d.ExtraContent)
	}
	name, arguments := call.extend(d)
	if !fresh && name == nil && arguments == "" {
		return
	}
	a.out = append(a.out, dsh.ToolCallDelta{
		Index: call.block, ID: call.id, Name: name, ArgumentsDelta: arguments,
	})
}

// open starts the next block.
func (a *answer) open(kind string) int {
	index := a.blocks
	a.blocks++
	a.out = append(a.out, dsh.BlockStart{Index: index, BlockType: kind})
	return index
}

// end returns the chunks that end the stream, or why the answer is none.
func (a *answer) end() ([]dsh.Chunk, error) {
	a.out = a.out[:0]
	if a.options.SplitThink {
		reasoning, text := a.think.flush()
		a.addReasoning(reasoning)
		a.addText(text)
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	ends := make([]dsh.Chunk, a.blocks)
	if a.text != nil {
		ends[a.text.index] = dsh.BlockEnd{Index: a.text.index, Block: dsh.Text{Text: a.text.text.String()}}
	}
	if a.reasoning != nil {
		ends[a.reasoning.index] = dsh.BlockEnd{
			Index: a.reasoning.index, Block: dsh.Reasoning{Text: a.reasoning.text.String()},
		}
	}
	for _, c := range a.calls.slots {
		ends[c.block] = dsh.BlockEnd{
			Index: c.block, Block: dsh.ToolCall{ID: c.id, Name: c.name, Arguments: string(c.arguments)},
		}
	}
	a.out = append(a.out, ends...)
	if a.usage != nil {
		a.out = append(a.out, *a.usage)
	}
	return append(a.out, dsh.Finish{Reason: dsh.FinishReason{Kind: a.kind()}, ReplayState: a.state()}), nil
}

// check returns why a finished stream is no answer, or nil.
func (a *answer) check() error {
	switch a.finish {
	case "":
		if a.blocks == 0 {
			return emptyResponse("the stream held nothing")
		}
		return fmt.Errorf("%w: [DONE] without a finish reason", errClosed)
	case "content_filter":
		return &dsh.Failure{Code: dsh.CodeContentFilter, Message: "openai: the content filter stopped the answer"}
	case "error", "abort", "insufficient_system_resource":
		return &dsh.Failure{Code: dsh.CodeServer, Message: "openai: the server gave up: finish reason " + a.finish}
	case "length", "max_tokens", "model_length":
		return nil
	}
	switch {
	case a.blocks == 0:
		return emptyResponse("the model said nothing")
	case a.options.RejectReasoningOnly && a.blocks == 1 && a.reasoning != nil:
		return emptyResponse("the model reasoned and said nothing")
	case a.tools && len(a.calls.slots) == 0 && a.text != nil && hasCallMarkup(a.text.text.String()):
		return &dsh.Failure{Code: dsh.CodeTransport, Message: ErrLeakedMarkup.Error(), Cause: ErrLeakedMarkup}
	}
	return nil
}

func emptyResponse(why string) error {
	return &dsh.Failure{Code: dsh.CodeEmptyResponse, Message: "openai: " + why}
}

// kind returns how the stream ended. Calls that are there are calls, whatever
// the server says, unless the answer was cut: servers name a cut answer's end
// tool_calls too, and only the count of tokens gives them away.
func (a *answer) kind() dsh.FinishKind {
	switch a.finish {
	case "length", "max_tokens", "model_length":
		return dsh.FinishMaxTokens
	}
	switch {
	case len(a.calls.slots) == 0:
		return dsh.FinishStop
	case a.maxTokens > 0 && a.usage != nil && a.usage.OutputTokens >= int64(a.maxTokens):
		return dsh.FinishMaxTokens
	}
	return dsh.FinishToolCalls
}
