package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Normalize replaces the identifiers of a trace in place: those of messages
// by m1, m2, …, those of retries by r1, r2, …, each in the order in which the
// events of the agents first name them, wherever they occur, also inside
// texts. Literal identifiers stay. Names are pairs of an identifier and what
// stands for it.
func Normalize(trace map[string]any, literal map[string]bool, names ...string) {
	n := normalizer{names: make(map[string]string)}
	for pair := range slices.Chunk(names, 2) {
		n.add(pair[0], pair[1])
	}
	messages, retries := 0, 0
	for event := range eventsOf(trace) {
		for _, id := range messageIDs(event) {
			if !literal[id] && n.names[id] == "" {
				messages++
				n.add(id, fmt.Sprintf("m%d", messages))
			}
		}
		data, _ := event["data"].(object)
		if id, ok := data["retryId"].(string); ok && n.names[id] == "" {
			retries++
			n.add(id, fmt.Sprintf("r%d", retries))
		}
	}
	n.compile()
	for key, value := range trace {
		trace[key] = n.value(value)
	}
}

// eventsOf yields the events of all agents in order.
func eventsOf(trace map[string]any) func(yield func(object) bool) {
	return func(yield func(object) bool) {
		agents, _ := trace["agents"].([]any)
		for _, a := range agents {
			agent, _ := a.(object)
			events, _ := agent["events"].([]any)
			for _, e := range events {
				if event, ok := e.(object); ok && !yield(event) {
					return
				}
			}
		}
	}
}

// messageIDs returns the identifiers of the messages that an event holds, in
// order.
func messageIDs(event object) []string {
	data, _ := event["data"].(object)
	var found []string
	add := func(message any) {
		if m, ok := message.(object); ok {
			if id, ok := m["id"].(string); ok && id != "" {
				found = append(found, id)
			}
		}
	}
	if event["type"] == "user/message" {
		add(data)
	}
	add(data["message"])
	inserted, _ := data["inserted"].([]any)
	for _, m := range inserted {
		add(m)
	}
	return found
}

// literalIDs returns the identifiers of messages that the scenario wrote down
// itself, in a literal log or a raw append.
func (s *Scenario) literalIDs() map[string]bool {
	literal := make(map[string]bool)
	note := func(event any) {
		if e, ok := event.(object); ok {
			for _, id := range messageIDs(e) {
				literal[id] = true
			}
		}
	}
	for i := range s.Script {
		s.Script[i].walk(func(a *Action) {
			if a.Append != nil {
				note(generic(a.Raw).(object)["append"])
			}
			if a.Resume != nil {
				for _, event := range a.Resume.Log {
					note(generic(event))
				}
			}
		})
	}
	return literal
}

// walk visits the action and those inside it.
func (a *Action) walk(visit func(*Action)) {
	visit(a)
	for i := range a.Batch {
		a.Batch[i].walk(visit)
	}
	if a.Maintenance != nil {
		for i := range a.Maintenance.Do {
			a.Maintenance.Do[i].walk(visit)
		}
	}
}

// A normalizer replaces identifiers in strings. An identifier counts where no
// letter or digit touches it.
type normalizer struct {
	names   map[string]string
	pattern *regexp.Regexp
}

func (n *normalizer) add(id, name string) { n.names[id] = name }

func (n *normalizer) compile() {
	if len(n.names) == 0 {
		return
	}
	var ids []string
	for id := range n.names {
		ids = append(ids, id)
	}
	// The longest first: one may begin with another.
	slices.SortFunc(ids, func(a, b string) int {
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for i, id := range ids {
		ids[i] = regexp.QuoteMeta(id)
	}
	n.pattern = regexp.MustCompile(strings.Join(ids, "|"))
}

func (n *normalizer) value(v any) any {
	switch v := v.(type) {
	case string:
		return n.text(v)
	case []any:
		for i := range v {
			v[i] = n.value(v[i])
		}
	case object:
		for key := range v {
			v[key] = n.value(v[key])
		}
	}
	return v
}

func (n *normalizer) text(s string) string {
	if n.pattern == nil {
		return s
	}
	var out strings.Builder
	end := 0
	for _, at := range n.pattern.FindAllStringIndex(s, -1) {
		if at[0] > 0 && wordByte(s[at[0]-1]) || at[1] < len(s) && wordByte(s[at[1]]) {
			continue
		}
		out.WriteString(s[end:at[0]])
		out.WriteString(n.names[s[at[0]:at[1]]])
		end = at[1]
	}
	if end == 0 {
		return s
	}
	out.WriteString(s[end:])
	return out.String()
}

func wordByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
