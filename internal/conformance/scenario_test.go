package conformance

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
)

var folders = []struct {
	dir string
	n   int
}{{"testdata", 210}, {"testdata/subagents", 37}}

// load returns the cases of all folders.
func load(t *testing.T) []Case {
	t.Helper()
	var all []Case
	for _, f := range folders {
		cases, err := Load(f.dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(cases) != f.n {
			t.Errorf("%s has %d scenarios, want %d", f.dir, len(cases), f.n)
		}
		all = append(all, cases...)
	}
	return all
}

func TestEveryScenarioHasItsTrace(t *testing.T) {
	for _, c := range load(t) {
		if c.Trace["scenario"] != c.Name {
			t.Errorf("%s: the trace is of %v", c.Name, c.Trace["scenario"])
		}
	}
}

// What the format does not have is named, with the text around it.
func TestStrict(t *testing.T) {
	for _, c := range []struct{ scenario, want string }{
		{`{"scrip":[]}`, `unknown field "scrip"`},
		{`{"options":{"max":1}}`, `unknown field "max"`},
		{`{"options":{"retry":{"backof":{}}}}`, `unknown field "backof"`},
		{`{"model":[{"txt":"a"}]}`, `model response {"txt":"a"}: json: unknown field "txt"`},
		{`{"model":[{"chunks":[{"type":"text-delta","txt":"a"}]}]}`, `unknown field "txt"`},
		{`{"model":[{"chunks":[{"type":"nonsense"}]}]}`, `unknown type "nonsense"`},
		{`{"model":[{"chunks":[{}]}]}`, `no type`},
		{`{"tools":[{"name":"a","mod":"parallel"}]}`, `tool {"name":"a","mod":"parallel"}: json: unknown field "mod"`},
		{`{"tools":[{"name":"a","mode":"sideways"}]}`, `unknown mode "sideways"`},
		{`{"tools":[{"name":"a","do":[{"retrun":""}]}]}`, `tool step {"retrun":""}: json: unknown field "retrun"`},
		{`{"hooks":[{"point":"pre-step","rejct":true}]}`, `unknown field "rejct"`},
		{`{"hooks":[{"point":"presto"}]}`, `unknown point "presto"`},
		{`{"script":[{"folowup":"a"}]}`, `action {"folowup":"a"}: json: unknown field "folowup"`},
		{`{"script":[{"followup":{"txt":"a"}}]}`, `unknown field "txt"`},
		{`{"script":[{"batch":[{"steer":"a","inject":"b"}]}]}`, `2 verbs`},
		{`{"script":[{"as":"a"}]}`, `0 verbs`},
		{`{"script":[{"cancel":{"user":"x"}}]}`, `unknown field "user"`},
		{`{} {}`, `text behind`},
	} {
		if _, err := Parse([]byte(c.scenario)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.scenario, err, c.want)
		}
	}
}

func TestOptional(t *testing.T) {
	for _, c := range []struct{ options, provider, model string }{
		{`{}`, "mock", "mock-1"},
		{`{"provider":null,"model":null}`, "", ""},
		{`{"provider":"p","model":"m"}`, "p", "m"},
	} {
		var o Options
		if err := json.Unmarshal([]byte(c.options), &o); err != nil {
			t.Fatal(err)
		}
		if p, m := o.Route(); p != c.provider || m != c.model {
			t.Errorf("%s: %q %q", c.options, p, m)
		}
	}
	base := Options{System: "s", MaxTokens: 3}
	over := Options{Model: Optional[string]{Set: true, Value: "mock-2"}}
	if got := base.Overlay(over); got.Model.Value != "mock-2" || got.System != "s" || got.MaxTokens != 3 {
		t.Errorf("overlay %+v", got)
	}
}

func TestActions(t *testing.T) {
	for text, want := range map[string]func(*Action) bool{
		`{"followup":"a","as":"x"}`: func(a *Action) bool { return a.Followup.Text == "a" && a.As == "x" },
		`{"inject":{"text":"a","source":{"kind":"plugin","plugin":"p","form":"notice"}}}`: func(a *Action) bool {
			m, err := a.Inject.Message(nil)
			return err == nil && m.Source.(dsh.PluginSource).Plugin == "p" && dsh.TextOf(m.Content) == "a"
		},
		`{"steer":{"content":[{"type":"text","text":"a"}]}}`: func(a *Action) bool {
			m, err := a.Steer.Message(dsh.UserSource{})
			return err == nil && dsh.TextOf(m.Content) == "a" && m.Source == dsh.UserSource{}
		},
		`{"send":{"text":"a","target":"next-turn","wakeup":true}}`: func(a *Action) bool {
			return a.Send.Text == "a" && a.Send.Target == dsh.NextTurn && a.Send.Wakeup
		},
		`{"cancel":"user","keepInbox":true}`: func(a *Action) bool { return *a.Cancel == Cancel{Kind: "user"} && a.KeepInbox },
		`{"cancel":{"hook":"why"}}`:          func(a *Action) bool { return *a.Cancel == Cancel{"hook", "why"} },
		`{"release":"g"}`:                    func(a *Action) bool { return len(a.Release) == 1 && a.Release[0] == "g" },
		`{"release":["g","h"]}`:              func(a *Action) bool { return len(a.Release) == 2 && a.Release[1] == "h" },
		`{"replaceSurface":{"start":0,"end":-1,"text":"s","cite":false}}`: func(a *Action) bool {
			return a.ReplaceSurface.Cite.Omit && *a.ReplaceSurface.End == -1
		},
		`{"replaceSurface":{"startSeq":1,"endSeq":2,"text":"s","cite":[1]}}`: func(a *Action) bool {
			return !a.ReplaceSurface.Cite.Omit && a.ReplaceSurface.Cite.Seqs[0] == 1
		},
		`{"append":{"type":"t","data":{},"sourceEventSeqs":[]}}`: func(a *Action) bool {
			return a.Append.SourceEventSeqs != nil && len(*a.Append.SourceEventSeqs) == 0
		},
		`{"maintenance":{}}`: func(a *Action) bool { return a.Maintenance != nil && a.Verb() == "maintenance" },
	} {
		var a Action
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if !want(&a) {
			t.Errorf("%s: read as %+v", text, a)
		}
	}
	a := new(Action)
	if err := json.Unmarshal([]byte(`{"followupChild":{"child":"{child1}","text":"x"}}`), a); err != nil {
		t.Fatal(err)
	}
	b, err := a.Substitute(func(s string) string { return strings.ReplaceAll(s, "{child1}", "id-1") })
	if err != nil || b.FollowupChild.Child != "id-1" || string(b.Raw) != string(a.Raw) {
		t.Errorf("substituted %+v, %v", b.FollowupChild, err)
	}
}

// The chunks that the reference logged are those that our expansion of the
// replies gives, as far as each stream got.
func TestExpansionMatchesTheTraces(t *testing.T) {
	for _, c := range load(t) {
		agents := make(map[string][]object) // chunk events by session
		for _, a := range agentsOf(c.Trace) {
			session := a["header"].(object)["id"].(string)
			first, _ := a["firstLiveSeq"].(float64)
			for _, e := range a["events"].([]any) {
				if event := e.(object); event["type"] == dsh.TypeAssistantChunk && event["seq"].(float64) >= first {
					agents[session] = append(agents[session], event)
				}
			}
		}
		replies := map[string][]Reply{"": c.Model}
		for child, list := range c.Children {
			replies[child] = list
		}
		for _, r := range c.Trace["requests"].([]any) {
			session := r.(object)["session"].(string)
			queue := session
			if _, own := replies[session]; !own {
				queue = ""
			}
			if len(replies[queue]) == 0 {
				continue // an exhausted script
			}
			e := Expander{Substitute: func(s string) string {
				return strings.NewReplacer("{child1}", "child1", "{child2}", "child2").Replace(s)
			}}
			steps := e.Expand(replies[queue][0])
			replies[queue] = replies[queue][1:]
			agents[session] = consume(t, c.Name, steps, agents[session])
		}
		for session, left := range agents {
			if len(left) > 0 && c.Name != "no-adapter" { // whose failure no reply has
				t.Errorf("%s: %s logged %d chunks more than the replies have, first %s", c.Name, session, len(left), show(left[0]))
			}
		}
	}
}

// consume takes the chunks of one stream off logged.
func consume(t *testing.T, name string, steps script.Response, logged []object) []object {
	t.Helper()
	for _, step := range steps {
		switch step := step.(type) {
		case script.Emit:
			want := generic(dsh.AppendChunk(nil, step.Chunk))
			if len(logged) == 0 {
				return nil // the stream was cut off
			}
			got := logged[0]["data"].(object)["chunk"]
			if !reflect.DeepEqual(got, want) {
				if next, ok := want.(object); ok && next["type"] != "block-start" {
					return logged // cut off by an abort; the next stream goes on
				}
				t.Errorf("%s: the log has %s, we expand to %s", name, show(got), show(want))
				return nil
			}
			logged = logged[1:]
		case script.Fail:
			// The failure of an adapter is logged as a finish of its own.
			if len(logged) > 0 && logged[0]["data"].(object)["chunk"].(object)["type"] == "finish" {
				logged = logged[1:]
			}
		}
	}
	return logged
}

func TestToolCallArguments(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":"c"}`:                              `{}`,
		`{"id":"c","args":null}`:                  `{}`,
		`{"id":"c","args":""}`:                    ``,
		`{"id":"c","args":"{\"te"}`:               `{"te`,
		`{"id":"c","args":{ "b" : 1, "a": [ ] }}`: `{"b":1,"a":[]}`,
	} {
		var c ToolCallSpec
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		if got := c.call().Arguments; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestTools(t *testing.T) {
	text := `{"tools":[{"name":"x","mode":"parallel","parameters":{"b":{"type":"string","required":true},"a":{"type":"number"}},
		"do":[{"wait":"g-{callId}"},{"return":"r {callId}"}],"calls":{"c2":[{"throw":"boom {callId}"}]}},{"name":"y"}]}`
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"number"}},"required":["b"]}`
	if got := string(s.Tools[0].Schema().Parameters); got != want {
		t.Errorf("schema %s", got)
	}
	if got := string(s.Tools[1].Schema().Parameters); got != `{"type":"object","properties":{}}` {
		t.Errorf("schema %s", got)
	}
	body := s.Tools[0].Body("c1")
	if body[0].Wait != "g-c1" || body[1].Return.Text != "r c1" {
		t.Errorf("body %+v", body)
	}
	if got := *s.Tools[0].Body("c2")[0].Throw; got != "boom c2" {
		t.Errorf("throw %q", got)
	}
	if got := fmt.Sprint(s.Tools[1].Body("c3")[0].Return.Content()); got != "[{y ok}]" {
		t.Errorf("return %s", got)
	}
}
