package conformance

import (
	"context"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
)

func TestTriggers(t *testing.T) {
	s, err := Parse([]byte(`{"hooks":[
		{"point":"pre-step","turn":2},
		{"point":"pre-step","nth":2},
		{"point":"pre-step","times":1},
		{"point":"pre-step","turn":0},
		{"point":"live","type":"agent/status","status":"idle","agent":"b"}
	]}`))
	if err != nil {
		t.Fatal(err)
	}
	steps := s.triggers("pre-step")
	if len(steps) != 4 {
		t.Fatalf("%d triggers", len(steps))
	}
	for turn, want := range map[int][4]bool{1: {false, false, true, false}} {
		check(t, steps, moment{turn: turn}, want)
	}
	check(t, steps, moment{turn: 2}, [4]bool{true, true, false, false})
	check(t, steps, moment{turn: 2}, [4]bool{true, false, false, false})
	live := s.triggers("live")[0]
	for m, want := range map[moment]bool{
		{agent: "b", typ: "agent/status", status: "idle"}:    true,
		{agent: "a1", typ: "agent/status", status: "idle"}:   false,
		{agent: "b", typ: "agent/status", status: "running"}: false,
	} {
		if got := live.pull(m); got != want {
			t.Errorf("%+v: %v", m, got)
		}
	}
}

func check(t *testing.T, triggers []*trigger, m moment, want [4]bool) {
	t.Helper()
	for i, trig := range triggers {
		if got := trig.pull(m); got != want[i] {
			t.Errorf("trigger %d at %+v: %v", i, m, got)
		}
	}
}

func TestTriggerActs(t *testing.T) {
	s, err := Parse([]byte(`{"hooks":[
		{"point":"live","wait":"g","actions":[{"steer":"a"}],"throw":"broke"},
		{"point":"live","waitOrAbort":"h","actions":[{"steer":"a"}]}
	]}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gates := new(script.Gates)
	gates.Open("g")
	acted := 0
	do := func(actions []Action) { acted += len(actions) }
	live := s.triggers("live")
	if err := live[0].act(ctx, gates, do); err == nil || err.Error() != "broke" || acted != 1 {
		t.Errorf("%v after %d actions", err, acted)
	}
	if err := live[1].act(ctx, gates, do); err == nil || acted != 1 {
		t.Errorf("aborted: %v after %d actions", err, acted)
	}
}
