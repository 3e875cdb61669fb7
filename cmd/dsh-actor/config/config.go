// Package config reads the configuration of the command line: defaults, the
// user's file, the project's file, the environment and flags, each over those
// before it. Unknown keys are errors that name the nearest valid one, with file
// and line. docs/configuration.md describes every key.
//
// Keys of providers are never read from a file, which gets copied, committed
// and shown: a file names environment variables that hold them. A project's
// file came with the project, so it may not say where a key is found, nor send
// one to another host.
package config

import "time"

// Config is everything that can be configured. Zero values are unset.
type Config struct {
	// Provider, Model and BaseURL are the defaults of the flags.
	Provider string `koanf:"provider"`
	Model    string `koanf:"model"`
	BaseURL  string `koanf:"base_url"`

	MaxTokens       int      `koanf:"max_tokens"`
	ReasoningEffort string   `koanf:"reasoning_effort"`
	Temperature     *float64 `koanf:"temperature"`
	TopP            *float64 `koanf:"top_p"`
	Seed            *int64   `koanf:"seed"`
	Stop            []string `koanf:"stop"`

	// Store says what becomes of sessions: StoreJSONL, the default, or
	// StoreMemory.
	Store    string   `koanf:"store"`
	Sessions Sessions `koanf:"sessions"`

	// Audit logs a digest of each request as it is sent (policy/audit).
	Audit bool `koanf:"audit"`

	Retry     Retry               `koanf:"retry"`
	Providers map[string]Provider `koanf:"providers"`
}

// Stores that sessions can be in.
const (
	StoreJSONL  = "jsonl"  // files, in the format of dsh
	StoreMemory = "memory" // nothing is kept
)

// Stores are all stores, the default first.
var Stores = []string{StoreJSONL, StoreMemory}

// Sessions configures where sessions are.
type Sessions struct {
	// Dir is a whole path, or one that begins with ~/; empty for the place in
	// the home directory.
	Dir string `koanf:"dir"`
}

// Retry configures policy/retry.
type Retry struct {
	MaxRetries *int          `koanf:"max_retries"`
	MaxEmpty   *int          `koanf:"max_empty"`
	Truncated  string        `koanf:"truncated"`
	Initial    time.Duration `koanf:"initial"`
	Max        time.Duration `koanf:"max"`
}

// Provider is an OpenAI-compatible endpoint.
type Provider struct {
	BaseURL string `koanf:"base_url"`
	// APIKeyEnv names environment variables with keys; those that are set are
	// used in turn.
	APIKeyEnv []string `koanf:"api_key_env"`
	Dialect   string   `koanf:"dialect"`
	// DefaultModel is the model when none is named.
	DefaultModel string           `koanf:"default_model"`
	Models       map[string]Model `koanf:"models"`
	Limits       Limits           `koanf:"limits"`

	FirstByteTimeout time.Duration `koanf:"first_byte_timeout"`
	IdleTimeout      time.Duration `koanf:"idle_timeout"`
	TokenIdleTimeout time.Duration `koanf:"token_idle_timeout"`
	TotalTimeout     time.Duration `koanf:"total_timeout"`

	Truncated           string `koanf:"truncated"`
	RejectReasoningOnly bool   `koanf:"reject_reasoning_only"`
	SplitThink          bool   `koanf:"split_think"`

	ExtraBody       map[string]any    `koanf:"extra_body"`
	Headers         map[string]string `koanf:"headers"`
	HeadersEnv      map[string]string `koanf:"headers_env"`
	InitiatorHeader string            `koanf:"initiator_header"`
}

// Model is what is known of a model.
type Model struct {
	ContextWindow   int    `koanf:"context_window"`
	MaxTokens       int    `koanf:"max_tokens"`
	ReasoningEffort string `koanf:"reasoning_effort"`
	Price           Price  `koanf:"price"`
}

// Price is for a million tokens.
type Price struct {
	Input      float64 `koanf:"input"`
	CacheRead  float64 `koanf:"cache_read"`
	CacheWrite float64 `koanf:"cache_write"`
	Output     float64 `koanf:"output"`
	Currency   string  `koanf:"currency"`
}

// Limits are per key.
type Limits struct {
	Concurrency       int `koanf:"concurrency"`
	RequestsPerMinute int `koanf:"requests_per_minute"`
	TokensPerMinute   int `koanf:"tokens_per_minute"`
	Burst             int `koanf:"burst"`
}

// Names and addresses of the providers that need no file.
const (
	DeepSeek      = "deepseek"
	OpenAI        = "openai"
	DeepSeekURL   = "https://api.deepseek.com"
	OpenAIURL     = "https://api.openai.com/v1"
	DeepSeekModel = "deepseek-v4-flash"
)

// defaults is the lowest layer.
func defaults() map[string]any {
	window := map[string]any{"context_window": 1_000_000}
	return map[string]any{"providers": map[string]any{
		DeepSeek: map[string]any{
			"base_url": DeepSeekURL, "api_key_env": []any{"DEEPSEEK_API_KEY"}, "dialect": "deepseek",
			"default_model": DeepSeekModel,
			"models":        map[string]any{"deepseek-v4-flash": window, "deepseek-v4-pro": window},
		},
		OpenAI: map[string]any{"base_url": OpenAIURL, "api_key_env": []any{"OPENAI_API_KEY"}},
	}}
}
