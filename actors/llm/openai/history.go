package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
	goopenai "github.com/sashabaranov/go-openai"
)

// Texts that stand for what the wire cannot carry.
const (
	noOutput      = "(no output)"
	noErrorOutput = "(error without output)"
	imageOmitted  = "[image omitted: not in a form that this endpoint takes]"
	emptyCallID   = "call"
)

// wireMessage is a message as servers want it: content is never absent and
// never null. Content is a string or a list of parts.
type wireMessage struct {
	Role       string            `json:"role"`
	Content    any               `json:"content"`
	Reasoning  *string           `json:"reasoning_content,omitempty"`
	ToolCalls  []wireCall        `json:"tool_calls,omitempty"`
	ToolCallID string            `json:"tool_call_id,omitempty"`
	Details    []json.RawMessage `json:"reasoning_details,omitempty"`
	Extra      json.RawMessage   `json:"extra_content,omitempty"`
}

type wireCall struct {
	ID       string           `json:"id"`
	Type     string           `json:"type"`
	Function wireCallFunction `json:"function"`
	Extra    json.RawMessage  `json:"extra_content,omitempty"`
}

type wireCallFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type wirePart struct {
	Type     string          `json:"type"`
	Text     string          `json:"text,omitempty"`
	ImageURL json.RawMessage `json:"image_url,omitempty"`
}

// wireMessages maps the system text and the history. How a message is written
// depends on nothing behind it, so a longer history begins with a shorter one.
func wireMessages(d Dialect, req *dsh.Request) []wireMessage {
	out := make([]wireMessage, 0, len(req.Messages)+1)
	if req.Header.System != "" {
		out = append(out, wireMessage{Role: goopenai.ChatMessageRoleSystem, Content: req.Header.System})
	}
	for _, m := range req.Messages {
		switch m.Role {
		case dsh.RoleAssistant:
			out = appendAssistant(out, d, m, replayOf(req.Header, m))
		case dsh.RoleSystem:
			out = appendSaid(out, goopenai.ChatMessageRoleSystem, m.Content)
		default:
			out = appendResults(out, m.Content)
			out = appendSaid(out, goopenai.ChatMessageRoleUser, m.Content)
		}
	}
	return out
}

// appendAssistant sends back what the model said. Reasoning goes back as it
// came, except to OpenAI, which never sends any. DeepSeek wants the member on
// each message with calls, also where it sent none. A message that would be
// empty is left out.
func appendAssistant(out []wireMessage, d Dialect, m *dsh.Message, back replayState) []wireMessage {
	w := wireMessage{
		Role: goopenai.ChatMessageRoleAssistant, Content: dsh.TextOf(m.Content),
		Details: back.ReasoningDetails, Extra: back.ExtraContent,
	}
	var reasoning string
	for _, b := range m.Content {
		switch b := b.(type) {
		case dsh.Reasoning:
			reasoning += b.Text
		case dsh.ToolCall:
			w.ToolCalls = append(w.ToolCalls, wireCall{
				ID:       callID(b.ID),
				Type:     string(goopenai.ToolTypeFunction),
				Function: wireCallFunction{b.Name, wireArguments(b.Arguments)},
				Extra:    back.Calls[string(b.ID)],
			})
		default: // the text is taken as a whole; nothing else is an assistant's
		}
	}
	if d != DialectOpenAI && (reasoning != "" || d == DialectDeepSeek && len(w.ToolCalls) > 0) {
		w.Reasoning = &reasoning
	}
	if w.Content == "" && len(w.ToolCalls) == 0 && w.Reasoning == nil && len(w.Details) == 0 {
		return out
	}
	return append(out, w)
}

// wireArguments returns the arguments of an earlier call. Several servers
// parse them and refuse the history if they are no object.
func wireArguments(arguments string) string {
	if !isObject([]byte(arguments)) {
		return "{}"
	}
	return arguments
}

// appendResults writes one tool message per result.
func appendResults(out []wireMessage, content []dsh.Block) []wireMessage {
	for _, b := range content {
		r, ok := b.(dsh.ToolResult)
		if !ok {
			continue
		}
		out = append(out, wireMessage{
			Role:       goopenai.ChatMessageRoleTool,
			Content:    resultText(r),
			ToolCallID: callID(r.CallID),
		})
	}
	return out
}

func resultText(r dsh.ToolResult) string {
	text := joinText(r.Content)
	switch {
	case text != "":
		return text
	case r.IsError:
		return noErrorOutput
	}
	return noOutput
}

// appendSaid writes the text and images of a user or the system, as a plain
// string if there is no image.
func appendSaid(out []wireMessage, role string, content []dsh.Block) []wireMessage {
	var parts []wirePart
	images := false
	for _, b := range content {
		switch b := b.(type) {
		case dsh.Text:
			if b.Text != "" {
				parts = append(parts, wirePart{Type: string(goopenai.ChatMessagePartTypeText), Text: b.Text})
			}
		case dsh.Image:
			p, ok := imagePart(b)
			images = images || ok
			parts = append(parts, p)
		default: // not a user's
		}
	}
	switch {
	case len(parts) == 0:
		return out
	case images:
		return append(out, wireMessage{Role: role, Content: parts})
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Text
	}
	return append(out, wireMessage{Role: role, Content: strings.Join(texts, "\n")})
}

// imagePart returns an image that holds an OpenAI-shaped payload as it came,
// and a text in place of any other.
func imagePart(img dsh.Image) (p wirePart, ok bool) {
	var payload struct {
		ImageURL json.RawMessage `json:"image_url"`
	}
	if json.Unmarshal(img.Raw, &payload) == nil && isImageURL(payload.ImageURL) {
		return wirePart{Type: string(goopenai.ChatMessagePartTypeImageURL), ImageURL: payload.ImageURL}, true
	}
	return wirePart{Type: string(goopenai.ChatMessagePartTypeText), Text: imageOmitted}, false
}

func isImageURL(raw json.RawMessage) bool {
	var u struct {
		URL string `json:"url"`
	}
	return json.Unmarshal(raw, &u) == nil && u.URL != ""
}

// joinText returns the text of a result's blocks, one per line; tool messages
// carry no images.
func joinText(content []dsh.Block) string {
	var texts []string
	for _, b := range content {
		switch b := b.(type) {
		case dsh.Text:
			texts = append(texts, b.Text)
		case dsh.Image:
			texts = append(texts, imageOmitted)
		default: // not part of a result
		}
	}
	return strings.Join(texts, "\n")
}

// callID returns an ID that is not empty: servers fail on null ones.
func callID(id dsh.CallID) string {
	if id == "" {
		return emptyCallID
	}
	return string(id)
}

// isObject reports whether b is one JSON object.
func isObject(b []byte) bool {
	b = bytes.TrimSpace(b)
	return len(b) >= 2 && b[0] == '{' && b[len(b)-1] == '}' && json.Valid(b)
}
