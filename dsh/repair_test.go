package dsh_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// withoutTexts decodes a line and blanks every text in it.
func withoutTexts(t *testing.T, line []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(line, &v); err != nil {
		t.Fatal(err)
	}
	blankTexts(v)
	return v
}

func blankTexts(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["text"]; ok {
			v["text"] = ""
		}
		for _, member := range v {
			blankTexts(member)
		}
	case []any:
		for _, element := range v {
			blankTexts(element)
		}
	}
}

// Sample B of the session format: a crash after a recorded call.
func TestClosersOfSample(t *testing.T) {
	want := readLines(t, "closers.jsonl")
	closers := dsh.Closers(readTurn(t)[:21])
	if len(closers) != len(want) {
		t.Fatalf("%d closers, want %d", len(closers), len(want))
	}
	for i := range closers {
		got := closers[i].AppendJSON(nil)
		if !reflect.DeepEqual(withoutTexts(t, got), withoutTexts(t, want[i])) {
			t.Errorf("closer %d\n got %s\nwant %s", i, got, want[i])
		}
	}
	if got := resultText(closers[0]); got != dsh.TextOutcomeUnknown {
		t.Errorf("the model reads %q", got)
	}
}

func resultText(ev dsh.Event) string {
	return dsh.TextOf(ev.Data.(dsh.ToolFinished).Message.Content[0].(dsh.ToolResult).Content)
}

// Cut before the tool/call line: the call never started.
func TestClosersNotStarted(t *testing.T) {
	closers := dsh.Closers(readTurn(t)[:20])
	if len(closers) != 3 {
		t.Fatalf("%d closers", len(closers))
	}
	first := closers[0]
	d := first.Data.(dsh.ToolFinished)
	if first.Seq != 20 || first.Sources != nil || *d.Error != dsh.ToolNotStarted || resultText(first) != dsh.TextNotStarted {
		t.Errorf("got %+v", first)
	}
}

func TestClosersFindPending(t *testing.T) {
	started := func(seq dsh.Seq, id dsh.CallID) dsh.Event {
		return dsh.Event{Seq: seq, Data: dsh.ToolStarted{Turn: 3, Step: 2, CallID: id}}
	}
	open := []dsh.Event{
		{Seq: 0, Data: dsh.TurnStart{Turn: 3}},
		{Seq: 1, Data: dsh.StepStart{Turn: 3, Step: 2}},
	}
	calls := append(slices.Clip(open), assistantEvent(2, dsh.ToolCall{ID: "a"}, dsh.ToolCall{ID: "b"}, dsh.ToolCall{ID: "c"}))
	for _, tc := range []struct {
		name   string
		events []dsh.Event
		want   []string
	}{
		{"no log", nil, nil},
		{"no turn", []dsh.Event{userEvent(0, "x")}, nil},
		{"closed turn", append(slices.Clip(open), dsh.Event{Seq: 2, Data: dsh.TurnEnd{Turn: 3}}), nil},
		{"turn without a step", open[:1], []string{"1 turn/end"}},
		{"step", open, []string{"2 step/end", "3 turn/end"}},
		{
			"chunks, numbered from the last of them",
			append(slices.Clip(open), dsh.Event{Seq: 2, Data: dsh.ChunkRun{Turn: 3, Step: 2, Chunks: make([]dsh.Chunk, 4)}}),
			[]string{"6 step/end", "7 turn/end"},
		},
		{"step that ended", append(slices.Clip(calls), dsh.Event{Seq: 3, Data: dsh.StepEnd{Turn: 3, Step: 2}}), []string{"4 turn/end"}},
		{
			"some of each, in model order",
			append(slices.Clip(calls), started(3, "a"), started(4, "b"), resultEvent(5, "a", "x")),
			[]string{"6 b TOOL_OUTCOME_UNKNOWN", "7 c TOOL_NOT_STARTED", "8 step/end", "9 turn/end"},
		},
		{
			"a shortened old result of the same ID does not count",
			append(slices.Clip(calls), replacing(resultEvent(3, "a", "x"), 0, 0, 0)),
			[]string{"4 a TOOL_NOT_STARTED", "5 b TOOL_NOT_STARTED", "6 c TOOL_NOT_STARTED", "7 step/end", "8 turn/end"},
		},
		{
			"one ID twice, as other writers log it",
			append(slices.Clip(open), assistantEvent(2, dsh.ToolCall{ID: "a"}, dsh.ToolCall{ID: "a"}), started(3, "a"), resultEvent(4, "a", "x"), started(5, "a")),
			[]string{"6 a TOOL_OUTCOME_UNKNOWN", "7 step/end", "8 turn/end"},
		},
		{
			"a call that no answer asks for",
			append(slices.Clip(open), started(2, "z")),
			[]string{"3 step/end", "4 turn/end"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, ev := range dsh.Closers(tc.events) {
				what := ev.Type()
				if d, ok := ev.Data.(dsh.ToolFinished); ok {
					what = string(d.Message.Source.(dsh.ToolSource).CallID) + " " + d.Error.Code
				}
				got = append(got, fmt.Sprint(ev.Seq, " ", what))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("\n got %q\nwant %q", got, tc.want)
			}
		})
	}
}

// Wherever a log breaks off, its closers complete it: the surface accepts
// them, the model sees a valid conversation, and a second repair adds nothing.
func TestClosersCompleteEveryPrefix(t *testing.T) {
	events := readTurn(t)
	for n := range len(events) + 1 {
		prefix := events[:n:n]
		closers := dsh.Closers(prefix)
		if again := dsh.Closers(prefix); !reflect.DeepEqual(again, closers) {
			t.Errorf("prefix %d: two repairs differ", n)
		}
		repaired := append(prefix, closers...)
		if more := dsh.Closers(repaired); more != nil {
			t.Errorf("prefix %d: repaired twice: %+v", n, more)
		}
		var h dsh.History
		for i := range repaired {
			if repaired[i].Seq != dsh.Seq(i) {
				t.Errorf("prefix %d: event %d has seq %d", n, i, repaired[i].Seq)
			}
			apply(t, &h, repaired[i])
		}
		if err := dsh.CheckRequest(h.Messages()); err != nil {
			t.Errorf("prefix %d: %v", n, err)
		}
		if err := dsh.CheckFork(repaired, dsh.Seq(len(repaired))); err != nil {
			t.Errorf("prefix %d: %v", n, err)
		}
	}
}

func TestCheckFork(t *testing.T) {
	log := append(packedLog(),
		dsh.Event{Seq: 6, Data: dsh.Opaque{Name: "todo/write"}},
		dsh.Event{Seq: 7, Data: dsh.TurnStart{Turn: 2}},
	)
	for boundary, want := range map[dsh.Seq]string{
		-1: dsh.ForkInvalidBoundary,
		0:  "",
		1:  dsh.ForkOpenTurn,
		3:  dsh.ForkOpenTurn, // inside a packed run
		5:  dsh.ForkOpenTurn,
		6:  "",
		7:  "",
		8:  dsh.ForkOpenTurn,
		9:  dsh.ForkInvalidBoundary,
	} {
		err := dsh.CheckFork(log, boundary)
		var fork *dsh.ForkError
		switch {
		case want == "" && err != nil:
			t.Errorf("%d: %v", boundary, err)
		case want != "" && (!errors.As(err, &fork) || fork.Code != want || fork.Boundary != boundary || fork.Events != 8):
			t.Errorf("%d: got %+v, want %s", boundary, err, want)
		case want == dsh.ForkOpenTurn && fork.Turn != 1+int(boundary/8):
			t.Errorf("%d: turn %d", boundary, fork.Turn)
		}
	}
	if err := dsh.CheckFork(nil, 0); err != nil {
		t.Error(err)
	}
}

// A refusal names the nearest boundaries, and they do.
func TestForkErrorNamesBoundaries(t *testing.T) {
	log := append(packedLog(),
		dsh.Event{Seq: 6, Data: dsh.Opaque{Name: "todo/write"}},
		dsh.Event{Seq: 7, Data: dsh.TurnStart{Turn: 2}},
	)
	for boundary, want := range map[dsh.Seq]string{
		-1: "dsh: cannot fork at -1: the log has 8 events; fork at 0",
		1:  "dsh: cannot fork at 1: turn 1 is open there; fork at 0, before it starts, or at 6, after it has ended",
		3:  "dsh: cannot fork at 3: turn 1 is open there; fork at 0, before it starts, or at 6, after it has ended",
		8:  "dsh: cannot fork at 8: turn 2 is open there; fork at 7, before it starts, for it has not ended",
		99: "dsh: cannot fork at 99: the log has 8 events; fork at 7",
	} {
		err := dsh.CheckFork(log, boundary)
		if err == nil || err.Error() != want {
			t.Errorf("%d: got %v, want %s", boundary, err, want)
		}
		var fork *dsh.ForkError
		if !errors.As(err, &fork) {
			continue
		}
		for _, near := range []dsh.Seq{fork.Before, fork.After} {
			if near >= 0 && dsh.CheckFork(log, near) != nil {
				t.Errorf("%d: %d does not do either", boundary, near)
			}
		}
	}
}
