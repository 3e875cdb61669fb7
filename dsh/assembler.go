package dsh

import (
	"encoding/json"
	"strconv"
	"strings"
)

// An Assembler folds the chunks of one stream into blocks. It is tolerant:
// deltas without a block start open a block, deltas behind a block end are
// ignored, the first block end wins, and a tool call without an ID becomes
// "call-<index>". Blocks are ordered by the first chunk that names them. The
// zero value is ready to use.
type Assembler struct {
	open     []openBlock
	usage    *Usage
	finish   *Finish
	finished bool
}

// openBlock is a block being folded.
type openBlock struct {
	index int
	kind  string
	text  []byte // text, reasoning or arguments
	id    CallID
	name  string
	final Block // set by the first block end
}

// Add folds one chunk. Chunks behind a finish are ignored.
func (a *Assembler) Add(c Chunk) {
	if a.finished {
		return
	}
	switch c := c.(type) {
	case BlockStart:
		a.block(c.Index, c.BlockType)
	case TextDelta:
		if b := a.block(c.Index, TextBlock); b.final == nil {
			b.text = append(b.text, c.Text...)
		}
	case ReasoningDelta:
		if b := a.block(c.Index, ReasoningBlock); b.final == nil {
			b.text = append(b.text, c.Text...)
		}
	case ToolCallDelta:
		if b := a.block(c.Index, ToolCallBlock); b.final == nil {
			b.addCall(c)
		}
	case BlockEnd:
		if b := a.block(c.Index, blockType(c.Block)); b.final == nil && c.Block != nil {
			b.final = b.named(c.Block)
			b.text = nil
		}
	case Usage:
		a.usage = &c
	case Finish:
		a.finish, a.finished = &c, true
	}
}

// block returns the block with this index, opening one of the kind if there is
// none.
func (a *Assembler) block(index int, kind string) *openBlock {
	for i := range a.open {
		if a.open[i].index == index {
			return &a.open[i]
		}
	}
	a.open = append(a.open, openBlock{index: index, kind: kind, text: make([]byte, 0, 128)})
	return &a.open[len(a.open)-1]
}

func (b *openBlock) addCall(c ToolCallDelta) {
	if b.id == "" {
		b.id = c.ID
	}
	if b.name == "" && c.Name != nil {
		b.name = *c.Name
	}
	b.text = append(b.text, c.ArgumentsDelta...)
}

func blockType(b Block) string {
	switch b.(type) {
	case Text:
		return TextBlock
	case Reasoning:
		return ReasoningBlock
	case ToolCall:
		return ToolCallBlock
	case Image:
		return imageBlock
	case ToolResult:
		return toolResultBlock
	}
	return ""
}

// named returns final with the call ID of the deltas, or one made up from the
// index, where it is a call without one.
func (b *openBlock) named(final Block) Block {
	call, ok := final.(ToolCall)
	if !ok || call.ID != "" {
		return final
	}
	call.ID = b.callID()
	return call
}

// callID returns the ID that the deltas told, or "call-<index>".
func (b *openBlock) callID() CallID {
	if b.id == "" {
		return CallID("call-" + strconv.Itoa(b.index))
	}
	return b.id
}

// Usage returns the last usage told, or nil.
func (a *Assembler) Usage() *Usage { return a.usage }

// Finish returns the finish chunk, or nil if none came.
func (a *Assembler) Finish() *Finish { return a.finish }

// ReplayState returns the finish chunk's replay state, or nil.
func (a *Assembler) ReplayState() json.RawMessage {
	if a.finish == nil {
		return nil
	}
	return a.finish.ReplayState
}

// Blocks returns the folded blocks in order; never nil. A call whose ID an
// earlier call of the same answer already has gets one of its own, so that
// each call can be answered.
func (a *Assembler) Blocks() []Block {
	out := make([]Block, 0, len(a.open))
	for i := range a.open {
		b := a.open[i].value()
		if call, ok := b.(ToolCall); ok {
			b = uniqueCall(call, out)
		}
		if b != nil {
			out = append(out, b)
		}
	}
	return out
}

// uniqueCall returns call under an ID that no call among earlier has.
func uniqueCall(call ToolCall, earlier []Block) ToolCall {
	id := call.ID
	for n := 2; hasCall(earlier, call.ID); n++ {
		call.ID = id + CallID("-"+strconv.Itoa(n))
	}
	return call
}

func hasCall(blocks []Block, id CallID) bool {
	for _, b := range blocks {
		if c, ok := b.(ToolCall); ok && c.ID == id {
			return true
		}
	}
	return false
}

// Prefix returns the text and reasoning blocks folded so far and whether any
// of them holds more than white space. Tool calls are left out: one that is
// not finished must never run.
func (a *Assembler) Prefix() (blocks []Block, worthKeeping bool) {
	blocks = []Block{}
	for i := range a.open {
		switch b := a.open[i].value().(type) {
		case Text:
			blocks = append(blocks, b)
			worthKeeping = worthKeeping || strings.TrimSpace(b.Text) != ""
		case Reasoning:
			blocks = append(blocks, b)
			worthKeeping = worthKeeping || strings.TrimSpace(b.Text) != ""
		default: // not part of the prefix
		}
	}
	return blocks, worthKeeping
}

func (b *openBlock) value() Block {
	if b.final != nil {
		return b.final
	}
	switch b.kind {
	case TextBlock:
		return Text{Text: string(b.text)}
	case ReasoningBlock:
		return Reasoning{Text: string(b.text)}
	case ToolCallBlock:
		return ToolCall{ID: b.callID(), Name: b.name, Arguments: string(b.text)}
	}
	return nil
}
