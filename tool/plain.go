package tool

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// plain is a schema that only names flat members of simple types, which most
// tools' schemas are. It recognises arguments that fit without building their
// values; what it does not recognise is left to the validator.
type plain struct {
	members  []member
	required uint64 // bits of members
	open     bool   // further members are accepted
}

// member is one property.
type member struct {
	name string
	kind string // a JSON Schema type
}

// What a plain schema and its members may say besides types.
var (
	plainRoot   = []string{"type", "properties", "required", "additionalProperties", "title", "description", "$schema"}
	plainMember = []string{"type", "title", "description", "default", "examples"}
	plainKinds  = []string{"string", "number", "integer", "boolean"}
)

// plainOf returns the plain form of a schema, or nil if it has none.
func plainOf(raw json.RawMessage, root *jsonschema.Schema) *plain {
	if !only(raw, plainRoot) || len(root.Properties) > 64 {
		return nil
	}
	p := &plain{open: root.AdditionalProperties == nil}
	if more := root.AdditionalProperties; more != nil && !isFalse(more) {
		return nil
	}
	var properties struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(raw, &properties) != nil {
		return nil
	}
	for name, schema := range root.Properties {
		if !only(properties.Properties[name], plainMember) || !slices.Contains(plainKinds, schema.Type) ||
			strings.ContainsAny(name, "\\\"") {
			return nil
		}
		p.members = append(p.members, member{name: name, kind: schema.Type})
	}
	slices.SortFunc(p.members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	for _, name := range root.Required {
		i := p.find([]byte(name))
		if i < 0 {
			return nil
		}
		p.required |= 1 << i
	}
	return p
}

// only reports whether raw is an object without other members than names.
func only(raw json.RawMessage, names []string) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return false
	}
	for name := range object {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

// isFalse reports whether s is the schema false, which the library keeps as
// {"not": {}}.
func isFalse(s *jsonschema.Schema) bool {
	raw, err := json.Marshal(s)
	return err == nil && string(raw) == "false"
}

func (p *plain) find(name []byte) int {
	return slices.IndexFunc(p.members, func(m member) bool { return m.name == string(name) })
}

// fits reports whether args are recognised as fitting. False means that the
// validator has to look. It allocates nothing.
func (p *plain) fits(args json.RawMessage) bool {
	if !json.Valid(args) {
		return false
	}
	rest := bytes.TrimLeft(args, whiteSpace)
	if rest[0] != '{' {
		return false
	}
	var seen uint64
	rest = bytes.TrimLeft(rest[1:], whiteSpace)
	for rest[0] != '}' {
		name, after, ok := plainString(rest)
		if !ok {
			return false
		}
		after = bytes.TrimLeft(after, whiteSpace)[1:] // the colon
		kind, after := plainValue(bytes.TrimLeft(after, whiteSpace))
		switch i := p.find(name); {
		case kind == "":
			return false
		case i < 0 && !p.open:
			return false
		case i >= 0:
			want := p.members[i].kind
			if kind != want && (kind != "integer" || want != "number") || seen&(1<<i) != 0 {
				return false
			}
			seen |= 1 << i
		}
		if rest = bytes.TrimLeft(after, whiteSpace); rest[0] == ',' {
			rest = bytes.TrimLeft(rest[1:], whiteSpace)
		}
	}
	return seen&p.required == p.required
}

const whiteSpace = " \t\r\n"

// plainString returns the text of the string at the head of valid JSON and
// what follows it; ok is false for one with escapes in it.
func plainString(json []byte) (text, after []byte, ok bool) {
	end := bytes.IndexByte(json[1:], '"') + 1
	return json[1:end], json[end+1:], bytes.IndexByte(json[:end], '\\') < 0
}

// plainValue returns the type of the value at the head of valid JSON and what
// follows it; the type is empty for values that are not simple.
func plainValue(json []byte) (kind string, after []byte) {
	switch json[0] {
	case '"':
		for i := 1; ; i++ {
			switch json[i] {
			case '\\':
				i++
			case '"':
				return "string", json[i+1:]
			}
		}
	case 't':
		return "boolean", json[len("true"):]
	case 'f':
		return "boolean", json[len("false"):]
	case '{', '[', 'n':
		return "", json
	}
	n := bytes.IndexFunc(json, func(r rune) bool { return !strings.ContainsRune("0123456789+-.eE", r) })
	switch number := json[:n]; {
	case n > plainDigits || bytes.ContainsAny(number, "eE"): // may be more than a float64 holds
		return "", json
	case bytes.IndexByte(number, '.') >= 0:
		return "number", json[n:]
	}
	return "integer", json[n:]
}

// plainDigits is a length of numbers without an exponent that every float64
// holds.
const plainDigits = 300
