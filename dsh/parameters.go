package dsh

import (
	"bytes"
	"encoding/json"
)

// Parameters are the members of a request's configuration that the session
// format has no place for: sampling beyond the temperature, and fields of the
// provider's own. The model's answer depends on them, so they are logged, but
// in an event of their own (see [RequestParameters]). The zero value has none.
type Parameters struct {
	TopP *float64
	Seed *int64
	// Logprobs asks for the log probability of each token, TopLogprobs for
	// that of so many others at each place.
	Logprobs    bool
	TopLogprobs int
	// Body holds further members of the request's body as one JSON object,
	// or nil. Its bytes are sent as they are; a null leaves a member out.
	Body json.RawMessage
}

// IsZero reports whether p has none.
func (p Parameters) IsZero() bool { return p.Equal(Parameters{}) }

// Equal reports whether both are the same, Body byte for byte.
func (p Parameters) Equal(q Parameters) bool {
	return equalPtr(p.TopP, q.TopP) && equalPtr(p.Seed, q.Seed) &&
		p.Logprobs == q.Logprobs && p.TopLogprobs == q.TopLogprobs && bytes.Equal(p.Body, q.Body)
}

func equalPtr[T comparable](a, b *T) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

func (p *Parameters) appendJSON(dst []byte) []byte {
	start := len(dst)
	dst = optFloat(dst, `,"topP":`, p.TopP)
	if p.Seed != nil {
		dst = appendInt(dst, `,"seed":`, *p.Seed)
	}
	if p.Logprobs {
		dst = append(dst, `,"logprobs":true`...)
	}
	dst = optInt(dst, `,"topLogprobs":`, p.TopLogprobs)
	dst = optRaw(dst, `,"body":`, p.Body)
	if len(dst) == start {
		return append(dst, "{}"...)
	}
	dst[start] = '{'
	return append(dst, '}')
}

// MarshalJSON returns the parameters as the log holds them.
func (p Parameters) MarshalJSON() ([]byte, error) { return p.appendJSON(nil), nil }

// UnmarshalJSON reads parameters; every member may be absent.
func (p *Parameters) UnmarshalJSON(data []byte) error {
	return unmarshal(data, "parameters", decodeParameters, p)
}

func decodeParameters(v value) (p Parameters, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "topP":
			p.TopP, err = decodePtr(v, value.number)
		case "seed":
			p.Seed, err = decodePtr(v, value.integer)
		case "logprobs":
			p.Logprobs, err = v.boolean()
		case "topLogprobs":
			p.TopLogprobs, err = intOf[int](v)
		case "body":
			p.Body = v.raw()
		}
		return err
	})
	return p, err
}
