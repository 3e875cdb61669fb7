package demo

import (
	"encoding/json"
	"slices"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// An ability is how tools that fulfil one kind of wish may be called, and how
// their members may be. The demo uses what a request really has.
type ability struct {
	tools                     []string
	path, glob, pattern, text []string
}

func (a ability) named(tool string) bool { return slices.Contains(a.tools, tool) }

var able = map[kind]ability{
	list: {
		tools: []string{"list_files", "list_directory", "ls"},
		path:  []string{"path", "directory", "dir"}, glob: []string{"pattern", "glob"},
	},
	read: {tools: []string{"read_file", "read", "cat"}, path: []string{"path", "file_path", "file", "filename"}},
	search: {
		tools: []string{"search", "grep"}, pattern: []string{"pattern", "query", "regex"},
		path: []string{"path", "directory", "dir"}, glob: []string{"glob", "include"},
	},
	run: {tools: []string{"shell", "bash", "run_command"}, text: []string{"command", "cmd"}},
	write: {
		tools: []string{"write_file", "write"}, path: []string{"path", "file_path", "file", "filename"},
		text: []string{"content", "contents", "text"},
	},
	delegate: {
		tools: []string{"subagent", "task", "delegate"}, pattern: []string{"description", "label"}, text: []string{"prompt", "task"},
	},
	todo: {tools: []string{"todo", "todo_write"}, text: []string{"todos", "items"}},
}

// kindOf returns what a tool is for.
func kindOf(tool string) (kind, bool) {
	for k := range delegate + 1 {
		if able[k].named(tool) {
			return k, true
		}
	}
	return 0, false
}

// An outfit is the tools of a request.
type outfit []dsh.ToolSchema

// An instrument is a tool that fulfils a kind of wish.
type instrument struct {
	ability
	name    string
	members map[string]bool
	needs   []string
}

// find returns the tool for a kind of wish.
func (o outfit) find(k kind) (instrument, bool) {
	if k == survey {
		k = list
	}
	for _, t := range o {
		if able[k].named(t.Name) {
			return describe(able[k], t), true
		}
	}
	return instrument{}, false
}

func describe(a ability, t dsh.ToolSchema) instrument {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	_ = json.Unmarshal(t.Parameters, &schema) // without members it cannot be called
	in := instrument{ability: a, name: t.Name, members: map[string]bool{}, needs: schema.Required}
	for name := range schema.Properties {
		in.members[name] = true
	}
	return in
}

// arguments builds a call's arguments.
type arguments struct {
	in     instrument
	values map[string]any
	failed bool
}

func (in instrument) arguments() *arguments {
	return &arguments{in: in, values: map[string]any{}}
}

// set gives a value to the first of these members that the tool has. An empty
// text needs no member.
func (a *arguments) set(names []string, value any) {
	if value == "" {
		return
	}
	i := slices.IndexFunc(names, func(n string) bool { return a.in.members[n] })
	if i < 0 {
		a.failed = true
		return
	}
	a.values[names[i]] = value
}

// json returns the arguments, unless the tool wants others than the demo has.
func (a *arguments) json() (string, bool) {
	for _, name := range a.in.needs {
		if _, ok := a.values[name]; !ok {
			return "", false
		}
	}
	raw, err := json.Marshal(a.values) // sorted
	return string(raw), err == nil && !a.failed
}
