package tool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Set is the tools that an agent has at one moment. It is immutable.
type Set struct {
	entries map[string]*Entry
	schemas []dsh.ToolSchema // sorted by name
	names   []string         // sorted

	own   *scope // what a snapshot was made from
	above *Set
}

// noTools is the Set of every empty scope.
var noTools = &Set{}

// newSet takes over entries.
func newSet(entries map[string]*Entry) *Set {
	if len(entries) == 0 {
		return noTools
	}
	s := &Set{entries: entries, names: slices.Sorted(maps.Keys(entries))}
	s.schemas = make([]dsh.ToolSchema, len(s.names))
	for i, name := range s.names {
		s.schemas[i] = entries[name].schema
	}
	return s
}

// Schemas returns what a model is told, sorted by name so that a request's
// prefix stays the same. One Set always returns the same slice, which nobody
// may write to; it is nil when the Set is empty.
func (s *Set) Schemas() []dsh.ToolSchema { return s.schemas }

// Lookup returns the tool of this name.
func (s *Set) Lookup(name string) (*Entry, bool) {
	e, ok := s.entries[name]
	return e, ok
}

// Nearest returns up to three names of tools that resemble name, the nearest
// first.
func (s *Set) Nearest(name string) []string { return Near(name, s.names) }

// Filter returns the Set of the tools that allow names, without those that
// deny names. A nil allow stands for all of them; an empty one for none. A
// name that the Set has no tool for is an error that tells the nearest.
func (s *Set) Filter(allow, deny []string) (*Set, error) {
	var problems []error
	for _, name := range slices.Concat(allow, deny) {
		if _, ok := s.entries[name]; !ok {
			problems = append(problems, fmt.Errorf("tool: filter: no tool %q%s", preview(name), meant(s.Nearest(name))))
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return s.narrow(allow, deny), nil
}

// narrow is Filter for names that need not exist.
func (s *Set) narrow(allow, deny []string) *Set {
	kept := maps.Clone(s.entries)
	maps.DeleteFunc(kept, func(name string, _ *Entry) bool {
		return allow != nil && !slices.Contains(allow, name) || slices.Contains(deny, name)
	})
	if len(kept) == len(s.entries) {
		return s
	}
	return newSet(kept)
}

// UnknownTool returns the error of a call that names no tool of s.
func UnknownTool(s *Set, name string) *Error {
	var text string
	near := s.Nearest(name)
	switch {
	case strings.TrimSpace(name) == "":
		text = "The call names no tool." + s.offer()
	case len(near) > 0:
		text = fmt.Sprintf("There is no tool %q%s", preview(name), meant(near))
	default:
		text = fmt.Sprintf("There is no tool %q.%s", preview(name), s.offer())
	}
	return &Error{Name: dsh.ToolUnknown.Name, Code: dsh.ToolUnknown.Code, Message: text}
}

// meant ends a sentence about an unknown name.
func meant(near []string) string {
	if len(near) == 0 {
		return "."
	}
	return ". Did you mean " + strings.Join(near, ", ") + "?"
}

// offer lists what there is instead.
func (s *Set) offer() string {
	const listed = 20
	switch n := len(s.names); {
	case n == 0:
		return " No tools are available."
	case n > listed:
		return fmt.Sprintf(" Available tools: %s and %d more.", strings.Join(s.names[:listed], ", "), n-listed)
	}
	return " Available tools: " + strings.Join(s.names, ", ") + "."
}
