package demo

import (
	"math"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// An answer is what one request is answered with.
type answer struct {
	text  string
	calls []dsh.ToolCall
}

// tokenBytes is how many bytes are counted as one token.
const tokenBytes = 4

// budget returns how many bytes of output the request allows.
func budget(req *dsh.Request) int {
	if n := req.Header.Config.MaxTokens; n > 0 && n < math.MaxInt/tokenBytes {
		return n * tokenBytes
	}
	return math.MaxInt
}

// chunks returns the answer as a stream without its usage, cut off behind
// limit bytes.
func (a answer) chunks(limit int) []dsh.Chunk {
	out := &output{left: limit}
	if a.text != "" {
		out.text(a.text)
	}
	for _, c := range a.calls {
		out.call(c)
	}
	reason := dsh.FinishStop
	switch {
	case out.left < 0:
		reason = dsh.FinishMaxTokens
	case len(a.calls) > 0:
		reason = dsh.FinishToolCalls
	}
	return append(out.chunks, dsh.Finish{Reason: dsh.FinishReason{Kind: reason}})
}

// output collects chunks until left is negative.
type output struct {
	chunks []dsh.Chunk
	index  int
	left   int
}

// take reports whether piece still fits.
func (o *output) take(piece string) bool {
	if o.left >= 0 {
		o.left -= len(piece)
	}
	return o.left >= 0
}

func (o *output) text(text string) {
	o.chunks = append(o.chunks, dsh.BlockStart{Index: o.index, BlockType: dsh.TextBlock})
	said := ""
	for _, piece := range pieces(text) {
		if !o.take(piece) {
			break
		}
		said += piece
		o.chunks = append(o.chunks, dsh.TextDelta{Index: o.index, Text: piece})
	}
	o.chunks = append(o.chunks, dsh.BlockEnd{Index: o.index, Block: dsh.Text{Text: said}})
	o.index++
}

func (o *output) call(c dsh.ToolCall) {
	if o.left < 0 {
		return
	}
	o.chunks = append(o.chunks, dsh.BlockStart{Index: o.index, BlockType: dsh.ToolCallBlock})
	name := &c.Name
	for _, piece := range pieces(c.Arguments) {
		if !o.take(piece) {
			return
		}
		o.chunks = append(o.chunks, dsh.ToolCallDelta{Index: o.index, ID: c.ID, Name: name, ArgumentsDelta: piece})
		name = nil
	}
	o.chunks = append(o.chunks, dsh.BlockEnd{Index: o.index, Block: c})
	o.index++
}

// pieces cuts text behind its spaces and line ends, two words at a time, and
// long words by length.
func pieces(text string) []string {
	const longest = 40
	var out []string
	start, words := 0, 0
	for i, r := range text {
		if i-start >= longest {
			out, start, words = append(out, text[start:i]), i, 0
		}
		if r != ' ' && r != '\n' {
			continue
		}
		if words++; words == 2 || r == '\n' {
			out, start, words = append(out, text[start:i+1]), i+1, 0
		}
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

// usage counts a request and its answer. What an earlier request of the turn
// or session has sent counts as read from a cache, as it would be.
func usage(req *dsh.Request, chunks []dsh.Chunk) dsh.Usage {
	head := len(req.Header.System)
	for _, t := range req.Header.Tools {
		head += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	total, sent := head, 0
	for _, m := range req.Messages {
		if m.Role == dsh.RoleAssistant {
			sent = total
		}
		total += size(m.Content)
	}
	output := 0
	for _, c := range chunks {
		switch c := c.(type) {
		case dsh.TextDelta:
			output += len(c.Text)
		case dsh.ToolCallDelta:
			output += len(c.ArgumentsDelta)
		default:
		}
	}
	cached := int64(sent / tokenBytes)
	return dsh.Usage{
		InputTokens:     int64((total+tokenBytes-1)/tokenBytes) - cached,
		OutputTokens:    int64((output + tokenBytes - 1) / tokenBytes),
		CacheReadTokens: &cached,
	}
}

func size(content []dsh.Block) int {
	n := 0
	for _, b := range content {
		switch b := b.(type) {
		case dsh.Text:
			n += len(b.Text)
		case dsh.Reasoning:
			n += len(b.Text)
		case dsh.Image:
			n += len(b.Raw)
		case dsh.ToolCall:
			n += len(b.Name) + len(b.Arguments)
		case dsh.ToolResult:
			n += size(b.Content)
		}
	}
	return n
}

// oneLine returns the first line of text that says something, shortened.
func oneLine(text string, most int) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text = strings.TrimSpace(text)
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}
