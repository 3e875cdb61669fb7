package delegation

import (
	"errors"
	"fmt"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/tool"
)

// A Spec describes a child. The zero value is a fresh one-shot child with its
// parent's route, persona and working directory, and with all the tools that
// the parent's runtime gives to every agent.
type Spec struct {
	// ID names child and session; it defaults to a generated one.
	ID dsh.SessionID
	// Label says in a few words what the child is for.
	Label string
	// Fork lets the child begin with the parent's history through its last
	// completed turn.
	Fork bool
	// Background makes a child that lives on by itself, can be sent more
	// messages and settles when it has nothing left to do.
	Background bool

	// Provider, Model, ReasoningEffort and MaxTokens override the parent's.
	Provider, Model, ReasoningEffort string
	MaxTokens                        int
	// Persona replaces the parent's unless empty.
	Persona string
	// Filter narrows the tools that every agent has.
	Filter Filter
	Gear

	// MaxDepth is the greatest depth that the child may have, if it is less
	// than the runtime's; nil leaves it to the runtime.
	MaxDepth *int
	// Timeout bounds the child's life, from its first message on; 0 does not.
	Timeout time.Duration
	// LateDescriptor writes the descriptor of a one-shot child when its first
	// step is entered instead of at its creation, as the reference does.
	LateDescriptor bool
}

// Gear is what a child has of its own, in each of its lives.
type Gear struct {
	// Tools and Hooks are scoped to the child; no filter hides them.
	Tools []tool.Tool
	Hooks []any
	// Sections are further sections of its system prompt.
	Sections []hook.Section
}

// A Filter says which tools a child has; the zero value leaves it all.
type Filter struct {
	// Allow lists the only tools that it has, unless nil.
	Allow []string `json:"allow,omitzero"`
	// Deny lists tools that it has not.
	Deny []string `json:"deny,omitempty"`
}

// IsZero reports whether the filter hides nothing.
func (f Filter) IsZero() bool { return f.Allow == nil && len(f.Deny) == 0 }

// Check reports every problem of the spec at once.
func (s *Spec) Check() error {
	var errs []error
	if s.MaxDepth != nil && *s.MaxDepth < 0 {
		errs = append(errs, fmt.Errorf("MaxDepth is %d: it must not be negative", *s.MaxDepth))
	}
	if s.MaxTokens < 0 {
		errs = append(errs, fmt.Errorf("MaxTokens is %d: it must not be negative", s.MaxTokens))
	}
	if s.Timeout < 0 {
		errs = append(errs, fmt.Errorf("the timeout is %v: it must not be negative", s.Timeout))
	}
	if s.Background && s.Label == "" {
		errs = append(errs, errors.New("a background child needs a label"))
	}
	return errors.Join(errs...)
}

// Transport returns how the child is made.
func (s *Spec) Transport() Transport {
	if s.Fork {
		return ByFork
	}
	return BySpawn
}

// Transport names how a child is made.
type Transport string

// Transports.
const (
	BySpawn Transport = "spawn"
	ByFork  Transport = "fork"
)

// Section of the runtime context that every child has.
const (
	ContextName  = "subagent:delegation"
	ContextOrder = 120
)

// ContextText tells a child what it is.
const ContextText = "You are a sub-agent: another agent gave you this task and gets your last message as its result. " +
	"Nobody answers questions while you work, so decide what is open by yourself and say what you assumed. " +
	"Your tools and permissions are fixed."
