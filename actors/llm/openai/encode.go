package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
	c, p := req.Header.Config, req.Header.Config.Parameters
	if err := s.checkSampling(c); err != nil {
		return nil, err
	}
	fields := []field{
		{"model", c.Model},
		{"tools", wireTools(req.Header.Tools)},
		{"messages", wireMessages(s.Dialect, req)},
		{"stream", true},
		{"stream_options", streamOptions{IncludeUsage: true}},
		{s.maxTokensField(), optional(c.MaxTokens, c.MaxTokens > 0)},
		{"temperature", optional(c.Temperature, c.Temperature != nil)},
		{"top_p", optional(p.TopP, p.TopP != nil)},
		{"seed", optional(p.Seed, p.Seed != nil)},
		{"logprobs", optional(true, p.Logprobs)},
		{"top_logprobs", optional(p.TopLogprobs, p.TopLogprobs > 0)},
		{"stop", optional(c.Stop, len(c.Stop) > 0)},
	}
	fields = append(fields, s.effort(c.ReasoningEffort)...)
	own, err := membersOf(p.Body)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Concat(s.extra, own) {
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

// effortsOff are the efforts that turn thinking off.
var effortsOff = []string{"none", "off", "disabled"}

// effort returns the fields of a reasoning effort. DeepSeek has a switch
// beside it and three levels; an effort of "none" turns thinking off.
func (s *settings) effort(effort string) []field {
	switch {
	case effort == "":
		return nil
	case s.Dialect != DialectDeepSeek:
		return []field{{"reasoning_effort", effort}}
	}
	if slices.Contains(effortsOff, effort) {
		return []field{{"thinking", thinking{"disabled"}}}
	}
	switch effort {
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
		if err := encodeJSON(&b, f.name); err != nil {
			return nil, fmt.Errorf("openai: encode a name: %w", err)
		}
		b.WriteByte(':')
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

// errLogprobs says beforehand what DeepSeek answers with a 400.
var errLogprobs = errors.New("openai: DeepSeek gives no log probabilities while it thinks; " +
	"turn thinking off with the reasoning effort none")

func (s *settings) checkSampling(c dsh.CallConfig) error {
	thinks := !slices.Contains(effortsOff, c.ReasoningEffort)
	if s.Dialect == DialectDeepSeek && thinks && (c.Parameters.Logprobs || c.Parameters.TopLogprobs > 0) {
		return errLogprobs
	}
	return nil
}

// membersOf returns the members of an agent's own body, in their order; a null
// leaves one out.
func membersOf(body json.RawMessage) ([]field, error) {
	if len(body) == 0 {
		return nil, nil
	}
	members, ok := orderedMembers(body)
	if !ok {
		return nil, errors.New("openai: the parameters' body is no JSON object")
	}
	fields := make([]field, len(members))
	for i, m := range members {
		if slices.Contains(fixedFields, m.name) {
			return nil, fmt.Errorf("openai: the body member %q is the adapter's own", m.name)
		}
		if fields[i].name = m.name; string(m.raw) != "null" {
			fields[i].value = m.raw
		}
	}
	return fields, nil
}
