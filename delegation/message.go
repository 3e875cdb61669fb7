package delegation

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Kinds of the sources of messages between an agent and its children.
const (
	CoordinatorSource = "coordinator"      // from the parent, to a child at work
	ReportSource      = "subagent-report"  // from a child that goes on
	SettledSource     = "subagent-settled" // of a child that has settled
)

// maxSummary bounds the summary of a notice, in UTF-16 units of plain text.
const maxSummary = 120

// Relay returns a message that one agent hands to another.
func Relay(kind string, sender dsh.SessionID, content ...dsh.Block) *dsh.Message {
	return &dsh.Message{Role: dsh.RoleUser, Content: content, Source: source(kind, "relay", "", sender)}
}

// Report returns the message of a child that reports to its parent.
func Report(child dsh.SessionID, text string) *dsh.Message {
	return Relay(ReportSource, child,
		dsh.Text{Text: fmt.Sprintf("Report from sub-agent %s:", child)}, dsh.Text{Text: text})
}

// Notice returns the message that tells a parent how a child settled.
func Notice(child dsh.SessionID, label string, o Outcome) *dsh.Message {
	name := string(child)
	if label != "" {
		name += " (" + label + ")"
	}
	summary := fmt.Sprintf("Sub-agent %s has settled: it %s.", name, o)
	content := []dsh.Block{dsh.Text{Text: summary}}
	if o.Kind == Interrupted {
		content = append(content, dsh.Text{Text: "What it did until then is kept. If the work is still wanted, send it a message; it goes on from there."})
	}
	said := sayable(o.Output)
	if len(said) == 0 {
		content = append(content, dsh.Text{Text: "It left no message."})
	} else {
		content = append(append(content, dsh.Text{Text: "Its last message:"}), said...)
	}
	return &dsh.Message{
		Role: dsh.RoleUser, Content: content, Source: source(SettledSource, "notice", shorten(summary), child),
	}
}

// sayable returns the blocks that may stand in a user's message: no calls,
// which only an answer may hold, and no reasoning, which is nobody else's.
func sayable(content []dsh.Block) []dsh.Block {
	var kept []dsh.Block
	for _, b := range content {
		switch b.(type) {
		case dsh.Text, dsh.Image:
			kept = append(kept, b)
		default:
		}
	}
	return kept
}

// shorten cuts a text to what a summary may hold.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	runes := []rune(text)
	if len(runes) <= maxSummary {
		return text
	}
	return string(runes[:maxSummary-1]) + "…"
}

func source(kind, form, summary string, sender dsh.SessionID) dsh.Source {
	raw, err := json.Marshal(struct {
		Kind    string        `json:"kind"`
		Form    string        `json:"form"`
		Summary string        `json:"summary,omitempty"`
		Sender  dsh.SessionID `json:"senderSessionId"`
	}{kind, form, summary, sender})
	if err != nil {
		panic(err) // strings always marshal.
	}
	return dsh.OpaqueSource{Name: kind, Raw: raw}
}

// Sender returns the session that a message between agents came from.
func Sender(m *dsh.Message) (kind string, id dsh.SessionID) {
	s, ok := m.Source.(dsh.OpaqueSource)
	if !ok {
		return "", ""
	}
	var from struct {
		Sender dsh.SessionID `json:"senderSessionId"`
	}
	if json.Unmarshal(s.Raw, &from) != nil {
		return "", ""
	}
	return s.Name, from.Sender
}
