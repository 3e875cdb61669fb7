package dsh

import (
	"bytes"
	"encoding/json"
	"slices"
)

// CallConfig is the configuration of a model request as it is logged and may
// be changed by the request hooks. Zero values and nil are left out of the
// log and of the request.
//
// Parameters are no part of its JSON: the log has an event of their own.
type CallConfig struct {
	Provider        string
	Model           string
	ReasoningEffort string
	Temperature     *float64
	// MaxTokens caps the output, in tokens; 0 leaves it to the adapter.
	MaxTokens  int
	Stop       []string
	Parameters Parameters
}

// Equal reports whether both configurations are the same.
func (c CallConfig) Equal(d CallConfig) bool {
	return c.Provider == d.Provider && c.Model == d.Model && c.ReasoningEffort == d.ReasoningEffort &&
		c.MaxTokens == d.MaxTokens && slices.Equal(c.Stop, d.Stop) &&
		equalPtr(c.Temperature, d.Temperature) && c.Parameters.Equal(d.Parameters)
}

// AdapterDefaults marks the values of a CallConfig that the adapter filled in.
type AdapterDefaults struct {
	MaxTokens       bool
	ReasoningEffort bool
}

// Strip returns c without the values that d marks.
func (d AdapterDefaults) Strip(c CallConfig) CallConfig {
	if d.MaxTokens {
		c.MaxTokens = 0
	}
	if d.ReasoningEffort {
		c.ReasoningEffort = ""
	}
	return c
}

// ToolSchema is what a model is told of a tool. Parameters is its JSON Schema,
// kept raw so that its bytes never change between requests.
type ToolSchema struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// Equal reports whether both schemas are the same, byte for byte.
func (t ToolSchema) Equal(u ToolSchema) bool {
	return t.Name == u.Name && t.Description == u.Description && bytes.Equal(t.Parameters, u.Parameters)
}

// Header is everything about a request that is not its messages.
type Header struct {
	Config          CallConfig
	AdapterDefaults AdapterDefaults
	System          string
	Tools           []ToolSchema
}

// Equal reports whether both headers are the same.
func (h *Header) Equal(g *Header) bool {
	return h.Config.Equal(g.Config) && h.AdapterDefaults == g.AdapterDefaults && h.System == g.System &&
		(len(h.Tools) > 0 && len(h.Tools) == len(g.Tools) && &h.Tools[0] == &g.Tools[0] ||
			slices.EqualFunc(h.Tools, g.Tools, ToolSchema.Equal))
}

// A Request is what an adapter sends: a header and the history derived from
// the log. It is immutable.
type Request struct {
	Header   *Header
	Messages []*Message
	// Session and Pos say whose request it is, for logs and transports.
	Session SessionID
	Pos     Pos
	// Through is the last event of the log that Messages is derived from.
	Through Seq
}
