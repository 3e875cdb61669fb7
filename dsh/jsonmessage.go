package dsh

import (
	"encoding/json"
	"errors"
	"fmt"
)

// AppendJSON appends the message. The order of members is the log's, which
// depends on who speaks. An empty ID is left out; a nil Source is a user.
func (m *Message) AppendJSON(dst []byte) []byte {
	_, isResult := m.Source.(ToolSource)
	switch {
	case isResult:
		dst = m.appendSource(append(dst, `{"source":`...))
		dst = appendBlocks(append(dst, `,"content":`...), m.Content)
		dst = appendText(dst, `,"role":`, m.Role)
	case m.Role == RoleAssistant:
		dst = appendText(dst, `{"role":`, m.Role)
		dst = appendBlocks(append(dst, `,"content":`...), m.Content)
		dst = m.appendSource(append(dst, `,"source":`...))
	default:
		dst = appendBlocks(append(dst, `{"content":`...), m.Content)
		dst = m.appendSource(append(dst, `,"source":`...))
		dst = appendText(dst, `,"role":`, m.Role)
	}
	return append(optText(dst, `,"id":`, m.ID), '}')
}

func (m *Message) appendSource(dst []byte) []byte {
	if m.Source == nil {
		return AppendSource(dst, UserSource{})
	}
	return AppendSource(dst, m.Source)
}

// MarshalJSON returns the message as [Message.AppendJSON] writes it.
func (m Message) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// UnmarshalJSON reads a message. The ID may be absent; Content is never nil.
func (m *Message) UnmarshalJSON(data []byte) error {
	return unmarshal(data, "message", decodeMessage, m)
}

func decodeMessage(v value) (m Message, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "id":
			m.ID, err = textOf[MessageID](v)
		case "role":
			m.Role, err = textOf[Role](v)
		case "content":
			m.Content, err = elements(v, decodeBlock)
		case "source":
			m.Source, err = decodeSource(v)
		}
		return err
	}, "content", "source", "role")
	return m, err
}

func appendBlocks(dst []byte, content []Block) []byte {
	dst = append(dst, '[')
	for i, b := range content {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendBlock(dst, b)
	}
	return append(dst, ']')
}

// AppendBlock appends a block as an object with its type. An [Image] whose Raw
// is no object of that type becomes one without further members.
func AppendBlock(dst []byte, b Block) []byte {
	switch b := b.(type) {
	case Text:
		return append(appendText(dst, `{"type":"text","text":`, b.Text), '}')
	case Reasoning:
		return append(appendText(dst, `{"type":"reasoning","text":`, b.Text), '}')
	case Image:
		return appendTagged(dst, "type", imageBlock, b.Raw)
	case ToolCall:
		dst = appendText(dst, `{"type":"tool-call","id":`, b.ID)
		dst = appendText(dst, `,"name":`, b.Name)
		return append(appendText(dst, `,"arguments":`, b.Arguments), '}')
	case ToolResult:
		dst = appendText(dst, `{"type":"tool-result","toolCallId":`, b.CallID)
		dst = appendBlocks(append(dst, `,"content":`...), b.Content)
		if b.IsError {
			return append(dst, `,"isError":true}`...)
		}
		return append(dst, `,"isError":false}`...)
	}
	panic(fmt.Sprintf("dsh: no JSON form for block %T", b))
}

// DecodeBlock reads a block. It copies what it keeps of raw.
func DecodeBlock(raw json.RawMessage) (Block, error) {
	return decodeAs(raw, "block", decodeBlock)
}

func decodeBlock(v value) (Block, error) {
	kind, err := v.tag("type")
	if err != nil {
		return nil, err
	}
	switch kind {
	case TextBlock:
		text, err := decodeText(v)
		return Text{text}, err
	case ReasoningBlock:
		text, err := decodeText(v)
		return Reasoning{text}, err
	case ToolCallBlock:
		return decodeToolCall(v)
	case toolResultBlock:
		return decodeToolResult(v)
	case imageBlock:
		return Image{Raw: v.raw()}, nil
	}
	return nil, within("type", fmt.Errorf("unknown block type %q", kind))
}

func decodeText(v value) (text string, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		if string(key) == "text" {
			text, err = v.text()
		}
		return err
	}, "text")
	return text, err
}

func decodeToolCall(v value) (Block, error) {
	var b ToolCall
	err := v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "id":
			b.ID, err = textOf[CallID](v)
		case "name":
			b.Name, err = v.text()
		case "arguments":
			b.Arguments, err = v.text()
		}
		return err
	}, "id", "name", "arguments")
	return b, err
}

func decodeToolResult(v value) (Block, error) {
	var b ToolResult
	err := v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "toolCallId":
			b.CallID, err = textOf[CallID](v)
		case "content":
			b.Content, err = elements(v, decodeBlock)
		case "isError":
			b.IsError, err = v.boolean()
		}
		return err
	}, "toolCallId", "content")
	return b, err
}

// AppendSource appends a message's source as an object with its kind. Further
// members of a [PluginSource] and an [OpaqueSource] are written as they are;
// they cannot change the kind.
func AppendSource(dst []byte, s Source) []byte {
	switch s := s.(type) {
	case UserSource:
		return append(dst, `{"kind":"user"}`...)
	case PluginSource:
		dst = appendText(dst, `{"kind":"plugin","plugin":`, s.Plugin)
		return append(appendMembers(dst, s.Extra, "kind", "plugin"), '}')
	case ModelSource:
		dst = appendText(dst, `{"kind":"model","provider":`, s.Provider)
		dst = appendText(dst, `,"model":`, s.Model)
		return append(optRaw(dst, `,"replayState":`, s.ReplayState), '}')
	case ToolSource:
		return append(appendText(dst, `{"kind":"tool","callId":`, s.CallID), '}')
	case OpaqueSource:
		return appendTagged(dst, "kind", s.Name, s.Raw)
	}
	panic(fmt.Sprintf("dsh: no JSON form for source %T", s))
}

// DecodeSource reads a message's source. It copies what it keeps of raw.
func DecodeSource(raw json.RawMessage) (Source, error) {
	return decodeAs(raw, "source", decodeSource)
}

func decodeSource(v value) (Source, error) {
	kind, err := v.tag("kind")
	if err != nil {
		return nil, err
	}
	switch kind {
	case "user":
		return UserSource{}, nil
	case "plugin":
		return decodePluginSource(v)
	case "model":
		return decodeModelSource(v)
	case "tool":
		id, err := v.tag("callId")
		return ToolSource{CallID(id)}, err
	case "":
		return nil, within("kind", errors.New("must not be empty"))
	}
	return OpaqueSource{Name: kind, Raw: v.raw()}, nil
}

func decodePluginSource(v value) (Source, error) {
	plugin, err := v.tag("plugin")
	if err != nil {
		return nil, err
	}
	s := PluginSource{Plugin: plugin}
	if extra := appendMembers(nil, json.RawMessage(v), "kind", "plugin"); len(extra) > 0 {
		extra[0] = '{'
		s.Extra = append(extra, '}')
	}
	return s, nil
}

func decodeModelSource(v value) (Source, error) {
	var s ModelSource
	err := v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "provider":
			s.Provider, err = v.text()
		case "model":
			s.Model, err = v.text()
		case "replayState":
			s.ReplayState = v.raw()
		}
		return err
	}, "provider", "model")
	return s, err
}

// appendTagged appends the object raw if its member tag is name, and otherwise
// an object with that tag and raw's other members.
func appendTagged(dst []byte, tag, name string, raw json.RawMessage) []byte {
	if v, err := parse(raw); err == nil {
		if t, err := v.tag(tag); err == nil && t == name {
			return appendRaw(dst, raw)
		}
	}
	dst = append(AppendString(append(dst, '{'), tag), ':')
	return append(appendMembers(AppendString(dst, name), raw, tag), '}')
}

// appendMembers appends the members of the object raw, each with a comma in
// front, but for those named except. What is no object has none.
func appendMembers(dst []byte, raw json.RawMessage, except ...string) []byte {
	if len(raw) == 0 {
		return dst
	}
	v, err := parse(raw)
	if err != nil || v[0] != '{' {
		return dst
	}
	_ = v.members(func(key []byte, v value) error { // f never fails.
		for _, name := range except {
			if string(key) == name {
				return nil
			}
		}
		dst = append(AppendString(append(dst, ','), string(key)), ':')
		dst = appendRaw(dst, json.RawMessage(v))
		return nil
	})
	return dst
}
