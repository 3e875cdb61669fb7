package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestATraceEqualsItself(t *testing.T) {
	for _, c := range load(t) {
		for _, sensitive := range []bool{false, true} {
			for _, d := range Compare(c.Trace, c.Trace, sensitive) {
				t.Errorf("%s: %v", c.Name, d)
			}
		}
	}
}

// Whatever is changed, added or left out in a compared part is found, and at
// the place where it is.
func TestMutationsAreFound(t *testing.T) {
	skip := func(path string) bool {
		return strings.Contains(path, "toolRuns") || strings.HasPrefix(path, ".scenario") ||
			strings.HasPrefix(path, ".timeline") || strings.HasSuffix(path, ".header.delegationDepth")
	}
	mutations := 0
	for i, c := range load(t) {
		if i%8 != 0 {
			continue
		}
		trace := clone(c.Trace).(object)
		mutate(trace, "", func(path string) {
			if skip(path) {
				return
			}
			mutations++
			if mutations%100 != i/8%100 {
				return // one of a hundred, others in each trace
			}
			if found := Compare(trace, c.Trace, false); len(found) == 0 {
				t.Errorf("%s: a change of %s was not found", c.Name, path)
			}
		})
		if d := Compare(trace, c.Trace, false); len(d) > 0 {
			t.Fatalf("%s: the test left a change behind: %v", c.Name, d[0])
		}
	}
	t.Logf("%d places", mutations)
}

// mutate changes one place after the other and undoes it again.
func mutate(v any, path string, check func(path string)) {
	switch v := v.(type) {
	case object:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at, old := path+"."+name, v[name]
			mutate(old, at, check)
			for _, other := range others(old) {
				v[name] = other
				check(at)
			}
			delete(v, name)
			check(at)
			v[name] = old
		}
		if path == "" || strings.HasPrefix(path, ".agents[") && strings.Count(path, ".") == 1 {
			return // members that the format does not have are no parts
		}
		v["unheard-of"] = "more"
		check(path + ".unheard-of")
		delete(v, "unheard-of")
	case []any:
		for i, old := range v {
			at := fmt.Sprintf("%s[%d]", path, i)
			mutate(old, at, check)
			for _, other := range others(old) {
				v[i] = other
				check(at)
			}
			v[i] = old
		}
	}
}

// others returns values that old may be mistaken for.
func others(old any) []any {
	switch old := old.(type) {
	case string:
		if placeholder.MatchString(old) {
			return []any{"", nil}
		}
		return []any{old + "x", "x" + old, nil}
	case float64:
		return []any{old + 1, fmt.Sprint(old)}
	case bool:
		return []any{!old, nil}
	case nil:
		return []any{"", false}
	case []any:
		out := []any{append(slices.Clone(old), "more")}
		if len(old) > 0 {
			out = append(out, old[1:])
		}
		return out
	}
	return []any{nil}
}

func TestDifferencesReadWell(t *testing.T) {
	agent := func(events ...any) object {
		return object{"agents": []any{object{"key": "a1", "events": events}}}
	}
	event := func(kind string, turn float64) object { return object{"type": kind, "data": object{"turn": turn}} }
	for _, c := range []struct {
		got, want object
		lines     []string
	}{
		{
			agent(event("turn/start", 1)), agent(event("turn/start", 2)),
			[]string{"a1.events[0].data.turn: got 1, want 2"},
		},
		{
			agent(event("turn/start", 1)), agent(event("turn/end", 1)),
			[]string{`a1.events[0]: got {"data":{"turn":1},"type":"turn/start"}, want {"data":{"turn":1},"type":"turn/end"}`},
		},
		{
			agent(event("a", 1), event("b", 1)), agent(event("a", 1)),
			[]string{"a1.events: got 2 entries, want 1", `a1.events[1]: got {"data":{"turn":1},"type":"b"}, want nothing`},
		},
		{
			object{"agents": []any{}}, agent(),
			[]string{`agents: got [], want ["a1"]`},
		},
		{
			object{"requests": []any{1.0, 2.0, 3.0, 4.0}}, object{"requests": []any{5.0, 6.0, 7.0, 8.0}},
			[]string{"requests[0]: got 1, want 5", "requests[1]: got 2, want 6"},
		},
	} {
		var lines []string
		for _, d := range Compare(c.got, c.want, false) {
			lines = append(lines, d.String())
		}
		if !slices.Equal(lines, c.lines) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(c.lines, "\n"))
		}
	}
}

func TestPlaceholders(t *testing.T) {
	for _, c := range []struct {
		pairs [][2]string // got, want
		last  bool        // whether the last pair matches; the others do
	}{
		{[][2]string{{"anything", "<any>"}}, true},
		{[][2]string{{"two\nlines", "<any>"}}, true},
		{[][2]string{{"", "<any>"}}, false},
		{[][2]string{{"I am.\n\nRun on m.", "<identity>\n\nRun on m."}}, true},
		{[][2]string{{"\n\nRun on m.", "<identity>\n\nRun on m."}}, false},
		{[][2]string{{"I am.\n\nRun on n.", "<identity>\n\nRun on m."}}, false},
		{[][2]string{{"I am.", "<identity>"}, {"I am.\n\nMore", "<identity>\n\nMore"}}, true},
		{[][2]string{{"I am.", "<identity>"}, {"I was.", "<identity>"}}, false},
		{[][2]string{{"one", "<any>"}, {"two", "<any>"}}, true},
		{[][2]string{{"one", "<settled child1 completed>"}, {"two", "<settled child1 completed>"}}, true},
		{[][2]string{{"Error: gone child1", "Error: <not-continuable child1>"}}, true},
		{[][2]string{{"A\n\nB", "<runtime-context>\n\n<context:delegation:348>"}}, true},
		{[][2]string{{"a < b > c", "a < b > c"}}, true},
		{[][2]string{{"a < b > d", "a < b > c"}}, false},
	} {
		m := comparer{bound: make(map[string]string)}
		for i, pair := range c.pairs {
			want := c.last || i < len(c.pairs)-1
			if got := m.matches(pair[0], pair[1]); got != want {
				t.Errorf("%q against %q: %v", pair[0], pair[1], got)
			}
		}
	}
}

// In a sensitive scenario only the order between kinds is free.
func TestSchedulingSensitive(t *testing.T) {
	event := func(seq float64, kind, call string, cites ...any) object {
		e := object{"seq": seq, "type": kind, "data": object{"callId": call}}
		if cites != nil {
			e["sourceEventSeqs"] = cites
		}
		return e
	}
	trace := func(events ...any) object {
		return object{"agents": []any{object{
			"key": "a1", "events": events, "surface": []any{},
			"live":  []any{object{"type": "agent/status", "afterSeq": float64(len(events))}},
			"seams": []any{},
		}}}
	}
	want := trace(event(0, "tool/call", "c1"), event(1, "tool/call", "c2"),
		event(2, "tool/result", "c1", 0.0), event(3, "tool/result", "c2", 1.0))
	for _, c := range []struct {
		got  object
		same bool
	}{
		{trace(event(0, "tool/call", "c1"), event(1, "tool/result", "c1", 0.0),
			event(2, "tool/call", "c2"), event(3, "tool/result", "c2", 2.0)), true},
		{trace(event(0, "tool/call", "c2"), event(1, "tool/call", "c1"),
			event(2, "tool/result", "c1", 0.0), event(3, "tool/result", "c2", 1.0)), false},
		{trace(event(0, "tool/call", "c1"), event(1, "tool/result", "c1", 0.0),
			event(2, "tool/call", "c2"), event(3, "tool/result", "c2", 0.0)), false},
		{trace(event(0, "tool/call", "c1"), event(1, "tool/result", "c1", 0.0), event(2, "tool/call", "c2")), false},
	} {
		if d := Compare(c.got, want, true); (len(d) == 0) != c.same {
			t.Errorf("%s: %v", show(c.got), d)
		}
		if d := Compare(c.got, want, false); len(d) == 0 {
			t.Errorf("%s: the same in order", show(c.got))
		}
	}
}
