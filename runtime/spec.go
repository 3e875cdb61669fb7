package runtime

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"github.com/google/uuid"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/tool"
)

// Spec describes an agent. Provider and Model are needed unless a request hook
// supplies them.
type Spec struct {
	// ID defaults to a generated one. It is free again once the agent is
	// disposed.
	ID dsh.AgentID
	// Session defaults to a generated ID that begins with the agent's. A
	// resumed agent has the session's.
	Session dsh.SessionID

	Provider string
	Model    string
	// ReasoningEffort, Temperature, MaxTokens and Stop are the request's;
	// zero values leave them to the adapter.
	ReasoningEffort string
	Temperature     *float64
	MaxTokens       int
	Stop            []string
	// TopP, Seed, Logprobs and TopLogprobs are the request's too. What comes
	// back of log probabilities is in the answer's replay state.
	TopP        *float64
	Seed        *int64
	Logprobs    bool
	TopLogprobs int
	// ExtraBody adds members to the request's body or replaces them; nil
	// leaves one out. It is logged with the parameters above.
	ExtraBody map[string]any
	// ExtraHeaders are sent with each request of this agent. They are not
	// logged, so they may hold a gateway's token.
	ExtraHeaders http.Header

	// System is the persona: the system prompt behind the runtime's own first
	// sentence. {{provider}}, {{model}} and {{cwd}} are filled in.
	System string
	// CWD is the working directory, absolute, for the log and the prompt.
	CWD string
	// MaxParallelToolCalls bounds the bodies of one answer's tool calls that
	// run at once; 0 means 10.
	MaxParallelToolCalls int
	// Tools and Hooks that this agent has beside the runtime's.
	Tools []tool.Tool
	Hooks []any

	// Sections and Context are further sections of the system prompt and of
	// the runtime context.
	Sections, Context []hook.Section

	// Observer is for the project's own tests.
	Observer observer

	body   json.RawMessage   // ExtraBody, encoded once
	filter delegation.Filter // of a child
}

func (s Spec) withDefaults() (Spec, error) {
	var errs []error
	if s.ID == "" {
		s.ID = dsh.AgentID("agent-" + uuid.NewString())
		if s.Session == "" {
			s.Session = dsh.SessionID(s.ID) // nobody else has it
		}
	}
	if s.Session == "" {
		s.Session = dsh.SessionID(string(s.ID) + "-session-" + uuid.NewString())
	}
	if s.MaxTokens < 0 {
		errs = append(errs, fmt.Errorf("MaxTokens is %d: it must not be negative", s.MaxTokens))
	}
	if s.MaxParallelToolCalls < 0 {
		errs = append(errs, fmt.Errorf("MaxParallelToolCalls is %d: it must not be negative", s.MaxParallelToolCalls))
	}
	if s.TopLogprobs < 0 {
		errs = append(errs, fmt.Errorf("TopLogprobs is %d: it must not be negative", s.TopLogprobs))
	}
	if len(s.ExtraBody) > 0 {
		body, err := encodeBody(s.ExtraBody)
		s.body, errs = body, append(errs, err)
	}
	s.ExtraHeaders = s.ExtraHeaders.Clone()
	return s, errors.Join(errs...)
}

// inherit fills in what a log tells and the spec leaves out.
func (s *Spec) inherit(h dsh.SessionHeader, events []dsh.Event) {
	if s.CWD == "" {
		s.CWD = h.CWD
	}
	if s.Provider != "" || s.Model != "" {
		return
	}
	var fold dsh.HeaderFold
	for i := range events {
		fold.Apply(&events[i])
	}
	if fold.Header == nil {
		return
	}
	last := fold.Header.AdapterDefaults.Strip(fold.Header.Config)
	given := s.call()
	s.Provider, s.Model = last.Provider, last.Model
	s.ReasoningEffort = cmp.Or(given.ReasoningEffort, last.ReasoningEffort)
	s.MaxTokens = cmp.Or(given.MaxTokens, last.MaxTokens)
	s.Temperature = cmp.Or(given.Temperature, last.Temperature)
	if given.Stop == nil {
		s.Stop = last.Stop
	}
	p := last.Parameters
	s.TopP, s.Seed = cmp.Or(given.Parameters.TopP, p.TopP), cmp.Or(given.Parameters.Seed, p.Seed)
	s.Logprobs, s.TopLogprobs = s.Logprobs || p.Logprobs, cmp.Or(s.TopLogprobs, p.TopLogprobs)
	if s.body == nil {
		s.body = p.Body
	}
}

// call returns the configuration that the agent's first request starts from.
func (s Spec) call() dsh.CallConfig {
	return dsh.CallConfig{
		Provider: s.Provider, Model: s.Model, ReasoningEffort: s.ReasoningEffort,
		Temperature: s.Temperature, MaxTokens: s.MaxTokens, Stop: s.Stop,
		Parameters: dsh.Parameters{
			TopP: s.TopP, Seed: s.Seed, Logprobs: s.Logprobs, TopLogprobs: s.TopLogprobs, Body: s.body,
		},
	}
}

// base is what is kept of a [Spec] once its agent is made: what each of its lives
// and its children begin with.
type base struct {
	call     dsh.CallConfig
	headers  http.Header
	parallel int
	prompt   agent.Prompt
	observer observer
}

func (s Spec) base() base {
	return base{
		call: s.call(), headers: s.ExtraHeaders, parallel: s.MaxParallelToolCalls,
		prompt:   agent.Prompt{System: s.System, CWD: s.CWD, Sections: s.Sections, Context: s.Context},
		observer: s.Observer,
	}
}

// gear is what an agent works with in each of its lives.
type gear struct {
	hooks *hook.Set
	tools *tool.Registry
}

func (rt *Runtime) gear(s Spec) (gear, error) {
	g := gear{hooks: rt.hooks, tools: tool.NewRegistry(rt.tools)}
	if !s.filter.IsZero() {
		var err error
		if g.tools, err = tool.NewFiltered(rt.tools, s.filter.Allow, s.filter.Deny); err != nil {
			return g, &delegation.Error{Code: delegation.CodeFilter, Message: err.Error(), Cause: err}
		}
	}
	err := g.tools.Register(s.Tools...)
	if len(s.Hooks) > 0 || len(s.ExtraHeaders) > 0 {
		all := append(append([]any(nil), rt.opts.Hooks...), s.Hooks...)
		if len(s.ExtraHeaders) > 0 {
			all = append(all, headers(s.ExtraHeaders))
		}
		hooks, herr := hook.NewSet(all...)
		g.hooks, err = hooks, errors.Join(err, herr)
	}
	return g, err
}

// encodeBody encodes the members once, sorted by name, so that every request
// has the same bytes.
func encodeBody(extra map[string]any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(extra); err != nil {
		return nil, fmt.Errorf("ExtraBody: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// headers is the stream hook that hands an agent's own headers to the adapter.
type headers http.Header

var _ hook.Stream = headers(nil)

// Stream implements [hook.Stream].
func (h headers) Stream(ctx context.Context, req *dsh.Request, next hook.StreamFunc) iter.Seq2[dsh.Chunk, error] {
	return next(llm.WithHeaders(ctx, http.Header(h)), req)
}
