package subagent

import "github.com/dsh-actor/dsh-actor/delegation"

// A Kind is a kind of children that a model may choose. Agents of a kind are
// described in Markdown files; see [LoadKinds].
type Kind struct {
	// Name is what the model calls it, Description what it is good for.
	Name        string `json:"name"`
	Description string `json:"description"`
	// Tools are the only ones that it has, unless nil.
	Tools []string `json:"tools,omitzero"`
	// Model and Provider override the parent's unless empty.
	Model    string `json:"model,omitempty"`
	Provider string `json:"provider,omitempty"`
	// Persona is its system prompt.
	Persona string `json:"persona,omitempty"`
	// File is where it is described.
	File string `json:"file,omitempty"`
}

func (k *Kind) apply(spec *delegation.Spec) {
	if k.Tools != nil {
		spec.Filter.Allow = k.Tools
	}
	if k.Model != "" {
		spec.Model = k.Model
	}
	if k.Provider != "" {
		spec.Provider = k.Provider
	}
	if k.Persona != "" {
		spec.Persona = k.Persona
	}
}
