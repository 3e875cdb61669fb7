package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
)

// Identity is the first section of every system prompt.
const Identity = "You are an agent run by dsh-actor."

// Names and places of the sections that every agent has.
const (
	identitySection = "identity"
	identityOrder   = -1000
	personaSection  = "persona"
)

// rendered is the system prompt of an agent without prompt hooks, which changes
// only with its route. Agents that are alike share it.
type rendered struct {
	of     likeness
	system string
	err    error
}

// likeness is what a prompt without further sections depends on.
type likeness struct{ provider, model, persona, cwd string }

// assembly returns what the prompt of a step starts from.
func (h *host) assembly(e loop.Admit) hook.Assembly {
	a := hook.Assembly{
		Agent: h.face, Pos: e.Pos,
		Sections:  []hook.Section{{Name: identitySection, Text: Identity, Order: identityOrder}},
		Variables: map[string]string{},
		Tools:     h.cfg.Tools.Snapshot().Schemas(),
	}
	if h.cfg.Prompt.System != "" {
		a.Sections = append(a.Sections, hook.Section{Name: personaSection, Text: h.cfg.Prompt.System})
	}
	a.Sections = append(a.Sections, h.cfg.Prompt.Sections...)
	a.Context = append(a.Context, h.cfg.Prompt.Context...)
	for name, value := range map[string]string{
		"provider": e.Config.Provider, "model": e.Config.Model, "cwd": h.cfg.Prompt.CWD,
	} {
		if value != "" {
			a.Variables[name] = value
		}
	}
	return a
}

// plainPrompt returns the prompt of an agent without prompt hooks.
func (h *host) plainPrompt(config *dsh.CallConfig) loop.Prompt {
	of := likeness{config.Provider, config.Model, h.cfg.Prompt.System, h.cfg.Prompt.CWD}
	if h.prompt == nil || h.prompt.of != of {
		h.prompt = h.rendered(of, config)
	}
	return loop.Prompt{
		System: h.prompt.system, Err: h.prompt.err, Tools: h.cfg.Tools.Snapshot().Schemas(), Context: ordered(h.cfg.Prompt.Context),
	}
}

// rendered returns the prompt that another agent has, if that is alike, else a
// new one.
func (h *host) rendered(of likeness, config *dsh.CallConfig) *rendered {
	plain := len(h.cfg.Prompt.Sections) == 0
	if r := h.cfg.rendered.Load(); plain && r != nil && r.of == of {
		return r
	}
	a := h.assembly(loop.Admit{Config: config})
	r := &rendered{of: of}
	if r.system, r.err = render(a.Sections, a.Variables); plain {
		h.cfg.rendered.Store(r)
	}
	return r
}

// assemble runs the prompt chain, if there is one, and renders its result.
func assemble(ctx context.Context, chain hook.PromptFunc, a hook.Assembly) (loop.Prompt, error) {
	a.Tools = slices.Clip(a.Tools) // shared: a hook that appends gets a copy
	if chain != nil {
		var err error
		if a, err = chain(ctx, a); err != nil {
			return loop.Prompt{}, err
		}
	}
	system, err := render(a.Sections, a.Variables)
	return loop.Prompt{System: system, Err: err, Tools: a.Tools, Context: ordered(a.Context)}, nil
}

// ordered returns the sections that say something, by order and name.
func ordered(sections []hook.Section) []hook.Section {
	kept := make([]hook.Section, 0, len(sections))
	for _, s := range sections {
		if s.Text != "" {
			kept = append(kept, s)
		}
	}
	slices.SortStableFunc(kept, func(a, b hook.Section) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Name, b.Name))
	})
	return kept
}

// render joins the sections by blank lines, with their variables filled in.
func render(sections []hook.Section, variables map[string]string) (string, error) {
	var out strings.Builder
	for i, s := range ordered(sections) {
		if i > 0 {
			out.WriteString("\n\n")
		}
		if err := fill(&out, s, variables); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// fill writes the section's text with each {{name}} replaced. A name without
// a value is an error: a prompt with a hole in it would go unnoticed.
func fill(out *strings.Builder, s hook.Section, variables map[string]string) error {
	text := s.Text
	for {
		before, rest, found := strings.Cut(text, "{{")
		out.WriteString(before)
		if !found {
			return nil
		}
		name, after, closed := strings.Cut(rest, "}}")
		if !closed {
			out.WriteString("{{" + rest)
			return nil
		}
		value, ok := variables[strings.TrimSpace(name)]
		if !ok {
			return fmt.Errorf("prompt section %q: variable {{%s}} has no value", s.Name, strings.TrimSpace(name))
		}
		out.WriteString(value)
		text = after
	}
}
