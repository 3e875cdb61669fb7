package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Difference is one place where a trace is not what was expected.
type Difference struct {
	// Path names the place, beginning with the agent's key or the name of a
	// top-level part; it is also how a [Deviation] names it.
	Path      string
	Got, Want string // brief JSON, or what is wrong in words
}

// String returns the difference as one line.
func (d Difference) String() string {
	return fmt.Sprintf("%s: got %s, want %s", d.Path, d.Got, d.Want)
}

// The parts of a trace that are compared. Parts behind the marks are compared
// only where the expected trace has them. Not compared are toolRuns and the
// timeline of sub-agents, which depend on scheduling, and the scenario's name.
var (
	agentParts = []string{
		"origin", "events", "surface", "messages", "status", "inbox", "live", "seams", "header", "firstLiveSeq",
		"meter?",
	}
	topParts = []string{
		"requests", "checkpoints", "actions", "modelEntriesLeft", "lifecycle?", "summariesLeft?", "childEntriesLeft?",
	}
)

// Compare returns the differences of two normalised traces in the order of
// their parts. In sensitive ones the order between events of different types,
// and between calls of different extension points, does not matter.
func Compare(got, want map[string]any, sensitive bool) []Difference {
	if sensitive {
		got, want = unordered(got), unordered(want)
	}
	if _, trees := want["lifecycle"]; trees {
		got, want = bySession(got), bySession(want)
	}
	c := comparer{bound: make(map[string]string)}
	gotAgents, wantAgents := agentsOf(got), agentsOf(want)
	if g, w := keysOf(gotAgents), keysOf(wantAgents); !slices.Equal(g, w) {
		c.differ("agents", g, w)
	}
	for i, w := range wantAgents {
		if i < len(gotAgents) && gotAgents[i]["key"] == w["key"] {
			c.parts(fmt.Sprint(w["key"], "."), agentParts, gotAgents[i], w)
		}
	}
	c.parts("", topParts, got, want)
	return c.found
}

// comparer collects differences and what the placeholders stood for so far.
type comparer struct {
	found []Difference
	bound map[string]string
}

func (c *comparer) differ(path string, got, want any) {
	c.found = append(c.found, Difference{Path: path, Got: show(got), Want: show(want)})
}

func (c *comparer) parts(prefix string, parts []string, got, want object) {
	for _, part := range parts {
		if name := part[:len(part)-1]; part[len(part)-1] == '?' {
			if _, has := want[name]; !has {
				continue
			}
			part = name
		}
		g, gotIt := got[part]
		w, wantIt := want[part]
		if part == "header" {
			g, w = withoutZeroDepth(g), withoutZeroDepth(w)
		}
		c.member(prefix+part, g, gotIt, w, wantIt)
	}
}

// withoutZeroDepth drops a depth of 0 from a session header: a top-level
// session may say it or leave it out.
func withoutZeroDepth(header any) any {
	h, ok := header.(object)
	if !ok || h["delegationDepth"] != 0.0 {
		return header
	}
	h = maps.Clone(h)
	delete(h, "delegationDepth")
	return h
}

type absence struct{}

func (c *comparer) member(path string, got any, gotIt bool, want any, wantIt bool) {
	switch {
	case gotIt && wantIt:
		c.value(path, got, want)
	case gotIt:
		c.differ(path, got, absence{})
	case wantIt:
		c.differ(path, absence{}, want)
	}
}

func (c *comparer) value(path string, got, want any) {
	switch want := want.(type) {
	case object:
		if got, ok := got.(object); ok {
			c.object(path, got, want)
			return
		}
	case []any:
		if got, ok := got.([]any); ok {
			c.list(path, got, want)
			return
		}
	case string:
		if got, ok := got.(string); ok && c.matches(got, want) {
			return
		}
	default:
		if got == want {
			return
		}
	}
	c.differ(path, got, want)
}

func (c *comparer) object(path string, got, want object) {
	// Entries of another kind have nothing in common worth listing.
	for _, kind := range []string{"type", "seam", "where", "edge"} {
		if got[kind] != want[kind] {
			c.differ(path, got, want)
			return
		}
	}
	names := slices.Collect(maps.Keys(want))
	for name := range got {
		if _, both := want[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		g, gotIt := got[name]
		w, wantIt := want[name]
		c.member(path+"."+name, g, gotIt, w, wantIt)
	}
}

// mostPerList is how many different elements of a list are shown: behind them
// everything is usually shifted.
const mostPerList = 2

func (c *comparer) list(path string, got, want []any) {
	if len(got) != len(want) {
		c.found = append(c.found, Difference{
			Path: path, Got: fmt.Sprintf("%d entries", len(got)), Want: fmt.Sprintf("%d", len(want)),
		})
	}
	different := 0
	for i := range max(len(got), len(want)) {
		before := len(c.found)
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case i >= len(got):
			c.differ(at, absence{}, want[i])
		case i >= len(want):
			c.differ(at, got[i], absence{})
		default:
			c.value(at, got[i], want[i])
		}
		if len(c.found) > before {
			if different++; different == mostPerList {
				return
			}
		}
	}
}

func agentsOf(trace object) []object {
	list, _ := trace["agents"].([]any)
	agents := make([]object, len(list))
	for i, a := range list {
		agents[i], _ = a.(object)
	}
	return agents
}

func keysOf(agents []object) []string {
	keys := make([]string, len(agents))
	for i, a := range agents {
		keys[i] = fmt.Sprint(a["key"])
	}
	return keys
}

// show returns a value as brief JSON.
func show(v any) string {
	if v == (absence{}) {
		return "nothing"
	}
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprintf("%v", v)
	}
	line := strings.TrimSuffix(text.String(), "\n")
	const most = 200
	if len(line) > most {
		return line[:most] + "…"
	}
	return line
}

// unordered returns a copy of a trace in which events and seams are grouped by
// kind. Sequence numbers become the kind of event and its place among those;
// how many events preceded something is left out.
func unordered(trace object) object {
	out := maps.Clone(trace)
	agents := []any{}
	for _, a := range agentsOf(trace) {
		agents = append(agents, unorderedAgent(a))
	}
	out["agents"] = agents
	out["requests"] = withoutAfterSeq(trace["requests"])
	return out
}

// bySession returns a copy of a trace whose requests are grouped by session:
// which of two agents that work side by side asks first is not anybody's rule.
func bySession(trace object) object {
	out := maps.Clone(trace)
	groups := object{}
	list, _ := trace["requests"].([]any)
	for _, r := range list {
		session := fmt.Sprint(r.(object)["session"])
		group, _ := groups[session].([]any)
		groups[session] = append(group, r)
	}
	out["requests"] = groups
	return out
}

func unorderedAgent(agent object) object {
	out := maps.Clone(agent)
	names := make(map[any]any) // by sequence number
	groups := object{}
	events, _ := agent["events"].([]any)
	for _, e := range events {
		event, _ := e.(object)
		kind := fmt.Sprint(event["type"])
		group, _ := groups[kind].([]any)
		names[event["seq"]] = fmt.Sprintf("%s#%d", kind, len(group))
		event = maps.Clone(event)
		delete(event, "seq")
		groups[kind] = append(group, event)
	}
	for _, group := range groups {
		for _, e := range group.([]any) {
			event := e.(object)
			if cited, ok := event["sourceEventSeqs"].([]any); ok {
				event["sourceEventSeqs"] = rename(cited, names)
			}
			if op, ok := event["surfaceOp"].(object); ok {
				event["surfaceOp"] = object{"op": op["op"], "start": names[op["start"]], "end": names[op["end"]]}
			}
		}
	}
	out["events"] = groups
	if surface, ok := agent["surface"].([]any); ok {
		out["surface"] = rename(surface, names)
	}
	out["live"] = withoutAfterSeq(agent["live"])
	seams := object{}
	calls, _ := withoutAfterSeq(agent["seams"]).([]any)
	for _, call := range calls {
		seam := fmt.Sprint(call.(object)["seam"])
		group, _ := seams[seam].([]any)
		seams[seam] = append(group, call)
	}
	out["seams"] = seams
	return out
}

func rename(seqs []any, names map[any]any) []any {
	out := make([]any, len(seqs))
	for i, seq := range seqs {
		out[i] = names[seq]
	}
	return out
}

func withoutAfterSeq(entries any) any {
	in, ok := entries.([]any)
	if !ok {
		return entries
	}
	out := make([]any, len(in))
	for i, e := range in {
		entry, _ := e.(object)
		entry = maps.Clone(entry)
		delete(entry, "afterSeq")
		out[i] = entry
	}
	return out
}
