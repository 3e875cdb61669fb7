package main

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/demo"
	"github.com/dsh-actor/dsh-actor/actors/llm/openai"
)

// Names of the providers.
const (
	providerDemo     = "demo"
	providerOpenAI   = "openai"
	providerDeepSeek = "deepseek"
)

var providerNames = []string{providerDemo, providerOpenAI, providerDeepSeek}

const (
	defaultDeepSeekURL   = "https://api.deepseek.com"
	defaultDeepSeekModel = "deepseek-v4-flash"
	defaultOpenAIURL     = "https://api.openai.com/v1"
)

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
	// release frees what the provider holds.
	release func()
}

// route chooses the provider from the flags and the environment.
func (a *app) route(f *runFlags) (route, error) {
	r := route{provider: first(f.provider, a.env(envProvider)), release: func() {}}
	named := "--provider"
	if f.provider == "" {
		named = envProvider
	}
	if r.provider == "" {
		r.provider, r.note = a.guess(f)
	}
	switch r.provider {
	case providerDemo:
		return a.demoRoute(r, f)
	case providerDeepSeek:
		r.model = first(f.model, a.env(envModel), defaultDeepSeekModel)
		return a.remote(r, f, defaultDeepSeekURL, envDeepSeekKey, openai.DialectDeepSeek)
	case providerOpenAI:
		if r.model = first(f.model, a.env(envModel)); r.model == "" {
			return r, usagef("--provider %s needs a model: name one with --model or %s", r.provider, envModel)
		}
		return a.remote(r, f, defaultOpenAIURL, envOpenAIKey, openai.DialectAuto)
	}
	return r, oneOf(named, r.provider, providerNames)
}

// guess returns the provider when none was named.
func (a *app) guess(f *runFlags) (provider, note string) {
	switch {
	case a.env(envDeepSeekKey) != "":
		return providerDeepSeek, ""
	case a.env(envOpenAIKey) != "":
		return providerOpenAI, ""
	case first(f.baseURL, a.env(envBaseURL)) != "":
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
// needed where there is none without it: at the provider's own address.
func (a *app) remote(r route, f *runFlags, standard, keyName string, dialect openai.Dialect) (route, error) {
	r.baseURL = first(f.baseURL, a.env(envBaseURL), standard)
	key := first(a.env(envKey), a.env(keyName))
	if key == "" && r.baseURL == standard {
		return r, usagef("--provider %s needs a key: set %s or %s, or use '--provider %s'", r.provider, keyName, envKey, providerDemo)
	}
	p, err := openai.New(openai.Options{BaseURL: r.baseURL, APIKey: key, Dialect: dialect})
	if err != nil {
		return r, usagef("--provider %s: %w", r.provider, err)
	}
	r.served, r.release = p, p.CloseIdleConnections
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
