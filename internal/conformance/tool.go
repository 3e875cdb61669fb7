package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Tool is a scripted tool.
type Tool struct {
	Name       string                `json:"name"`
	Mode       string                `json:"mode"` // parallel, exclusive, throws
	Parameters Properties            `json:"parameters"`
	Do         []ToolStep            `json:"do"`
	Calls      map[string][]ToolStep `json:"calls"`
	Registered *bool                 `json:"registered"`
}

// UnmarshalJSON reads a tool strictly.
func (t *Tool) UnmarshalJSON(data []byte) error {
	type plain Tool
	if err := strict(data, (*plain)(t)); err != nil {
		return fmt.Errorf("tool %s: %w", brief(data), err)
	}
	switch t.Mode {
	case "":
		t.Mode = "exclusive"
	case "exclusive", "parallel", "throws":
	default:
		return fmt.Errorf("tool %s: unknown mode %q", brief(data), t.Mode)
	}
	return nil
}

// Schema returns what a model is told of the tool.
func (t *Tool) Schema() dsh.ToolSchema {
	return dsh.ToolSchema{
		Name:        t.Name,
		Description: "scripted tool " + t.Name,
		Parameters:  t.Parameters.schema(),
	}
}

// Body returns the steps of a call, with the call's identifier filled in.
func (t *Tool) Body(id dsh.CallID) []ToolStep {
	steps, ok := t.Calls[string(id)]
	if !ok {
		steps = t.Do
	}
	if steps == nil {
		return []ToolStep{{Return: &Return{Text: t.Name + " ok"}}}
	}
	out := make([]ToolStep, len(steps))
	for i, s := range steps {
		out[i] = s.fill(string(id))
	}
	return out
}

// ToolStep is one step of a tool's body.
type ToolStep struct {
	Wait         string     `json:"wait"`
	WaitOrAbort  string     `json:"waitOrAbort"`
	ConcludeTurn bool       `json:"concludeTurn"`
	DeferContext *string    `json:"deferContext"`
	SetMode      *SetMode   `json:"setMode"`
	Do           []Action   `json:"do"`
	Fail         *CodedText `json:"fail"`
	Throw        *string    `json:"throw"`
	Return       *Return    `json:"return"`
}

// UnmarshalJSON reads a step strictly.
func (s *ToolStep) UnmarshalJSON(data []byte) error {
	type plain ToolStep
	if err := strict(data, (*plain)(s)); err != nil {
		return fmt.Errorf("tool step %s: %w", brief(data), err)
	}
	return nil
}

// fill returns s with {callId} in gate names and texts replaced.
func (s ToolStep) fill(id string) ToolStep {
	fill := func(text string) string { return strings.ReplaceAll(text, "{callId}", id) }
	fillIn := func(text *string) *string {
		if text == nil {
			return nil
		}
		filled := fill(*text)
		return &filled
	}
	s.Wait, s.WaitOrAbort = fill(s.Wait), fill(s.WaitOrAbort)
	s.DeferContext, s.Throw = fillIn(s.DeferContext), fillIn(s.Throw)
	if s.Fail != nil {
		s.Fail = &CodedText{Message: fill(s.Fail.Message), Code: s.Fail.Code}
	}
	if s.Return != nil {
		r := Return{Text: fill(s.Return.Text)}
		for _, b := range s.Return.Blocks {
			if text, ok := b.Block.(dsh.Text); ok {
				b.Block = dsh.Text{Text: fill(text.Text)}
			}
			r.Blocks = append(r.Blocks, b)
		}
		s.Return = &r
	}
	return s
}

// CodedText is an error with a code.
type CodedText struct {
	Message string `json:"message"`
	Code    string `json:"code"`
}

// Return is what a tool returns: a text or blocks.
type Return struct {
	Text   string
	Blocks []BlockSpec
}

// UnmarshalJSON reads a text or a list of blocks.
func (r *Return) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &r.Text)
	}
	return strict(data, &r.Blocks)
}

// Content returns the blocks of a result.
func (r *Return) Content() []dsh.Block {
	if r.Blocks == nil {
		return []dsh.Block{dsh.Text{Text: r.Text}}
	}
	return blocksOf(r.Blocks)
}

// Properties is the parameters of a tool in the order in which they are
// written: by name, a JSON Schema with a required member of its own.
type Properties []Property

// Property is one parameter.
type Property struct {
	Name     string
	Schema   json.RawMessage // without required
	Required bool
}

// UnmarshalJSON reads the map in order.
func (p *Properties) UnmarshalJSON(data []byte) error {
	names, err := memberNames(data)
	if err != nil {
		return err
	}
	var members map[string]map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	for _, name := range names {
		property := Property{Name: name, Required: string(members[name]["required"]) == "true"}
		delete(members[name], "required")
		if property.Schema, err = json.Marshal(members[name]); err != nil {
			return err
		}
		*p = append(*p, property)
	}
	return nil
}

// schema returns the JSON Schema of the arguments.
func (p Properties) schema() json.RawMessage {
	var b bytes.Buffer
	var required []string
	b.WriteString(`{"type":"object","properties":{`)
	for i, property := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", quote(property.Name), property.Schema)
		if property.Required {
			required = append(required, property.Name)
		}
	}
	b.WriteByte('}')
	if required != nil {
		b.WriteString(`,"required":`)
		b.WriteString(quote(required))
	}
	b.WriteByte('}')
	return b.Bytes()
}

// quote returns the JSON text of a string or a list of strings.
func quote[T string | []string](v T) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // Strings always marshal.
	}
	return string(text)
}

// memberNames returns the names of an object's members in order.
func memberNames(data []byte) ([]string, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var names []string
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if s, ok := name.(string); ok {
			names = append(names, s)
		}
	}
	return names, nil
}
