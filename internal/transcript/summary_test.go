package transcript_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/transcript"
)

func summary(h dsh.SessionHeader, events []dsh.Event) *transcript.Summary {
	s := transcript.NewSummary(&h)
	for i := range events {
		s.Add(&events[i])
	}
	return s
}

func TestSummaryOfSamples(t *testing.T) {
	h, events := sample(t, "a.jsonl")
	s := summary(h, events)
	requests, usage := s.Usage()
	if s.Title != "How many lines does a.txt have?" || s.State != "completed" || s.Turns != 1 || s.Events != 33 || s.Pending() != 0 ||
		s.Provider != "deepseek" || s.Model != "deepseek-v4-pro" || s.Last != 1790000000057 || requests != 2 || usage.InputTokens != 100 || usage.OutputTokens != 24 {
		t.Errorf("%+v, %d requests, %+v", s, requests, usage)
	}
	h, events = sample(t, "b.jsonl")
	if s := summary(h, events); s.State != transcript.StateOpen || s.Events != 21 {
		t.Errorf("%+v", s)
	}
	if s := summary(h, nil); s.State != transcript.StateNew || s.Title != "" || s.Last != 0 {
		t.Errorf("%+v", s)
	}
}

// A child that began as a copy is judged by its own part.
func TestSummaryOfStory(t *testing.T) {
	h, events := story()
	s := summary(h, events)
	requests, usage := s.Usage()
	if s.Title != "Around \x1b[2J the house" || s.Label != "look around" || s.Mode != delegation.OneShot || s.Pending() != 1 ||
		s.State != transcript.StateOpen || s.Turns != 4 || s.Model != "v5" || requests != 2 || usage.InputTokens != 200 {
		t.Errorf("%+v, %d requests, %+v", s, requests, usage)
	}
	var titled int
	for i := range events {
		if events[i].Type() == dsh.TypeTurnEnd {
			if s := summary(h, events[:i+1]); s.Turns == 2 {
				titled = i
				if s.State != "error" || s.Failure == nil || s.Failure.Code != dsh.CodeQuota || s.Outcome().Kind != delegation.Failed {
					t.Errorf("%+v", s)
				}
			}
		}
	}
	if titled == 0 {
		t.Error("turn 2 does not end")
	}
}

// The title is the log's own, else the first line of a user, not of a plugin;
// in a copy what was asked of the copy.
func TestTitle(t *testing.T) {
	user := func(text string) dsh.Fact { return dsh.UserMessage{Message: dsh.UserText(text)} }
	plugin := dsh.UserMessage{Message: dsh.PluginText("context", "it is Monday")}
	title := func(raw string) dsh.Fact { return dsh.Opaque{Name: "session/title", Raw: []byte(raw)} }
	for _, tt := range []struct {
		name string
		seed dsh.Seq
		log  []dsh.Fact
		want string
	}{
		{"a user's first line", 0, []dsh.Fact{plugin, user("\n one  line \ntwo"), user("three")}, "one line"},
		{"a title", 0, []dsh.Fact{user("one"), title(`{"title":"best"}`), user("two")}, "best"},
		{"the last title", 0, []dsh.Fact{title(`{"title":"good"}`), title(`{"title":"best"}`)}, "best"},
		{"a title of another shape", 0, []dsh.Fact{title(`"best"`)}, `"best"`},
		{"a copy", 2, []dsh.Fact{user("one"), title(`{"title":"best"}`), plugin, user("mine"), user("more")}, "mine"},
		{"a copy that was asked nothing", 1, []dsh.Fact{user("one"), plugin}, "one"},
	} {
		var events []dsh.Event
		for i, f := range tt.log {
			events = append(events, dsh.Event{Seq: dsh.Seq(i), Data: f})
		}
		if s := summary(dsh.SessionHeader{SeedLength: tt.seed, HasSeed: tt.seed > 0}, events); s.Title != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, s.Title, tt.want)
		}
	}
}

// A list says of a sub-agent what its parent is told after a crash.
func TestOutcomeIsThatOfTheLastLife(t *testing.T) {
	insert := func(target dsh.Target, m *dsh.Message) dsh.Fact {
		return dsh.InboxSpliced{Target: target, Inserted: []*dsh.Message{m}}
	}
	claim := dsh.InboxSpliced{Target: dsh.NextTurn, Removed: 1}
	work := func(end dsh.Ending) []dsh.Fact {
		return []dsh.Fact{insert(dsh.NextTurn, dsh.UserText("work")), dsh.TurnStart{Turn: 1}, claim, dsh.StepStart{Turn: 1, Step: 1}, dsh.StepEnd{Turn: 1, Step: 1}, dsh.TurnEnd{Turn: 1, Reason: end}}
	}
	completed := work(dsh.Ending{Kind: dsh.EndCompleted})
	failed := work(dsh.Ending{Kind: dsh.EndError, Failure: &dsh.Failure{Code: dsh.CodeQuota}})
	aborted := work(dsh.Ending{Kind: dsh.EndAborted, Cause: dsh.Cause{Kind: dsh.CauseParent}})
	late := insert(dsh.NextTurn, dsh.UserText("more"))
	dropped := dsh.InboxSpliced{Target: dsh.NextTurn, Removed: 1, Outcome: dsh.OutcomeCanceled}
	notice := insert(dsh.NextStep, delegation.Notice("kid", "", delegation.Outcome{Kind: delegation.Completed}))
	again := dsh.EndSeed{}
	for name, log := range map[string][]dsh.Fact{
		"nothing":                       {again},
		"one life":                      completed,
		"opened and not asked":          append(slices.Clone(failed), again),
		"a second life":                 slices.Concat(failed, []dsh.Fact{again}, completed),
		"a second life that fails":      slices.Concat(completed, []dsh.Fact{again}, failed),
		"aborted, and more is pending":  append(slices.Clone(aborted), late),
		"completed, and more pending":   append(slices.Clone(completed), late),
		"left over and then withdrawn":  append(slices.Clone(completed), late, again, dropped),
		"withdrawn before it is asked":  slices.Concat(completed, []dsh.Fact{late, again, dropped}, []dsh.Fact{notice}),
		"a child of its own has ended":  append(slices.Clone(completed), notice),
		"failed, and a child has ended": append(slices.Clone(failed), notice),
	} {
		for _, mode := range []delegation.Mode{delegation.OneShot, delegation.Continuable} {
			copied := []dsh.Fact{insert(dsh.NextTurn, dsh.UserText("of another")), again}
			facts := slices.Concat(copied, []dsh.Fact{delegation.Descriptor{Mode: mode, Label: "l"}.Fact()}, log)
			events := make([]dsh.Event, len(facts))
			for i, f := range facts {
				events[i] = dsh.Event{Seq: dsh.Seq(i), Data: f}
				if splice, ok := f.(dsh.InboxSpliced); ok { // each message has an ID
					for k, m := range splice.Inserted {
						named := *m
						named.ID = dsh.MessageID(fmt.Sprint(i))
						splice.Inserted = slices.Clone(splice.Inserted)
						splice.Inserted[k] = &named
					}
					events[i].Data = splice
				}
			}
			from := dsh.Seq(len(copied))
			life, err := delegation.LastLife(events, from, mode)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := summary(dsh.SessionHeader{SeedLength: from, HasSeed: true, Origin: "subagent"}, events).Outcome()
			if got.Kind != life.Outcome.Kind || got.Code() != life.Outcome.Code() || got.Turns != life.Outcome.Turns {
				t.Errorf("%s, %s: %v, want %v", name, mode, got, life.Outcome)
			}
		}
	}
}
