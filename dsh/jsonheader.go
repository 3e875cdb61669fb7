package dsh

import (
	"errors"
	"fmt"
)

func (h *Header) appendJSON(dst []byte) []byte {
	dst = h.Config.appendJSON(append(dst, `{"config":`...))
	switch d := h.AdapterDefaults; {
	case d.MaxTokens && d.ReasoningEffort:
		dst = append(dst, `,"adapterDefaults":{"maxTokens":true,"reasoningEffort":true}`...)
	case d.MaxTokens:
		dst = append(dst, `,"adapterDefaults":{"maxTokens":true}`...)
	case d.ReasoningEffort:
		dst = append(dst, `,"adapterDefaults":{"reasoningEffort":true}`...)
	}
	dst = optText(dst, `,"system":`, h.System)
	for i := range h.Tools {
		if i == 0 {
			dst = append(dst, `,"tools":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = h.Tools[i].appendJSON(dst)
	}
	if len(h.Tools) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// MarshalJSON returns the header as the log holds it; an empty system prompt
// and an empty list of tools are left out.
func (h Header) MarshalJSON() ([]byte, error) { return h.appendJSON(nil), nil }

// UnmarshalJSON reads a header.
func (h *Header) UnmarshalJSON(data []byte) error {
	return unmarshal(data, "header", decodeHeader, h)
}

func decodeHeader(v value) (h Header, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "config":
			h.Config, err = decodeCallConfig(v)
		case "adapterDefaults":
			h.AdapterDefaults, err = decodeAdapterDefaults(v)
		case "system":
			h.System, err = v.text()
		case "tools":
			if h.Tools, err = elements(v, decodeToolSchema); len(h.Tools) == 0 {
				h.Tools = nil
			}
		}
		return err
	}, "config")
	return h, err
}

func decodeAdapterDefaults(v value) (d AdapterDefaults, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "maxTokens":
			d.MaxTokens, err = v.boolean()
		case "reasoningEffort":
			d.ReasoningEffort, err = v.boolean()
		}
		return err
	})
	return d, err
}

func (c *CallConfig) appendJSON(dst []byte) []byte {
	dst = appendText(dst, `{"provider":`, c.Provider)
	dst = appendText(dst, `,"model":`, c.Model)
	dst = optText(dst, `,"reasoningEffort":`, c.ReasoningEffort)
	dst = optFloat(dst, `,"temperature":`, c.Temperature)
	dst = optInt(dst, `,"maxTokens":`, c.MaxTokens)
	for i, s := range c.Stop {
		if i == 0 {
			dst = append(dst, `,"stop":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, s)
	}
	if len(c.Stop) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// MarshalJSON returns the configuration as the log holds it.
func (c CallConfig) MarshalJSON() ([]byte, error) { return c.appendJSON(nil), nil }

// UnmarshalJSON reads a configuration; every member may be absent.
func (c *CallConfig) UnmarshalJSON(data []byte) error {
	return unmarshal(data, "call config", decodeCallConfig, c)
}

func decodeCallConfig(v value) (c CallConfig, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "provider":
			c.Provider, err = v.text()
		case "model":
			c.Model, err = v.text()
		case "reasoningEffort":
			c.ReasoningEffort, err = v.text()
		case "temperature":
			c.Temperature, err = decodePtr(v, value.number)
		case "maxTokens":
			c.MaxTokens, err = intOf[int](v)
		case "stop":
			if c.Stop, err = elements(v, value.text); len(c.Stop) == 0 {
				c.Stop = nil
			}
		}
		return err
	})
	return c, err
}

func (t *ToolSchema) appendJSON(dst []byte) []byte {
	dst = appendText(dst, `{"name":`, t.Name)
	dst = appendText(dst, `,"description":`, t.Description)
	return append(optRaw(dst, `,"parameters":`, t.Parameters), '}')
}

// MarshalJSON returns the schema as the log holds it.
func (t ToolSchema) MarshalJSON() ([]byte, error) { return t.appendJSON(nil), nil }

// UnmarshalJSON reads a schema; its parameters are kept byte for byte.
func (t *ToolSchema) UnmarshalJSON(data []byte) error {
	return unmarshal(data, "tool schema", decodeToolSchema, t)
}

func decodeToolSchema(v value) (t ToolSchema, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "name":
			t.Name, err = v.text()
		case "description":
			t.Description, err = v.text()
		case "parameters":
			t.Parameters = v.raw()
		}
		return err
	}, "name")
	return t, err
}

// ErrVersion is wrapped by the error for a session header of another format
// version. The log may be sound; this build cannot read it.
var ErrVersion = errors.New("unsupported session format")

// AppendJSON appends the header as the first line of a log, without a line
// break.
func (h *SessionHeader) AppendJSON(dst []byte) []byte {
	dst = appendInt(dst, `{"type":"session","version":`, h.Version)
	dst = appendText(dst, `,"id":`, h.ID)
	dst = appendInt(dst, `,"createdAt":`, h.CreatedAt)
	dst = optText(dst, `,"cwd":`, h.CWD)
	dst = optText(dst, `,"parentSession":`, h.ParentSession)
	if h.HasSeed {
		dst = appendInt(dst, `,"seedLength":`, h.SeedLength)
	}
	dst = optText(dst, `,"origin":`, h.Origin)
	dst = appendInt(dst, `,"delegationDepth":`, h.DelegationDepth)
	return append(optText(dst, `,"agentPreset":`, h.AgentPreset), '}')
}

// MarshalJSON returns the header as [SessionHeader.AppendJSON] writes it.
func (h SessionHeader) MarshalJSON() ([]byte, error) { return h.AppendJSON(nil), nil }

// UnmarshalJSON reads the first line of a log. The version is looked at before
// anything else: one other than [FormatVersion] gives an error that wraps
// [ErrVersion].
func (h *SessionHeader) UnmarshalJSON(line []byte) error {
	return unmarshal(line, "session header", decodeSessionHeader, h)
}

func decodeSessionHeader(v value) (h SessionHeader, err error) {
	if err := checkVersion(v); err != nil {
		return h, err
	}
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "type":
			if s, err := v.text(); err != nil || s != "session" {
				return errors.New(`must be "session"`)
			}
		case "version":
			h.Version, err = intOf[int](v)
		case "id":
			h.ID, err = textOf[SessionID](v)
		case "createdAt":
			h.CreatedAt, err = countOf[int64](v)
		case "cwd":
			h.CWD, err = v.text()
		case "parentSession":
			h.ParentSession, err = textOf[SessionID](v)
		case "seedLength":
			h.HasSeed = true
			h.SeedLength, err = countOf[Seq](v)
		case "origin":
			if h.Origin, err = v.text(); err != nil || h.Origin != "subagent" {
				return errors.New(`must be "subagent" or absent`)
			}
		case "delegationDepth":
			h.DelegationDepth, err = countOf[int](v)
		case "agentPreset":
			h.AgentPreset, err = v.text()
		case "sandboxMode", "approvalPolicy":
			err = errors.New("is a retired member")
		}
		return err
	}, "type", "version", "id", "createdAt", "delegationDepth")
	return h, err
}

// checkVersion says in words of its own what another version means, whatever
// else the line holds.
func checkVersion(v value) error {
	raw, err := v.member("version")
	switch {
	case err != nil:
		return err
	case raw == nil:
		return within("version", errMissing)
	}
	switch n, err := raw.integer(); {
	case err != nil:
		return within("version", err)
	case n > FormatVersion:
		return fmt.Errorf("%w: version %d is newer than %d, the one this build reads", ErrVersion, n, FormatVersion)
	case n < FormatVersion:
		return fmt.Errorf("%w: version %d is older than %d, the one this build reads", ErrVersion, n, FormatVersion)
	}
	return nil
}
