package openai

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// replayState is what of an answer has no place in blocks: what a server wants
// back unchanged with the history, and log probabilities, which nobody gets
// back. It travels in the message's source, so it is in the log.
type replayState struct {
	// ReasoningDetails are OpenRouter's, whole.
	ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
	// ExtraContent is Gemini's, of the message and by the ID of a call.
	ExtraContent json.RawMessage            `json:"extra_content,omitempty"`
	Calls        map[string]json.RawMessage `json:"calls,omitempty"`
	// Logprobs are the entries of the content, in order.
	Logprobs []json.RawMessage `json:"logprobs,omitempty"`
}

// state returns the replay state of an answer, or nil.
func (a *answer) state() json.RawMessage {
	r := replayState{ReasoningDetails: a.details.entries(), ExtraContent: a.extra, Logprobs: a.logprobs}
	for _, c := range a.calls.slots {
		if len(c.extra) > 0 {
			if r.Calls == nil {
				r.Calls = map[string]json.RawMessage{}
			}
			r.Calls[string(c.id)] = c.extra
		}
	}
	if len(r.ReasoningDetails)+len(r.ExtraContent)+len(r.Calls)+len(r.Logprobs) == 0 {
		return nil
	}
	var b bytes.Buffer
	if err := encodeJSON(&b, r); err != nil {
		return nil // a server's JSON was checked when it was decoded
	}
	return b.Bytes()
}

// replayOf returns what of a message goes back to the model that made it. Any
// other model would not understand it.
func replayOf(h *dsh.Header, m *dsh.Message) (r replayState) {
	from, ok := m.Source.(dsh.ModelSource)
	if !ok || len(from.ReplayState) == 0 || from.Provider != h.Config.Provider || from.Model != h.Config.Model {
		return r
	}
	decodeLoose(from.ReplayState, &r)
	return r
}

// Logprobs returns the log probabilities of an answer as the server told them,
// one entry per token of the text, or nil.
func Logprobs(m *dsh.Message) []json.RawMessage {
	from, ok := m.Source.(dsh.ModelSource)
	if !ok || len(from.ReplayState) == 0 {
		return nil
	}
	var r replayState
	decodeLoose(from.ReplayState, &r)
	return r.Logprobs
}

// details gathers the pieces of reasoning details: those of one index and type
// are one entry, whose texts are joined.
type details struct{ list []*detail }

type detail struct {
	index   count
	kind    string
	members []member
}

type member struct {
	name string
	raw  json.RawMessage
}

// joined are the members that come in pieces.
var joined = []string{"text", "summary", "data"}

func (d *details) add(raw json.RawMessage) {
	members, ok := orderedMembers(raw)
	if !ok {
		return
	}
	var head struct {
		Index count     `json:"index"`
		Type  looseText `json:"type"`
	}
	decodeLoose(raw, &head)
	if n := len(d.list); n > 0 {
		if last := d.list[n-1]; last.kind == head.Type.text && last.index == head.Index {
			last.extend(members)
			return
		}
	}
	for _, have := range d.list {
		if head.Index.told && have.index == head.Index && have.kind == head.Type.text {
			have.extend(members)
			return
		}
	}
	d.list = append(d.list, &detail{index: head.Index, kind: head.Type.text, members: members})
}

func (e *detail) extend(members []member) {
	for _, m := range members {
		i := slices.IndexFunc(e.members, func(have member) bool { return have.name == m.name })
		switch {
		case i < 0:
			e.members = append(e.members, m)
		case slices.Contains(joined, m.name):
			var before, piece string
			if json.Unmarshal(e.members[i].raw, &before) == nil && json.Unmarshal(m.raw, &piece) == nil {
				e.members[i].raw = encodeString(before + piece)
			}
		case string(m.raw) != "null":
			e.members[i].raw = m.raw
		}
	}
}

func (d *details) entries() []json.RawMessage {
	var out []json.RawMessage
	for _, e := range d.list {
		fields := make([]field, len(e.members))
		for i, m := range e.members {
			fields[i] = field{m.name, m.raw}
		}
		if raw, err := encodeObject(fields); err == nil {
			out = append(out, raw)
		}
	}
	return out
}

// text returns what a person can read of a piece of details, for servers that
// send it nowhere else.
func detailText(list []json.RawMessage) string {
	text := ""
	for _, raw := range list {
		var d struct {
			Text    looseText `json:"text"`
			Summary looseText `json:"summary"`
		}
		decodeLoose(raw, &d)
		text += d.Text.text + d.Summary.text
	}
	return text
}

// orderedMembers returns the members of a JSON object in their order.
func orderedMembers(raw json.RawMessage) (members []member, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, false
		}
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			return nil, false
		}
		s, _ := name.(string)
		members = append(members, member{s, v})
	}
	return members, true
}

// encodeString encodes a string, which cannot fail.
func encodeString(s string) json.RawMessage {
	var b bytes.Buffer
	_ = encodeJSON(&b, s)
	return b.Bytes()
}

// rawList is a list of JSON values; anything else is an empty one.
type rawList []json.RawMessage

// UnmarshalJSON implements json.Unmarshaler; it never fails.
func (l *rawList) UnmarshalJSON(b []byte) error {
	*l = nil
	var list []json.RawMessage
	if json.Unmarshal(b, &list) == nil {
		*l = list
	}
	return nil
}

// rawObject is a JSON object; anything else is nil.
type rawObject json.RawMessage

// UnmarshalJSON implements json.Unmarshaler; it never fails.
func (o *rawObject) UnmarshalJSON(b []byte) error {
	*o = nil
	if isObject(b) {
		*o = bytes.Clone(b)
	}
	return nil
}
