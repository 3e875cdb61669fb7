package conformance

import (
	"os"
	"path/filepath"
	"testing"
)

// Each deviation names a scenario, a reason and a place where it makes a
// difference.
func TestDeviationsAreNeeded(t *testing.T) {
	cases := make(map[string]Case)
	for _, c := range load(t) {
		cases[c.Name] = c
	}
	for _, d := range Deviations {
		c, ok := cases[d.Scenario]
		if !ok || d.Reason == "" {
			t.Errorf("%s at %s: no such scenario, or no reason", d.Scenario, d.Part)
			continue
		}
		expected, _, err := Expected(c.Trace, d.Scenario, []Deviation{d}, "testdata/deviations")
		if err != nil {
			t.Error(err)
			continue
		}
		if len(Compare(expected, c.Trace, c.SchedulingSensitive)) == 0 {
			t.Errorf("%s at %s: the reference does the same", d.Scenario, d.Part)
		}
	}
}

func TestExpected(t *testing.T) {
	recorded := object{
		"agents":   []any{object{"key": "a1", "status": "idle", "events": []any{object{"type": "a"}, object{"type": "b"}}}},
		"requests": []any{object{"model": "m"}},
	}
	own := t.TempDir()
	file := filepath.Join(own, "s.json")
	if err := os.WriteFile(file, []byte(`{"agents":[{"key":"a1","events":[1,2,3]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		d    Deviation
		want string
	}{
		{Deviation{Part: "a1.status", Want: `"running"`}, `{"agents":[{"events":[{"type":"a"},{"type":"b"}],"key":"a1","status":"running"}],"requests":[{"model":"m"}]}`},
		{Deviation{Part: "a1.events[1].type", Want: `"c"`}, `{"agents":[{"events":[{"type":"a"},{"type":"c"}],"key":"a1","status":"idle"}],"requests":[{"model":"m"}]}`},
		{Deviation{Part: "a1.events[0]", Want: `{}`}, `{"agents":[{"events":[{},{"type":"b"}],"key":"a1","status":"idle"}],"requests":[{"model":"m"}]}`},
		{Deviation{Part: "requests[0].model", Want: `"n"`}, `{"agents":[{"events":[{"type":"a"},{"type":"b"}],"key":"a1","status":"idle"}],"requests":[{"model":"n"}]}`},
		{Deviation{Part: "a1.events"}, `{"agents":[{"events":[1,2,3],"key":"a1","status":"idle"}],"requests":[{"model":"m"}]}`},
		{Deviation{Part: "a1.status"}, `{"agents":[{"events":[{"type":"a"},{"type":"b"}],"key":"a1"}],"requests":[{"model":"m"}]}`},
	} {
		c.d.Scenario = "s"
		got, n, err := Expected(recorded, "s", []Deviation{c.d, {Scenario: "other"}}, own)
		if err != nil || n != 1 || show(got) != c.want {
			t.Errorf("%s: %s, %d, %v", c.d.Part, show(got), n, err)
		}
	}
	for _, part := range []string{"b.status", "a1.events[7].type", "requests[3]", "nothing.at.all"} {
		if _, _, err := Expected(recorded, "s", []Deviation{{Scenario: "s", Part: part, Want: "1"}}, own); err == nil {
			t.Errorf("%s: no error", part)
		}
	}
	if got, n, err := Expected(recorded, "other", nil, own); err != nil || n != 0 || len(Compare(got, recorded, false)) != 0 {
		t.Errorf("without deviations: %d, %v", n, err)
	}
}
