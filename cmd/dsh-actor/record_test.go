package main

import (
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Each way in which a turn can end has its exit code.
func TestVerdict(t *testing.T) {
	failure := &dsh.Failure{Code: dsh.CodeAuth, Message: "no"}
	for _, tt := range []struct {
		name   string
		ending dsh.Ending
		why    reason
		code   int
		says   string
	}{
		{"completed", dsh.Ending{Kind: dsh.EndCompleted}, byNobody, exitOK, ""},
		{"completed in spite of Ctrl-C", dsh.Ending{Kind: dsh.EndCompleted}, bySignal, exitOK, ""},
		{"max-tokens", dsh.Ending{Kind: dsh.EndMaxTokens}, byNobody, exitLimit, "MAX_TOKENS"},
		{"blocked", dsh.Ending{Kind: dsh.EndBlocked}, byNobody, exitFailed, "BLOCKED"},
		{"failed", dsh.Ending{Kind: dsh.EndError, Failure: failure}, byNobody, exitFailed, "AUTH"},
		{"failed before the timeout", dsh.Ending{Kind: dsh.EndError, Failure: failure}, byTimeout, exitFailed, "AUTH"},
		{"interrupted", dsh.Ending{Kind: dsh.EndAborted}, bySignal, exitInterrupted, "INTERRUPTED"},
		{"timeout", dsh.Ending{Kind: dsh.EndAborted}, byTimeout, exitLimit, "TIME_LIMIT"},
		{"closed output", dsh.Ending{Kind: dsh.EndAborted}, byOutput, exitFailed, "OUTPUT_CLOSED"},
		{"hook", dsh.Ending{Kind: dsh.EndAborted, Cause: dsh.Cause{Kind: dsh.CauseHook}}, byNobody, exitFailed, "ABORTED"},
		{"crash", dsh.Ending{Kind: dsh.EndInterrupted}, byNobody, exitFailed, "UNKNOWN"},
	} {
		r := record{ended: true, ending: tt.ending}
		code, problem := r.verdict(tt.why, exitInterrupted)
		if code != tt.code || (problem == nil) != (tt.says == "") || problem != nil && problem.Code != tt.says {
			t.Errorf("%s: %d, %+v", tt.name, code, problem)
		}
	}
	if code, problem := new(record).verdict(byNobody, 0); code != exitFailed || problem.Code != "NOT_ENDED" {
		t.Errorf("no end: %d, %+v", code, problem)
	}
}

// A failed attempt costs, too; nothing is counted twice.
func TestUsageOfAttempts(t *testing.T) {
	var r record
	chunk := func(u dsh.Usage) dsh.Event { return dsh.Event{Data: dsh.AssistantChunk{Chunk: u}} }
	first, last := dsh.Usage{InputTokens: 10, OutputTokens: 1}, dsh.Usage{InputTokens: 10, OutputTokens: 3}
	for _, ev := range []dsh.Event{
		chunk(first), chunk(last), {Data: dsh.RetryScheduled{}},
		chunk(last), {Data: dsh.AssistantMessage{Message: &dsh.Message{}, Usage: &last}}, {Data: dsh.StepEnd{}},
		chunk(first), {Data: dsh.StepEnd{}},
	} {
		r.add(ev)
	}
	if want := (dsh.Usage{InputTokens: 30, OutputTokens: 7}); r.usage != want {
		t.Errorf("usage %+v, want %+v", r.usage, want)
	}
}
