package delegation

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// events numbers facts.
func events(facts ...dsh.Fact) []dsh.Event {
	out := make([]dsh.Event, len(facts))
	for i, f := range facts {
		out[i] = dsh.Event{Seq: dsh.Seq(i), Data: f}
	}
	return out
}

func end(kind dsh.EndKind) dsh.Fact { return dsh.TurnEnd{Turn: 1, Reason: dsh.Ending{Kind: kind}} }

func said(text string) dsh.Fact {
	var content []dsh.Block
	if text != "" {
		content = []dsh.Block{dsh.Text{Text: text}}
	}
	return dsh.AssistantMessage{Turn: 1, Step: 1, Message: &dsh.Message{Role: dsh.RoleAssistant, Content: content}, Usage: &dsh.Usage{InputTokens: 2}}
}

// The last turn that consumed work decides.
func TestTally(t *testing.T) {
	start, step := dsh.TurnStart{Turn: 1}, dsh.StepStart{Turn: 1, Step: 1}
	claim := dsh.InboxSpliced{Target: dsh.NextTurn, Removed: 1}
	drop := dsh.InboxSpliced{Target: dsh.NextTurn, Removed: 1, Outcome: dsh.OutcomeCanceled}
	chunk := dsh.ChunkRun{Turn: 1, Step: 1, Chunks: []dsh.Chunk{dsh.TextDelta{Text: "ha"}, dsh.TextDelta{Text: "lf"}}}
	for _, tc := range []struct {
		name string
		log  []dsh.Event
		kind OutcomeKind
		text string
	}{
		{"completed", events(start, claim, step, said("hi"), end(dsh.EndCompleted)), Completed, "hi"},
		{"an empty message hides none", events(start, claim, step, said("hi"), said(""), end(dsh.EndCompleted)), Completed, "hi"},
		{"refused", events(start, claim, end(dsh.EndBlocked)), Rejected, ""},
		{"failed with a partial answer", events(start, claim, step, chunk, end(dsh.EndError)), Failed, "half"},
		{"a turn without work does not count", events(start, claim, step, said("a"), end(dsh.EndMaxTokens), start, end(dsh.EndCompleted)), Limited, "a"},
		{"input was dropped", events(start, claim, step, said("a"), end(dsh.EndCompleted), drop), Aborted, "a"},
		{"dropped, and then it worked", events(drop, start, claim, step, said("a"), end(dsh.EndCompleted)), Completed, "a"},
		{"nothing but dropped input", events(drop), Aborted, ""},
		{"interrupted", events(start, claim, step, end(dsh.EndInterrupted)), Interrupted, ""},
		{"quiet", nil, Completed, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var tally Tally
			for i := range tc.log {
				tally.Add(&tc.log[i])
			}
			if o := tally.Outcome(Completed); o.Kind != tc.kind || o.Text() != tc.text || (o.Kind == Failed) != (o.Failure != nil) {
				t.Errorf("outcome %+v", o)
			}
		})
	}
}

func TestDescriptor(t *testing.T) {
	want := Descriptor{
		Mode: Continuable, Transport: ByFork, Label: "job", Provider: "p", Model: "m", Persona: "x",
		Filter: &Filter{Allow: []string{}},
	}
	log := append(events(Descriptor{Mode: OneShot, Transport: BySpawn}.Fact()), dsh.Event{Seq: 1, Data: want.Fact()})
	d, ok, err := ReadDescriptor(log, 1) // the first is an ancestor's
	if err != nil || !ok || d.Label != "job" || d.Filter == nil || d.Filter.Allow == nil || d.Version != DescriptorVersion {
		t.Errorf("%+v, %v, %v", d, ok, err)
	}
	for text, is := range map[string]error{
		`{"version":1,"mode":"one-shot"}`:                    ErrVersion,
		`{"mode":"one-shot"}`:                                ErrCorrupt,
		`{"version":2,"mode":"never","provider":"x"}`:        ErrCorrupt,
		`{"version":2,"mode":"one-shot","more":1}`:           ErrCorrupt,
		`{"version":2,"mode":"continuable"}`:                 ErrCorrupt,
		`{"version":2,"mode":"one-shot","toolFilter":{}}`:    ErrCorrupt,
		`{"version":2,"mode":"one-shot","label":["a"]}`:      ErrCorrupt,
		`{"version":2,"mode":"one-shot","provider":"spawn"}`: nil,
	} {
		_, _, err := ReadDescriptor(events(dsh.Opaque{Name: DescriptorType, Raw: json.RawMessage(text)}), 0)
		if !errors.Is(err, is) || is == nil && err != nil {
			t.Errorf("%s: %v, want %v", text, err, is)
		}
	}
}

// A notice is what a strict provider takes, and its summary is short.
func TestNotice(t *testing.T) {
	o := Outcome{Kind: Completed, Output: []dsh.Block{
		dsh.Reasoning{Text: "hm"}, dsh.Text{Text: "done"}, dsh.ToolCall{ID: "c", Name: "t"},
	}}
	m := Notice("kid", strings.Repeat("läng ", 50), o)
	if err := dsh.CheckRequest([]*dsh.Message{m}); err != nil {
		t.Error(err)
	}
	if len(m.Content) != 3 || dsh.TextOf(m.Content[2:]) != "done" {
		t.Errorf("content %+v", m.Content)
	}
	var s struct{ Kind, Form, Summary, SenderSessionID string }
	if err := json.Unmarshal(m.Source.(dsh.OpaqueSource).Raw, &s); err != nil || s.Kind != SettledSource || s.Form != "notice" || s.SenderSessionID != "kid" {
		t.Errorf("source %+v, %v", s, err)
	}
	if n := utf8.RuneCountInString(s.Summary); n != maxSummary || !strings.HasSuffix(s.Summary, "…") {
		t.Errorf("summary of %d characters: %s", n, s.Summary)
	}
	if m = Notice("kid", "", Outcome{Kind: Failed}); len(m.Content) != 2 {
		t.Errorf("content %+v", m.Content)
	}
}

func TestErrorsCompareByCode(t *testing.T) {
	cause := errors.New("cause")
	err := Errorf(CodeDepth, "too deep: %w", cause)
	if !errors.Is(err, &Error{Code: CodeDepth}) || errors.Is(err, &Error{Code: CodeTree}) || !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	o := Outcome{Kind: Failed, Failure: &dsh.Failure{Code: dsh.CodeQuota}}
	if !errors.Is(o.Err(), dsh.ErrQuota) || !errors.Is(o.Err(), &Error{Code: "QUOTA"}) {
		t.Errorf("%v", o.Err())
	}
}
