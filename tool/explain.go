package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxProblems is how many problems one error tells.
const maxProblems = 5

// explain says in which arguments value fails the schema. The validator has
// decided already, with err; this looks for the places that a model can
// correct and falls back to what the validator said.
func explain(root *jsonschema.Schema, value map[string]any, err error) string {
	var e explanation
	e.look(root, value, "")
	switch n := len(e.problems); {
	case n == 0:
		return "They do not fit the schema: " + preview(err.Error()) + "."
	case n > maxProblems:
		return strings.Join(e.problems[:maxProblems], " ") + " And more."
	}
	return strings.Join(e.problems, " ")
}

type explanation struct{ problems []string }

func (e *explanation) add(path, format string, args ...any) {
	if path == "" {
		path = "arguments"
	}
	e.problems = append(e.problems, fmt.Sprintf("%s: %s.", preview(path), fmt.Sprintf(format, args...)))
}

// full reports whether looking on would change nothing.
func (e *explanation) full() bool { return len(e.problems) > maxProblems }

func (e *explanation) look(s *jsonschema.Schema, value any, path string) {
	if s.Ref != "" || s.DynamicRef != "" {
		return // in older drafts a reference overrules what is beside it
	}
	if !hasType(s, value) {
		e.add(path, "expected %s, got %s", expected(s), typed(value))
		return
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(v any) bool { return same(v, value) }) {
		e.add(path, "expected one of %s, got %s", list(s.Enum), typed(value))
		return
	}
	if s.Const != nil && !same(*s.Const, value) {
		e.add(path, "expected %s, got %s", list([]any{*s.Const}), typed(value))
		return
	}
	switch value := value.(type) {
	case map[string]any:
		e.object(s, value, path)
	case []any:
		e.array(s, value, path)
	case string:
		e.text(s, value, path)
	case float64:
		e.number(s, value, path)
	}
}

func (e *explanation) object(s *jsonschema.Schema, value map[string]any, path string) {
	for _, name := range s.Required {
		if _, ok := value[name]; !ok {
			e.add(join(path, name), "missing, expected %s", expected(s.Properties[name]))
		}
	}
	for _, name := range sortedKeys(value) {
		if e.full() {
			return
		}
		switch member := s.Properties[name]; {
		case member != nil:
			e.look(member, value[name], join(path, name))
		case refusesOthers(s):
			e.unknown(s, name, join(path, name))
		}
	}
}

func (e *explanation) unknown(s *jsonschema.Schema, name, path string) {
	if near := Near(name, sortedKeys(s.Properties)); len(near) > 0 {
		e.add(path, "unknown argument (near: %s)", strings.Join(near, ", "))
		return
	}
	e.add(path, "unknown argument")
}

func (e *explanation) array(s *jsonschema.Schema, value []any, path string) {
	if s.MinItems != nil && len(value) < *s.MinItems {
		e.add(path, "expected at least %d items, got %d", *s.MinItems, len(value))
	}
	if s.MaxItems != nil && len(value) > *s.MaxItems {
		e.add(path, "expected at most %d items, got %d", *s.MaxItems, len(value))
	}
	if s.Items == nil || len(s.PrefixItems) > 0 {
		return
	}
	for i, item := range value {
		if e.full() {
			return
		}
		e.look(s.Items, item, fmt.Sprintf("%s[%d]", path, i))
	}
}

func (e *explanation) text(s *jsonschema.Schema, value, path string) {
	n := utf8.RuneCountInString(value)
	if s.MinLength != nil && n < *s.MinLength {
		e.add(path, "expected at least %d characters, got %d", *s.MinLength, n)
	}
	if s.MaxLength != nil && n > *s.MaxLength {
		e.add(path, "expected at most %d characters, got %d", *s.MaxLength, n)
	}
	if re, err := regexp.Compile(s.Pattern); err == nil && !re.MatchString(value) {
		e.add(path, "expected a text that matches %s, got %s", s.Pattern, typed(value))
	}
}

func (e *explanation) number(s *jsonschema.Schema, value float64, path string) {
	switch {
	case s.Minimum != nil && value < *s.Minimum:
		e.add(path, "expected at least %v, got %v", *s.Minimum, value)
	case s.Maximum != nil && value > *s.Maximum:
		e.add(path, "expected at most %v, got %v", *s.Maximum, value)
	case s.ExclusiveMinimum != nil && value <= *s.ExclusiveMinimum:
		e.add(path, "expected more than %v, got %v", *s.ExclusiveMinimum, value)
	case s.ExclusiveMaximum != nil && value >= *s.ExclusiveMaximum:
		e.add(path, "expected less than %v, got %v", *s.ExclusiveMaximum, value)
	}
}

// needs is the sentence about what a call must have.
func needs(s *jsonschema.Schema) string {
	if len(s.Required) == 0 {
		return "No argument is required."
	}
	var parts []string
	for _, name := range s.Required {
		part := name
		if kind := typesOf(s.Properties[name]); kind != "" {
			part += " (" + kind + ")"
		}
		parts = append(parts, part)
	}
	return "Required: " + strings.Join(parts, ", ") + "."
}

func hasType(s *jsonschema.Schema, value any) bool {
	if s.Type == "" && s.Types == nil {
		return true
	}
	kind := kindOf(value)
	fits := func(want string) bool { return want == kind || want == "number" && kind == "integer" }
	return fits(s.Type) || slices.ContainsFunc(s.Types, fits)
}

func kindOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if value == math.Trunc(value) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// expected describes a member; s may be nil.
func expected(s *jsonschema.Schema) string {
	switch kind := typesOf(s); {
	case s != nil && s.Enum != nil:
		return "one of " + list(s.Enum)
	case kind == "":
		return "a value"
	default:
		return kind
	}
}

func typesOf(s *jsonschema.Schema) string {
	switch {
	case s == nil:
		return ""
	case s.Type != "":
		return s.Type
	}
	return strings.Join(s.Types, " or ")
}

// typed describes a value with its type, bounded.
func typed(value any) string {
	kind := kindOf(value)
	if kind == "null" {
		return kind
	}
	text, err := json.Marshal(value)
	if err != nil {
		return kind
	}
	return kind + " " + preview(string(text))
}

func list(values []any) string {
	text, err := json.Marshal(values)
	if err != nil {
		return "the listed values"
	}
	return preview(string(text[1 : len(text)-1]))
}

func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// refusesOthers reports whether undeclared members fail.
func refusesOthers(s *jsonschema.Schema) bool {
	none := s.AdditionalProperties
	return none != nil && none.Not != nil && same(none, false) && len(s.PatternProperties) == 0
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
