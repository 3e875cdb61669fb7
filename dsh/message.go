package dsh

import "encoding/json"

// Role says who a message is from, in the model's terms.
type Role string

// Roles of a message. A tool result is a user-role message.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleSystem    Role = "system"
)

// A Message is one element of a conversation. It is immutable once it was
// handed to an agent; logs, histories and requests share the pointer.
type Message struct {
	ID      MessageID
	Role    Role
	Content []Block
	Source  Source
}

// A Source says where a message came from: [UserSource], [PluginSource],
// [ModelSource], [ToolSource] or, for kinds that a policy adds,
// [OpaqueSource].
//
//sumtype:decl
type Source interface {
	// Kind returns the value of the kind member.
	Kind() string
	isSource()
}

// Sources of a message.
type (
	// UserSource marks what a person wrote.
	UserSource struct{}

	// PluginSource marks what a hook, a tool or a policy added. Extra holds
	// further members as a JSON object, or nil.
	PluginSource struct {
		Plugin string
		Extra  json.RawMessage
	}

	// ModelSource marks a model's answer. ReplayState is what the adapter
	// asked to get back with the history, or nil.
	ModelSource struct {
		Provider    string
		Model       string
		ReplayState json.RawMessage
	}

	// ToolSource marks a tool result.
	ToolSource struct{ CallID CallID }

	// OpaqueSource is a source of any other kind, kept as it came.
	OpaqueSource struct {
		Name string
		Raw  json.RawMessage
	}
)

// Kind returns "user".
func (UserSource) Kind() string { return "user" }

// Kind returns "plugin".
func (PluginSource) Kind() string { return "plugin" }

// Kind returns "model".
func (ModelSource) Kind() string { return "model" }

// Kind returns "tool".
func (ToolSource) Kind() string { return "tool" }

// Kind returns the kind that the source named.
func (s OpaqueSource) Kind() string { return s.Name }

func (UserSource) isSource()   {}
func (PluginSource) isSource() {}
func (ModelSource) isSource()  {}
func (ToolSource) isSource()   {}
func (OpaqueSource) isSource() {}

// UserText returns a user's message with one text block and no ID; whoever
// delivers it gives it one.
func UserText(text string) *Message {
	return &Message{Role: RoleUser, Content: []Block{Text{Text: text}}, Source: UserSource{}}
}

// PluginText returns a plugin's user-role message with one text block and no
// ID.
func PluginText(plugin, text string) *Message {
	return &Message{Role: RoleUser, Content: []Block{Text{Text: text}}, Source: PluginSource{Plugin: plugin}}
}
