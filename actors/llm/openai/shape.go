package openai

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// maxShape bounds the shape of a request in a failure: in messages, of which
// the last are told, and in bytes.
const (
	maxShape      = 24
	maxShapeBytes = 700
)

// shapeOf describes a request that was refused, without any of its content:
// what a server dislikes is mostly which message follows which, and the
// indexes are those that servers name.
func (s *settings) shapeOf(req *dsh.Request, bytes int) string {
	messages := wireMessages(s.Dialect, req)
	var b strings.Builder
	fmt.Fprintf(&b, "%d messages, %d tools, %d bytes", len(messages), len(req.Header.Tools), bytes)
	first := max(0, len(messages)-maxShape)
	sep := ":"
	if first > 0 {
		sep = ": …"
	}
	for i := first; i < len(messages); i++ {
		b.WriteString(sep + " " + strconv.Itoa(i) + " " + messages[i].shape())
		sep = ","
	}
	return b.String()
}

func (m *wireMessage) shape() string {
	out := m.Role
	if text, ok := m.Content.(string); ok && text == "" {
		out += " empty"
	}
	if _, parts := m.Content.([]wirePart); parts {
		out += " parts"
	}
	if m.Reasoning != nil {
		out += " reasoning"
	}
	for i, c := range m.ToolCalls {
		if i == 0 {
			out += " calls"
		}
		out += " " + c.ID
	}
	if m.ToolCallID != "" {
		out += " " + m.ToolCallID
	}
	return out
}
