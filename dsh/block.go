package dsh

import "encoding/json"

// A Block is one piece of a message's content: [Text], [Reasoning], [Image],
// [ToolCall] or [ToolResult].
//
//sumtype:decl
type Block interface{ isBlock() }

// Blocks of a message.
type (
	// Text is text that a user wrote or a model answered.
	Text struct{ Text string }

	// Reasoning is the model's thinking, sent back to it unchanged.
	Reasoning struct{ Text string }

	// Image is an image block. Its members are kept as they came, without
	// the type member being interpreted.
	Image struct{ Raw json.RawMessage }

	// ToolCall is a model's wish to run a tool. Arguments is the JSON text
	// exactly as the model wrote it, valid or not.
	ToolCall struct {
		ID        CallID
		Name      string
		Arguments string
	}

	// ToolResult answers one ToolCall. It is the only block of its message.
	ToolResult struct {
		CallID  CallID
		Content []Block
		IsError bool
	}
)

func (Text) isBlock()       {}
func (Reasoning) isBlock()  {}
func (Image) isBlock()      {}
func (ToolCall) isBlock()   {}
func (ToolResult) isBlock() {}

// TextOf concatenates the text blocks of content; other blocks add nothing.
func TextOf(content []Block) string {
	var first string
	var more []byte
	n := 0
	for _, b := range content {
		t, ok := b.(Text)
		if !ok {
			continue
		}
		switch n++; n {
		case 1:
			first = t.Text
		case 2:
			more = append(append(more, first...), t.Text...)
		default:
			more = append(more, t.Text...)
		}
	}
	if n < 2 {
		return first
	}
	return string(more)
}

// CallsOf returns the tool calls of content in order, or nil.
func CallsOf(content []Block) []ToolCall {
	var calls []ToolCall
	for _, b := range content {
		if c, ok := b.(ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}
