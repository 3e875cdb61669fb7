package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/demo"
	"github.com/dsh-actor/dsh-actor/actors/llm/openai"
	"github.com/dsh-actor/dsh-actor/cmd/dsh-actor/config"
)

// Names of the providers.
const (
	providerDemo     = "demo"
	providerOpenAI   = config.OpenAI
	providerDeepSeek = config.DeepSeek
)

var providerNames = []string{providerDemo, providerOpenAI, providerDeepSeek}

// Variables of the environment. Keys come from here and from nowhere else.
const (
	envProvider    = "DSH_ACTOR_PROVIDER"
	envModel       = "DSH_ACTOR_MODEL"
	envBaseURL     = "DSH_ACTOR_BASE_URL"
	envKey         = "DSH_ACTOR_API_KEY"
	envDeepSeekKey = "DEEPSEEK_API_KEY"
	envOpenAIKey   = "OPENAI_API_KEY"
)

// A route is who answers, and how.
type route struct {
	provider string
	model    string
	baseURL  string
	served   llm.Provider
	// note is said at the start; empty for none.
	note string
	// limits are per key; nil for the demo.
	limits *llm.Limits
	// price is that of a model; the zero one is unknown.
	price func(model string) llm.Price
	// release frees what the provider holds.
	release func()
}

// route chooses the provider from the configuration.
func (a *app) route(f *runFlags, cfg *config.Loaded, quiet func(context.Context, openai.Quiet)) (route, error) {
	r := route{
		provider: cfg.Provider, release: func() {}, price: func(string) llm.Price { return llm.Price{} },
	}
	named := "--provider"
	if f.provider == "" {
		named = envProvider
		if a.env(envProvider) == "" {
			named = "provider"
		}
	}
	if r.provider == "" {
		r.provider, r.note = a.guess(cfg)
	}
	if r.provider == providerDemo {
		return a.demoRoute(r, f)
	}
	if err := oneOf(named, r.provider, namesOf(cfg)); err != nil {
		return r, err
	}
	if r.model = first(cfg.Model, cfg.Providers[r.provider].DefaultModel); r.model == "" {
		return r, usagef("--provider %s needs a model: name one with --model or %s", r.provider, envModel)
	}
	return a.remote(r, cfg, quiet)
}

// guess returns the provider when none was named.
func (a *app) guess(cfg *config.Loaded) (provider, note string) {
	switch {
	case a.env(envDeepSeekKey) != "":
		return providerDeepSeek, ""
	case a.env(envOpenAIKey) != "":
		return providerOpenAI, ""
	case cfg.BaseURL != "":
		return providerOpenAI, ""
	case a.env(envKey) != "":
		return providerDeepSeek, ""
	}
	return providerDemo, fmt.Sprintf("no API key and no --provider, so the scripted demo answers; set %s or %s for a real model", envDeepSeekKey, envOpenAIKey)
}

// demoRoute refuses flags that the demo would ignore. Defaults from the
// environment may be there for other providers.
func (a *app) demoRoute(r route, f *runFlags) (route, error) {
	for flag, value := range map[string]string{"model": f.model, "base-url": f.baseURL} {
		if value == "" || flag == "model" && value == demo.Model {
			continue
		}
		if r.note != "" {
			return r, usagef("--%s needs a provider: set %s or %s, or name one with --provider", flag, envDeepSeekKey, envOpenAIKey)
		}
		return r, usagef("--%s does not go with --provider %s", flag, providerDemo)
	}
	r.model = demo.Model
	r.served = demo.New(demo.Options{Pace: a.pace})
	return r, nil
}

// remote makes the provider of an OpenAI-compatible endpoint. A key is only
// needed where there is none without it: at the provider's own address, if it
// names any.
func (a *app) remote(r route, cfg *config.Loaded, quiet func(context.Context, openai.Quiet)) (route, error) {
	p := cfg.Providers[r.provider]
	r.baseURL = cfg.Address(r.provider)
	if len(cfg.Keys(r.provider)) == 0 && len(p.APIKeyEnv) > 0 && r.baseURL == p.BaseURL {
		return r, usagef("--provider %s needs a key: set %s or %s, or use '--provider %s'",
			r.provider, strings.Join(p.APIKeyEnv, " or "), envKey, providerDemo)
	}
	built, err := cfg.Build(r.provider, quiet)
	if err != nil {
		return r, usagef("--provider %s: %w", r.provider, err)
	}
	r.served, r.limits, r.release = built.Provider, &built.Limits, built.Release
	r.price = func(model string) llm.Price { return built.Model(model).Price }
	return r, nil
}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// namesOf returns the names of all providers: those that need no configuration
// first.
func namesOf(cfg *config.Loaded) []string {
	names := slices.Clone(providerNames)
	for _, name := range cfg.Names() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
