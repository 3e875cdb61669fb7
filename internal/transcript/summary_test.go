package transcript_test

import (
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
