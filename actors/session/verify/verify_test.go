package verify_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
	"github.com/dsh-actor/dsh-actor/actors/session/verify"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A sound log has no findings, packed or not.
func TestSound(t *testing.T) {
	one := sessiontest.Turn(1, 0)
	log := slices.Concat(one, sessiontest.Turn(2, one[len(one)-1].Last()+1))
	for name, events := range map[string][]dsh.Event{"packed": log, "expanded": slices.Collect(dsh.Expand(log))} {
		var f verify.Fold
		for i := range events {
			if err := f.Apply(&events[i]); err != nil {
				t.Fatal(name, err)
			}
		}
		if found := f.Findings(); len(found) > 0 || f.Turn() != 0 || f.Closers() != nil || f.Next() != log[len(log)-1].Last()+1 {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// The closers of every prefix are those of the whole log up to there.
func TestClosers(t *testing.T) {
	one := sessiontest.Turn(1, 0)
	call := dsh.ToolCall{ID: "c", Name: "tool", Arguments: "{}"}
	next := one[len(one)-1].Last() + 1
	log := slices.Collect(dsh.Expand(append(one,
		dsh.Event{Seq: next, Time: 5, Data: dsh.TurnStart{Turn: 2}},
		dsh.Event{Seq: next + 1, Time: 5, Data: dsh.StepStart{Turn: 2, Step: 1}},
		dsh.Event{Seq: next + 2, Time: 5, Data: dsh.AssistantChunk{Turn: 2, Step: 1, Chunk: dsh.TextDelta{Text: "x"}}},
		dsh.Event{Seq: next + 3, Time: 6, Surface: dsh.Append, Data: dsh.AssistantMessage{Turn: 2, Step: 1, Message: &dsh.Message{
			ID: "m", Role: dsh.RoleAssistant, Source: dsh.ModelSource{}, Content: []dsh.Block{call},
		}}},
		dsh.Event{Seq: next + 4, Time: 7, Data: dsh.ToolStarted{Turn: 2, Step: 1, CallID: "c", Name: "tool", Arguments: "{}"}},
	)))
	for n := range len(log) + 1 {
		var f verify.Fold
		for i := range log[:n] {
			if err := f.Apply(&log[i]); err != nil {
				t.Fatal(err)
			}
		}
		got, want := lines(f.Closers()), lines(dsh.Closers(log[:n]))
		if !slices.Equal(got, want) {
			t.Errorf("prefix %d: %v, want %v", n, got, want)
		}
		if found := f.Findings(); len(found) > 0 {
			t.Errorf("prefix %d: %v", n, found)
		}
	}
}

func lines(events []dsh.Event) (list []string) {
	for i := range events {
		list = append(list, string(events[i].AppendJSON(nil)))
	}
	return list
}

// What keeps a log from being continued does not count.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		ev   dsh.Event
		is   error
		want string
	}{
		"gap":     {dsh.Event{Seq: 1, Data: dsh.TurnStart{Turn: 1}}, nil, "event 1 where 0 is due"},
		"unknown": {dsh.Event{Data: dsh.Opaque{Name: "custom/x", Raw: []byte("{}")}}, dsh.ErrUnknownEvent, "custom/x"},
		"surface": {dsh.Event{Data: dsh.TurnStart{Turn: 1}, Surface: dsh.Append}, dsh.ErrSurface, "surfaceOp"},
		"inbox":   {dsh.Event{Data: dsh.InboxSpliced{Target: dsh.NextStep, Removed: 1}}, dsh.ErrInboxSplice, "event 0"},
	} {
		var f verify.Fold
		err := f.Apply(&c.ev)
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) || f.Next() != 0 {
			t.Errorf("%s: %v, next %d", name, err, f.Next())
		}
	}
	inherited := verify.Fold{Inherited: 1}
	if err := inherited.Apply(&dsh.Event{Data: dsh.InboxSpliced{Target: dsh.NextStep, Removed: 1}}); err != nil {
		t.Errorf("another session's inbox: %v", err)
	}
}

// Findings are bounded, and a history that strict providers refuse is one.
func TestFindings(t *testing.T) {
	var f verify.Fold
	for i := range 100 {
		if err := f.Apply(&dsh.Event{Seq: dsh.Seq(i), Data: dsh.StepEnd{Turn: 1, Step: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	result := &dsh.Message{ID: "r", Role: dsh.RoleUser, Source: dsh.ToolSource{CallID: "c"}, Content: []dsh.Block{dsh.ToolResult{CallID: "c"}}}
	if err := f.Apply(&dsh.Event{Seq: 100, Surface: dsh.Append, Data: dsh.ToolFinished{Message: result}}); err != nil {
		t.Fatal(err)
	}
	found := f.Findings()
	if len(found) != 21 || !strings.Contains(found[20].Text, "rule 4") || found[20].Seq != 101 {
		t.Errorf("%d findings: %v", len(found), found[len(found)-1])
	}
}
