package conformance

import (
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// driven plays a scenario that is written down here.
func driven(t *testing.T, scenario string) map[string]any {
	t.Helper()
	s, err := Parse([]byte(scenario))
	if err != nil {
		t.Fatal(err)
	}
	trace, err := inBubble(t, s, volatile)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func typesOf(agent object) string {
	var types []string
	for _, e := range agent["events"].([]any) {
		if typ := e.(object)["type"].(string); typ != dsh.TypeAssistantChunk {
			types = append(types, typ)
		}
	}
	return strings.Join(types, " ")
}

// What cannot be played yet is named, not played wrongly.
func TestUnsupported(t *testing.T) {
	s, err := Parse([]byte(`{"tools":[{"name":"t","calls":{"c":[{"do":[{"batch":[{"compactNow":"k"}]}]}]}}],
		"script":[{"resume":{"as":"a","log":[],"options":{"pruner":{}}}},{"measure":"m"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "not supported yet: options.pruner, measure, compactNow"
	if _, err := Drive(s, volatile); err == nil || strings.Join(strings.Fields(err.Error()), " ") != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A scenario that waits for what never comes fails and takes nothing down.
func TestRunsThatHang(t *testing.T) {
	for _, c := range []struct{ scenario, want string }{
		{`{"model":[{"hangAfter":[]}],"script":[{"followup":"go"},{"whenIdle":true}]}`, "waiting for a1"},
		{`{"script":[{"wait":{"event":"turn/end"}}]}`, "never came"},
		{`{"hooks":[{"point":"request-error","retry":true}],"script":[{"followup":"go"}]}`, ""},
	} {
		s, err := Parse([]byte(c.scenario))
		if err != nil {
			t.Fatal(err)
		}
		_, err = inBubble(t, s, volatile)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", c.scenario, err)
		}
	}
}

// Nothing that opens a gate wakes a lifecycle that was taken over.
func TestTakenOverLifeIsSilent(t *testing.T) {
	trace := driven(t, `{
		"model":[{"toolCalls":[{"id":"c","name":"t"}]},{"text":"second life"}],
		"tools":[{"name":"t","do":[{"wait":"g"},{"do":[{"steer":"from the grave"}]}]}],
		"hooks":[{"point":"turn-stopping","actions":[{"release":"g"}]}],
		"script":[{"followup":"go"},{"resume":{"as":"b"}},{"release":"g"},{"followup":"on"}]}`)
	agents := agentsOf(trace)
	if got := typesOf(agents[0]); !strings.HasSuffix(got, "assistant/message tool/call") {
		t.Errorf("the first life went on: %s", got)
	}
	if got := typesOf(agents[1]); !strings.HasSuffix(got, "assistant/message step/end turn/end") {
		t.Errorf("the second life: %s", got)
	}
	if len(trace["requests"].([]any)) != 2 || trace["modelEntriesLeft"] != 0.0 {
		t.Errorf("requests: %s", show(trace["requests"]))
	}
}

// An observer of the log may cancel but not write.
func TestObserversOfTheLog(t *testing.T) {
	trace := driven(t, `{
		"model":[{"text":"x"}],
		"hooks":[
			{"point":"session-event","type":"step/start","actions":[{"steer":"no"},{"clearPending":true},{"cancel":"user"}]},
			{"point":"session-event","type":"turn/start","turn":1,"actions":[{"cancel":"parent"}]}
		],
		"script":[{"batch":[{"followup":"go"},{"followup":"queued"}]},{"followup":"again"}]}`)
	var got []string
	for _, a := range trace["actions"].([]any) {
		got = append(got, show(a.(object)["action"])+": "+a.(object)["error"].(object)["message"].(string))
	}
	want := `{"cancel":"parent"}: log appends do not nest; {"steer":"no"}: log appends do not nest; ` +
		`{"clearPending":true}: log appends do not nest; {"cancel":"user"}: log appends do not nest; ` +
		`{"steer":"no"}: log appends do not nest; {"steer":"no"}: log appends do not nest`
	if strings.Join(got, "; ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), want)
	}
}

// Each refusal of a batch is told of the action that it belongs to.
func TestRefusalsInABatch(t *testing.T) {
	trace := driven(t, `{
		"model":[{"hangAfter":[]}],
		"script":[{"followup":"go"},{"batch":[
			{"followup":"a","as":"a"},{"resend":"a"},{"steer":"b","as":"b"},{"removePending":"b"},{"removePending":"b"},
			{"append":{"type":"user/message","data":{"id":"x","role":"user","source":{"kind":"user"},"content":[]},"surfaceOp":"append","sourceEventSeqs":[99]}},
			{"replacePending":"a","with":"c","as":"c"},{"removePending":"nobody"},{"removePending":"c"}
		]}]}`)
	var got []string
	for _, a := range trace["actions"].([]any) {
		a := a.(object)
		for verb := range a["action"].(object) {
			if verb == "with" || verb == "as" {
				continue
			}
			line := a["where"].(string) + " " + verb
			if result, ok := a["result"]; ok {
				line += " " + show(result)
			}
			got = append(got, line)
		}
	}
	want := "script[1] removePending, script[1] resend, result removePending true, result removePending false, " +
		"script[1] append, result replacePending true, result removePending true"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}
