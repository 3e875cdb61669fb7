package main

import (
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A record is what the events of a run add up to.
type record struct {
	turn      int
	ended     bool // the last turn that began has ended
	ending    dsh.Ending
	text      string // of the turn's last message that says something
	usage     dsh.Usage
	steps     int
	toolCalls int
	retries   int

	ledger   dsh.Ledger
	requests int
}

// add takes one event into the record.
func (r *record) add(ev dsh.Event) {
	r.ledger.Apply(&ev)
	r.requests, r.usage = r.ledger.Total()
	switch d := ev.Data.(type) {
	case dsh.TurnStart:
		r.turn, r.ended, r.text = d.Turn, false, ""
	case dsh.StepStart:
		r.steps++
	case dsh.AssistantMessage:
		if text := dsh.TextOf(d.Message.Content); strings.TrimSpace(text) != "" {
			r.text = text
		}
	case dsh.ToolStarted:
		r.toolCalls++
	case dsh.RetryScheduled:
		r.retries++
	case dsh.TurnEnd:
		r.ended, r.ending = true, d.Reason
	default:
	}
}

// A reason is why the command itself ended a turn.
type reason int

const (
	byNobody  reason = iota
	bySignal         // Ctrl-C, SIGTERM, SIGHUP
	byTimeout        // --timeout
	byOutput         // stdout was closed
	byCaller         // the context of execute
)

// verdict returns the exit code of a run, and what kept it from completing.
func (r *record) verdict(why reason, signal int) (code int, failure *problem) {
	if !r.ended {
		return exitFailed, &problem{"NOT_ENDED", "the turn has not ended"}
	}
	switch r.ending.Kind {
	case dsh.EndCompleted:
		return exitOK, nil
	case dsh.EndMaxTokens:
		return exitLimit, &problem{"MAX_TOKENS", "the answer was cut at the most tokens that it may have"}
	case dsh.EndBlocked:
		return exitFailed, &problem{"BLOCKED", "a hook refused the turn"}
	case dsh.EndError:
		if f := r.ending.Failure; f != nil {
			return exitFailed, &problem{string(f.Code), f.Error()}
		}
	case dsh.EndAborted:
		switch why {
		case bySignal:
			return signal, &problem{"INTERRUPTED", "the turn was interrupted"}
		case byTimeout:
			return exitLimit, &problem{"TIME_LIMIT", "the turn was ended by --timeout"}
		case byOutput:
			return exitFailed, &problem{"OUTPUT_CLOSED", "stdout was closed before the turn ended"}
		case byNobody, byCaller:
		}
		return exitFailed, &problem{"ABORTED", "the turn was aborted by " + cause(r.ending.Cause)}
	case dsh.EndInterrupted:
	}
	return exitFailed, &problem{"UNKNOWN", "the turn ended: " + string(r.ending.Kind)}
}

func cause(c dsh.Cause) string {
	if c.Reason != "" {
		return string(c.Kind) + ": " + c.Reason
	}
	return string(c.Kind)
}
