package dsh_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

func pending(ids ...dsh.MessageID) []*dsh.Message {
	var list []*dsh.Message
	for _, id := range ids {
		list = append(list, &dsh.Message{ID: id})
	}
	return list
}

func ids(list []*dsh.Message) string {
	var all []string
	for _, m := range list {
		all = append(all, string(m.ID))
	}
	return strings.Join(all, " ")
}

func TestInboxApply(t *testing.T) {
	for _, tc := range []struct {
		name               string
		splice             dsh.InboxSpliced
		nextTurn, nextStep string
	}{
		{"append", dsh.InboxSpliced{Target: dsh.NextTurn, Start: 2, Inserted: pending("x")}, "a b x", "c"},
		{"prepend", dsh.InboxSpliced{Target: dsh.NextTurn, Inserted: pending("x", "y")}, "x y a b", "c"},
		{"claim", dsh.InboxSpliced{Target: dsh.NextTurn, Removed: 1}, "b", "c"},
		{"clear", dsh.InboxSpliced{Target: dsh.NextStep, Removed: 1, Outcome: dsh.OutcomeCanceled}, "a b", ""},
		{"replace", dsh.InboxSpliced{Target: dsh.NextTurn, Start: 1, Removed: 1, Inserted: pending("x")}, "a x", "c"},
		{"replace under the same ID", dsh.InboxSpliced{Target: dsh.NextTurn, Start: 1, Removed: 1, Inserted: pending("b")}, "a b", "c"},
		{"nothing", dsh.InboxSpliced{Target: dsh.NextTurn, Start: 2}, "a b", "c"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := dsh.Inbox{NextTurn: pending("a", "b"), NextStep: pending("c")}
			if err := b.Apply(tc.splice); err != nil {
				t.Fatal(err)
			}
			if got := ids(b.NextTurn); got != tc.nextTurn {
				t.Errorf("next-turn %q, want %q", got, tc.nextTurn)
			}
			if got := ids(b.NextStep); got != tc.nextStep {
				t.Errorf("next-step %q, want %q", got, tc.nextStep)
			}
		})
	}
}

func TestInboxRefusals(t *testing.T) {
	const huge = int(^uint(0) >> 1)
	for name, splice := range map[string]dsh.InboxSpliced{
		"unknown target":          {Target: "later", Inserted: pending("x")},
		"negative start":          {Target: dsh.NextTurn, Start: -1},
		"negative removal":        {Target: dsh.NextTurn, Start: 1, Removed: -1},
		"start behind the end":    {Target: dsh.NextTurn, Start: 3},
		"removal behind the end":  {Target: dsh.NextTurn, Start: 1, Removed: 2},
		"overflow":                {Target: dsh.NextTurn, Start: huge, Removed: huge},
		"already in this list":    {Target: dsh.NextTurn, Inserted: pending("b")},
		"already in the other":    {Target: dsh.NextTurn, Inserted: pending("c")},
		"not the one it replaces": {Target: dsh.NextTurn, Removed: 1, Inserted: pending("b")},
		"inserted twice":          {Target: dsh.NextTurn, Inserted: pending("x", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			b := dsh.Inbox{NextTurn: pending("a", "b"), NextStep: pending("c")}
			if err := b.Apply(splice); !errors.Is(err, dsh.ErrInboxSplice) {
				t.Errorf("got %v", err)
			}
			if ids(b.NextTurn) != "a b" || ids(b.NextStep) != "c" {
				t.Error("a refused splice changed the inbox")
			}
		})
	}
}

func TestInboxFind(t *testing.T) {
	b := dsh.Inbox{NextTurn: pending("a", "b"), NextStep: pending("c")}
	for id, want := range map[dsh.MessageID]struct {
		target dsh.Target
		i      int
	}{"a": {dsh.NextTurn, 0}, "b": {dsh.NextTurn, 1}, "c": {dsh.NextStep, 0}, "d": {"", -1}} {
		if target, i := b.Find(id); target != want.target || i != want.i {
			t.Errorf("%s is at %s %d", id, target, i)
		}
	}
	if b.Len(dsh.NextTurn) != 2 || b.Len(dsh.NextStep) != 1 || b.Len("later") != 0 || b.Empty() {
		t.Error("lengths are wrong")
	}
	if !new(dsh.Inbox).Empty() {
		t.Error("the zero inbox is not empty")
	}
}

// What the documented turn queued, it also claimed.
func TestInboxOfSample(t *testing.T) {
	var b dsh.Inbox
	for _, ev := range readTurn(t) {
		if s, ok := ev.Data.(dsh.InboxSpliced); ok {
			if err := b.Apply(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !b.Empty() {
		t.Errorf("left over: %q %q", ids(b.NextTurn), ids(b.NextStep))
	}
}
