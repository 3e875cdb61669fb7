package openai

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// field is one member of the request's body. A nil value leaves it out.
type field struct {
	name  string
	value any
}

type wireTool struct {
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type thinking struct {
	Type string `json:"type"`
}

// noParameters is the schema of a tool that named none.
var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// encode returns the body of req. Members keep one order, tools and messages
// that of the request, and schemas their own; nothing depends on a map. The
// members that change least come first.
func (s *settings) encode(req *dsh.Request) ([]byte, error) {
	c := req.Header.Config
	fields := []field{
		{"model", c.Model},
		{"tools", wireTools(req.Header.Tools)},
		{"messages", wireMessages(s.Dialect, req)},
		{"stream", true},
		{"stream_options", streamOptions{IncludeUsage: true}},
		{s.maxTokensField(), optional(c.MaxTokens, c.MaxTokens > 0)},
		{"temperature", optional(c.Temperature, c.Temperature != nil)},
		{"stop", optional(c.Stop, len(c.Stop) > 0)},
	}
	fields = append(fields, s.effort(c.ReasoningEffort)...)
	for _, e := range s.extra {
		fields = setField(fields, e)
	}
	return encodeObject(fields)
}

func (s *settings) maxTokensField() string {
	if s.Dialect == DialectOpenAI {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// effort returns the fields of a reasoning effort. DeepSeek has a switch
// beside it and three levels; an effort of "none" turns thinking off.
func (s *settings) effort(effort string) []field {
	switch {
	case effort == "":
		return nil
	case s.Dialect != DialectDeepSeek:
		return []field{{"reasoning_effort", effort}}
	}
	switch effort {
	case "none", "off", "disabled":
		return []field{{"thinking", thinking{"disabled"}}}
	case "minimal":
		effort = "low"
	case "medium":
		effort = "high"
	case "xhigh":
		effort = "max"
	}
	return []field{{"thinking", thinking{"enabled"}}, {"reasoning_effort", effort}}
}

func optional(v any, set bool) any {
	if !set {
		return nil
	}
	return v
}

func setField(fields []field, f field) []field {
	for i := range fields {
		if fields[i].name == f.name {
			fields[i] = f
			return fields
		}
	}
	return append(fields, f)
}

func wireTools(tools []dsh.ToolSchema) any {
	if len(tools) == 0 {
		return nil
	}
	out := make([]wireTool, len(tools))
	for i, t := range tools {
		parameters := t.Parameters
		if len(bytes.TrimSpace(parameters)) == 0 {
			parameters = noParameters
		}
		out[i] = wireTool{"function", wireFunction{t.Name, t.Description, parameters}}
	}
	return out
}

func encodeObject(fields []field) ([]byte, error) {
	var b bytes.Buffer
	sep := byte('{')
	for _, f := range fields {
		if f.value == nil {
			continue
		}
		b.WriteByte(sep)
		sep = ','
		b.WriteByte('"')
		b.WriteString(f.name)
		b.WriteString(`":`)
		if err := encodeJSON(&b, f.value); err != nil {
			return nil, fmt.Errorf("openai: encode %s: %w", f.name, err)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encodeJSON appends v without escaping HTML and without a line end.
func encodeJSON(b *bytes.Buffer, v any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1)
	return nil
}
