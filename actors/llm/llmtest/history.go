package llmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// DeepSeek's words for a bad history.
const (
	textOrphanCall = "An assistant message with 'tool_calls' must be followed by tool messages responding to each " +
		"'tool_call_id'. (insufficient tool messages following tool_calls message)"
	textOrphanResult = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
	textNoReasoning  = "Missing reasoning_content field in the assistant message at message index %d"
)

type historyMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Reasoning  *string         `json:"reasoning_content"`
	ToolCalls  []historyCall   `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

type historyCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
}

// CheckHistory returns what the strictest servers would refuse in a request's
// body, in their words, or nil:
//
//   - an assistant message with calls is followed at once by one tool message
//     for each, and a tool message answers nothing else;
//   - IDs of calls are not empty and differ within a message;
//   - each message has a content that is not null, and that of a tool message
//     is not empty;
//   - arguments are JSON objects;
//   - where thinking is enabled, assistant messages with calls have
//     reasoning_content;
//   - no assistant message is empty.
func CheckHistory(body []byte) error { return checkHistory(body, nil) }

// checkHistory is CheckHistory where the calls in reasoned were answered with
// reasoning, so that it must come back.
func checkHistory(body []byte, reasoned map[string]bool) error {
	var req struct {
		Thinking struct {
			Type string `json:"type"`
		} `json:"thinking"`
		Messages []historyMessage `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return fmt.Errorf("the request is no JSON: %w", err)
	}
	if len(req.Messages) == 0 {
		return errors.New("[] is too short - 'messages'")
	}
	thinking := req.Thinking.Type == "enabled"
	var open []string // calls that wait for their tool message
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.Role == "tool" {
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return errors.New(textOrphanResult) //nolint:staticcheck // the server's words.
			}
			open = slices.Delete(open, at, at+1)
		} else if len(open) > 0 {
			return errors.New(textOrphanCall) //nolint:staticcheck // the server's words.
		}
		if err := m.check(i, thinking, reasoned); err != nil {
			return err
		}
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return errors.New(textOrphanCall) //nolint:staticcheck // the server's words.
	}
	return nil
}

func (m *historyMessage) check(i int, thinking bool, reasoned map[string]bool) error {
	empty := string(m.Content) == `""`
	switch {
	case !slices.Contains([]string{"system", "user", "assistant", "tool"}, m.Role):
		return fmt.Errorf("messages[%d]: unknown role %q", i, m.Role)
	case len(m.Content) == 0 || string(m.Content) == "null":
		return fmt.Errorf("messages[%d]: missing field `content`", i)
	case empty && m.Role == "tool":
		return fmt.Errorf("messages[%d]: the content of a tool message is empty", i)
	case len(m.ToolCalls) > 0 && m.Role != "assistant":
		return fmt.Errorf("messages[%d]: tool_calls in a message of role %q", i, m.Role)
	case m.Role == "assistant" && empty && len(m.ToolCalls) == 0 && (m.Reasoning == nil || *m.Reasoning == ""):
		return fmt.Errorf("messages[%d]: an assistant message without content and tool_calls", i)
	}
	return m.checkCalls(i, thinking, reasoned)
}

func (m *historyMessage) checkCalls(i int, thinking bool, reasoned map[string]bool) error {
	var ids []string
	for _, c := range m.ToolCalls {
		switch {
		case c.ID == "":
			return fmt.Errorf("messages[%d]: a tool call without an id", i)
		case slices.Contains(ids, c.ID):
			return fmt.Errorf("messages[%d]: duplicate tool call id %q", i, c.ID)
		case c.Type != "function":
			return fmt.Errorf("messages[%d]: tool call type %q", i, c.Type)
		case c.Function.Arguments == nil || !isObject(*c.Function.Arguments):
			return fmt.Errorf("messages[%d]: the arguments of tool call %q are no JSON object", i, c.ID)
		case thinking && m.Reasoning == nil, reasoned[c.ID] && (m.Reasoning == nil || *m.Reasoning == ""):
			return fmt.Errorf(textNoReasoning, i) //nolint:staticcheck // the server's words.
		}
		ids = append(ids, c.ID)
	}
	return nil
}

func isObject(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasPrefix(s, "{") && json.Valid(bytes.TrimSpace([]byte(s)))
}
