package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/openai"
	"github.com/dsh-actor/dsh-actor/policy/retry"
)

// envKey comes before the variables that a provider names.
const envKey = envPrefix + "API_KEY"

// Names returns the names of the providers, sorted.
func (l *Loaded) Names() []string { return slices.Sorted(maps.Keys(l.Providers)) }

// Address returns where a provider's requests go: the base URL given for this
// run, or the provider's own.
func (l *Loaded) Address(name string) string {
	if l.BaseURL != "" {
		return l.BaseURL
	}
	return l.Providers[name].BaseURL
}

// Keys returns the variables that hold keys for a provider.
func (l *Loaded) Keys(name string) []string {
	if l.env(envKey) != "" {
		return []string{envKey}
	}
	var set []string
	for _, v := range l.Providers[name].APIKeyEnv {
		if l.env(v) != "" {
			set = append(set, v)
		}
	}
	return set
}

// A Built provider is ready to serve.
type Built struct {
	llm.Provider
	Limits llm.Limits
	// Release frees what it holds.
	Release func()
}

// Build makes a provider, with one of the adapter per key. quiet may be nil.
func (l *Loaded) Build(name string, quiet func(context.Context, openai.Quiet)) (Built, error) {
	p, address, keys := l.Providers[name], l.Address(name), l.Keys(name)
	if err := l.trusts(name, address, keys); err != nil {
		return Built{}, err
	}
	if len(keys) == 0 {
		keys = []string{""}
	}
	var adapters []llm.Provider
	var closers []func()
	for _, variable := range keys {
		o, err := p.options(l.env)
		if err != nil {
			return Built{}, err
		}
		o.BaseURL, o.Quiet = address, quiet
		if variable != "" {
			o.APIKey = l.env(variable)
		}
		a, err := openai.New(o)
		if err != nil {
			return Built{}, err
		}
		adapters, closers = append(adapters, a), append(closers, a.CloseIdleConnections)
	}
	b := Built{Provider: adapters[0], Limits: llm.Limits(p.Limits), Release: func() {
		for _, c := range closers {
			c()
		}
	}}
	if len(adapters) > 1 {
		b.Provider = llm.NewKeys(adapters...)
	}
	return b, b.Limits.Check()
}

// trusts refuses to send secrets where a project's file alone says so.
func (l *Loaded) trusts(name, address string, keys []string) error {
	providers, _ := l.project["providers"].(map[string]any)
	own, _ := providers[name].(map[string]any)
	for _, theirs := range []any{l.project["base_url"], own["base_url"]} {
		if theirs != address || isLoopback(address) || len(keys) == 0 && len(l.Providers[name].HeadersEnv) == 0 {
			continue
		}
		return fmt.Errorf("the project's file sends provider %s to %s, which is not trusted with your key: "+
			"put base_url into your own file or give it with --base-url", name, address)
	}
	return nil
}

func (p Provider) options(env func(string) string) (openai.Options, error) {
	o := openai.Options{
		Dialect:          openai.Dialect(strings.TrimPrefix(p.Dialect, "auto")),
		FirstByteTimeout: p.FirstByteTimeout, IdleTimeout: p.IdleTimeout,
		TokenIdleTimeout: p.TokenIdleTimeout, TotalTimeout: p.TotalTimeout,
		Truncated:           openai.TruncatedPolicy(strings.TrimPrefix(p.Truncated, "require-done")),
		RejectReasoningOnly: p.RejectReasoningOnly, SplitThink: p.SplitThink,
		ExtraBody: p.ExtraBody, Headers: http.Header{}, InitiatorHeader: p.InitiatorHeader,
		Models: map[string]llm.Model{},
	}
	for name, value := range p.Headers {
		o.Headers.Set(name, value)
	}
	var errs []error
	for name, variable := range p.HeadersEnv {
		value := env(variable)
		if value == "" {
			errs = append(errs, fmt.Errorf("headers_env: %s is not set, which header %s is taken from", variable, name))
		}
		o.Headers.Set(name, value)
	}
	for name, m := range p.Models {
		o.Models[name] = llm.Model{
			ContextWindow: m.ContextWindow, MaxTokens: m.MaxTokens, ReasoningEffort: m.ReasoningEffort,
			Price: llm.Price(m.Price),
		}
	}
	return o, errors.Join(errs...)
}

// Options returns the retry policy's.
func (r Retry) Options() retry.Options {
	return retry.Options{
		MaxRetries: orNone(r.MaxRetries), MaxEmpty: orNone(r.MaxEmpty), Truncated: retry.Truncated(r.Truncated),
		Initial: r.Initial, Max: r.Max,
	}
}

// orNone turns a configured 0 into the policy's none.
func orNone(n *int) int {
	switch {
	case n == nil:
		return 0
	case *n == 0:
		return -1
	}
	return *n
}
