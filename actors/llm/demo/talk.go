package demo

import (
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A talk is what the history of a request tells the demo.
type talk struct {
	// spoken says that the demo has said something before.
	spoken bool
	// prompts are the user's since the last answer, and calls what was done
	// for them.
	prompts []string
	calls   []call
	// before is the exchange before this one.
	before struct {
		prompts []string
		calls   []call
	}
	// added is what others than the user put in last.
	added string
}

// A call is one tool call of the history with its result.
type call struct {
	dsh.ToolCall
	answered bool
	failed   bool
	result   string
}

// cancelled is in the result of every call that an abort ended.
const cancelled = "the turn was cancelled"

// listen reads a history.
func listen(messages []*dsh.Message) *talk {
	t := &talk{}
	for _, m := range messages {
		if m.Role == dsh.RoleAssistant {
			t.answer(m)
			continue
		}
		if m.Role == dsh.RoleUser {
			t.hear(m)
		}
	}
	if len(t.prompts) == 0 && t.added != "" {
		t.prompts = []string{t.added}
	}
	return t
}

// answer takes note of what the model said. An answer without calls ends an
// exchange.
func (t *talk) answer(m *dsh.Message) {
	open := false
	for _, b := range m.Content {
		switch b := b.(type) {
		case dsh.Text:
			t.spoken = t.spoken || b.Text != ""
		case dsh.ToolCall:
			t.calls = append(t.calls, call{ToolCall: b})
			open = true
		default:
		}
	}
	if !open {
		t.settle()
	}
}

func (t *talk) settle() {
	t.before.prompts, t.before.calls = t.prompts, append(t.before.calls, t.calls...)
	t.prompts, t.calls, t.added = nil, nil, ""
}

// hear takes note of a user-role message. What comes behind an abort is a new
// exchange, unlike what was steered into one that goes on.
func (t *talk) hear(m *dsh.Message) {
	for _, b := range m.Content {
		if r, ok := b.(dsh.ToolResult); ok {
			t.attach(r)
			return
		}
	}
	text := strings.TrimSpace(dsh.TextOf(m.Content))
	if text == "" {
		return
	}
	if _, plugin := m.Source.(dsh.PluginSource); plugin {
		t.added = text
		return
	}
	for _, c := range t.calls {
		if c.failed && strings.Contains(c.result, cancelled) {
			t.settle()
			break
		}
	}
	t.prompts = append(t.prompts, text)
}

// attach gives a result to the last call with its ID.
func (t *talk) attach(r dsh.ToolResult) {
	for i := len(t.calls) - 1; i >= 0; i-- {
		if c := &t.calls[i]; c.ID == r.CallID && !c.answered {
			c.answered, c.failed, c.result = true, r.IsError, dsh.TextOf(r.Content)
			return
		}
	}
}

// done returns the call that was made for the wish of this key.
func (t *talk) done(key string) (call, bool) {
	for _, c := range t.calls {
		if strings.HasSuffix(string(c.ID), "-"+key) && strings.HasPrefix(string(c.ID), idPrefix) {
			return c, true
		}
	}
	return call{}, false
}
