package loop

import (
	"encoding/json"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// The runtime context as the model reads it.
const (
	// ContextPlugin is the source of runtime-context messages.
	ContextPlugin = "runtime-context"
	// ContextHeading opens a snapshot; its sections follow.
	ContextHeading = "The current runtime context (it replaces any earlier one):"
	// ContextNone says that an earlier snapshot no longer holds.
	ContextNone = "There is no runtime context any more; ignore any earlier one."
)

// contextFold remembers where the history last told the runtime context.
type contextFold struct {
	known      bool // at and text are right for generation
	generation int
	text       string // of the last message on the surface; "" for none
}

// logContext logs the runtime context as a message if the history does not say
// it already. A snapshot that is no longer on the surface does not count.
func (m *Machine) logContext(sections []hook.Section) {
	said := m.contextSaid()
	if len(sections) == 0 && (said == "" || said == ContextNone) {
		return
	}
	text, source := renderContext(sections)
	if text == said {
		return
	}
	m.logMessage(dsh.UserMessage{Message: &dsh.Message{
		ID: m.messageID(), Role: dsh.RoleUser, Content: []dsh.Block{dsh.Text{Text: text}}, Source: source,
	}}, nil)
	m.snapshot = contextFold{known: true, generation: m.history.Generation(), text: text}
}

// contextSaid returns the runtime context that the surface last tells.
func (m *Machine) contextSaid() string {
	if !m.snapshot.known || m.snapshot.generation != m.history.Generation() {
		m.snapshot = contextFold{known: true, generation: m.history.Generation()}
		if message, _, ok := m.history.LastUser(isContext); ok {
			m.snapshot.text = dsh.TextOf(message.Content)
		}
	}
	return m.snapshot.text
}

func isContext(message *dsh.Message) bool {
	s, ok := message.Source.(dsh.PluginSource)
	return ok && s.Plugin == ContextPlugin
}

func renderContext(sections []hook.Section) (string, dsh.Source) {
	if len(sections) == 0 {
		return ContextNone, dsh.PluginSource{Plugin: ContextPlugin}
	}
	type section struct {
		Name string `json:"name"`
		Text string `json:"text"`
	}
	extra := struct {
		Form     string    `json:"form"`
		Sections []section `json:"sections"`
	}{Form: "snapshot"}
	var text strings.Builder
	text.WriteString(ContextHeading)
	for _, s := range sections {
		text.WriteString("\n\n" + s.Text)
		extra.Sections = append(extra.Sections, section{s.Name, s.Text})
	}
	raw, err := json.Marshal(extra)
	if err != nil {
		panic(err) // strings always marshal.
	}
	return text.String(), dsh.PluginSource{Plugin: ContextPlugin, Extra: raw}
}
