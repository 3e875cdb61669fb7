package subagent

import (
	"errors"
	"fmt"
	"time"

	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/tool"
)

// Options of a [Set]. The zero value has one delegation tool, subagent, whose
// children are fresh and in the foreground unless the model asks otherwise, and
// all the tools for background children.
type Options struct {
	// Tools are the delegation tools; nil is one with its defaults.
	Tools []Tool
	// Kinds of children that a model may choose from.
	Kinds []Kind
	// NoControl leaves out send_message and interrupt_agent, NoList leaves
	// out list_agents, NoReport leaves out report.
	NoControl, NoList, NoReport bool
	// QuietReports lets reports wait for something else that wakes the
	// parent.
	QuietReports bool
	// Ephemeral refuses background children because sessions do not outlive
	// whoever runs them.
	Ephemeral bool
}

// A Tool is one way to delegate.
type Tool struct {
	// Name defaults to "subagent".
	Name string
	// Transport is how children are made; it defaults to spawn.
	Transport delegation.Transport
	// Background says when children work in the background.
	Background Background
	// Route, output cap, persona and tools of the children; see
	// [delegation.Spec].
	Provider, Model, Persona string
	MaxTokens                int
	Filter                   delegation.Filter
	// MaxDepth bounds the children's depth beyond the runtime's limit.
	MaxDepth *int
	// Timeout bounds a child's life; 0 does not.
	Timeout time.Duration
	// Structured lets the model ask for an output that fits a JSON Schema.
	Structured bool
	// LateDescriptor; see [delegation.Spec].
	LateDescriptor bool
}

// Background says when children of a [Tool] work in the background.
type Background uint8

// Ways of working in the background.
const (
	// OnRequest: in the foreground unless the model asks for the background.
	OnRequest Background = iota
	// ByDefault: in the background unless the model asks for the foreground.
	ByDefault
	// Refused: the model is offered the choice, and the background is
	// refused.
	Refused
	// Never: the model is not offered the choice.
	Never
)

// A Set is the tools for children, as one runtime has them.
type Set struct {
	opts  Options
	tools []tool.Tool
}

// New returns the tools. It reports every problem of opts at once.
func New(opts Options) (*Set, error) {
	if opts.Tools == nil {
		opts.Tools = []Tool{{}}
	}
	s := &Set{opts: opts}
	var errs []error
	kinds := map[string]bool{}
	for _, k := range opts.Kinds {
		if kinds[k.Name] {
			errs = append(errs, fmt.Errorf("subagent: the kind %q is there twice", k.Name))
		}
		kinds[k.Name] = true
	}
	for i := range opts.Tools {
		t := &opts.Tools[i]
		if t.Name == "" {
			t.Name = "subagent"
		}
		if t.Transport == "" {
			t.Transport = delegation.BySpawn
		}
		if t.Transport != delegation.BySpawn && t.Transport != delegation.ByFork {
			errs = append(errs, fmt.Errorf("subagent: tool %q: there is no transport %q; use spawn or fork", t.Name, t.Transport))
		}
		s.tools = append(s.tools, &delegate{set: s, Tool: *t})
	}
	if !opts.NoControl {
		s.tools = append(s.tools, s.sendMessage(), s.interrupt())
	}
	if !opts.NoList {
		s.tools = append(s.tools, list())
	}
	return s, errors.Join(errs...)
}

// Tools returns the tools that every agent is to have.
func (s *Set) Tools() []tool.Tool { return s.tools }

// Hooks returns the hooks that every agent is to have.
func (s *Set) Hooks() []any { return []any{&guidance{set: s}} }

// gear returns what background children have of their own, in each life.
func (s *Set) gear() delegation.Gear {
	if s.opts.NoReport {
		return delegation.Gear{}
	}
	return delegation.Gear{Tools: []tool.Tool{s.report()}, Sections: reportSection}
}
