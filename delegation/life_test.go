package delegation

import (
	"errors"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

func inserted(target dsh.Target, at int, messages ...*dsh.Message) dsh.Fact {
	return dsh.InboxSpliced{Target: target, Start: at, Inserted: messages}
}

func claimed(target dsh.Target) dsh.Fact { return dsh.InboxSpliced{Target: target, Removed: 1} }

func task(id dsh.MessageID) *dsh.Message {
	m := dsh.UserText("please")
	m.ID = id
	return m
}

func TestLastLife(t *testing.T) {
	what := Descriptor{Mode: Continuable, Transport: BySpawn, Label: "job"}.Fact()
	seed, start, step := dsh.EndSeed{}, dsh.TurnStart{Turn: 1}, dsh.StepStart{Turn: 1, Step: 1}
	one, two := inserted(dsh.NextTurn, 0, task("1")), inserted(dsh.NextTurn, 0, task("2"))
	claim := claimed(dsh.NextTurn)
	kid := Notice("kid", "", Outcome{Kind: Interrupted})
	kid.ID = NoticeID("kid", 1)
	for _, tc := range []struct {
		name  string
		log   []dsh.Event
		from  dsh.Seq
		begun bool
		at    dsh.Seq
		kind  OutcomeKind
		text  string
	}{
		{"nothing", nil, 0, false, 0, Completed, ""},
		{"made", events(what, seed), 0, false, 0, Completed, ""},
		{"asked", events(what, seed, one), 0, true, 1, Interrupted, ""},
		{"between the turn's start and its input", events(what, seed, one, start, end(dsh.EndInterrupted)), 0, true, 1, Interrupted, ""},
		{"in a turn", events(what, seed, one, start, claim, step, said("half"), end(dsh.EndInterrupted)), 0, true, 1, Interrupted, "half"},
		{"done", events(what, seed, one, start, claim, step, said("all"), end(dsh.EndCompleted)), 0, true, 1, Completed, "all"},
		{"done, and a message for a next step", events(what, seed, one, start, claim, step, said("all"), end(dsh.EndCompleted),
			inserted(dsh.NextStep, 0, task("quiet"))), 0, true, 1, Completed, "all"},
		{"done, but a child of its own is not", events(what, seed, one, start, claim, step, said("all"), end(dsh.EndCompleted),
			inserted(dsh.NextStep, 0, kid)), 0, true, 1, Interrupted, "all"},
		{"more to do", events(what, seed, one, start, claim, step, said("all"), end(dsh.EndCompleted), two), 0, true, 1, Interrupted, "all"},
		{"more to do behind a failure", events(what, seed, one, start, claim, step, end(dsh.EndError), two), 0, true, 1, Interrupted, ""},
		{"aborted with more to do", events(what, seed, one, start, claim, step, end(dsh.EndAborted), two), 0, true, 1, Aborted, ""},
		{"a second life", events(what, seed, one, start, claim, step, said("all"), end(dsh.EndCompleted), seed, two, start, claim, step, end(dsh.EndInterrupted)),
			0, true, 8, Interrupted, ""},
		{"opened and not asked again", events(what, seed, one, start, claim, step, said("all"), end(dsh.EndCompleted), seed), 0, true, 1, Completed, "all"},
		{"an ancestor's life", events(seed, one, start, claim, step, said("all"), end(dsh.EndCompleted), seed, what, seed), 7, false, 7, Completed, ""},
		{"an ancestor's input", events(what, seed, one, seed, what, seed, one, start, claim, step, said("all"), end(dsh.EndCompleted)), 3, true, 5, Completed, "all"},
		{"without a mark", events(one, start, claim, step, said("all"), end(dsh.EndCompleted)), 0, true, 0, Completed, "all"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, err := LastLife(tc.log, tc.from, Continuable)
			if err != nil {
				t.Fatal(err)
			}
			if l.Begun != tc.begun || l.At != tc.at || l.Outcome.Kind != tc.kind || l.Outcome.Text() != tc.text {
				t.Errorf("%+v", l)
			}
			if l.Outcome.Kind == Interrupted && (l.Outcome.Failure != nil || l.Outcome.Code() != "CHILD_INTERRUPTED") {
				t.Errorf("%s: %+v", l.Outcome.Code(), l.Outcome)
			}
		})
	}
	l, err := LastLife(events(what, inserted(dsh.NextStep, 0, task("quiet"))), 0, OneShot)
	if err != nil || !l.Begun || l.Outcome.Kind != Failed {
		t.Errorf("a one-shot child that did nothing: %+v, %v", l, err)
	}
	if _, err := LastLife(events(what, claim), 0, Continuable); !errors.Is(err, ErrCorrupt) {
		t.Errorf("input that was never there: %v", err)
	}
}

func TestNoticeOfAnInterruptedChild(t *testing.T) {
	m := Notice("kid", "job", Outcome{Kind: Interrupted, Output: []dsh.Block{dsh.Text{Text: "half"}}})
	if err := dsh.CheckRequest([]*dsh.Message{m}); err != nil {
		t.Error(err)
	}
	text := dsh.TextOf(m.Content)
	for _, want := range []string{"kid (job)", "interrupted", "send it a message", "half"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	a, b := NoticeID("kid", 1), NoticeID("kid", 11)
	if a == b || !IsNoticeID(a) || IsNoticeID("b7f9") {
		t.Errorf("names %s and %s", a, b)
	}
}
