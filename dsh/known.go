package dsh

import (
	"errors"
	"fmt"
)

// ErrUnknownEvent is wrapped by every refusal of [CheckKnown].
var ErrUnknownEvent = errors.New("unknown event")

// known are the event types of session format 0.
var known = map[string]bool{
	"agent-preset/selected":           true,
	TypeInboxSpliced:                  true,
	"approval/asked":                  true,
	"approval/decided":                true,
	"approval/policy":                 true,
	TypeAssistantChunk:                true,
	TypeAssistantMessage:              true,
	"command/done":                    true,
	"command/run":                     true,
	"compaction/end":                  true,
	"compaction/prune":                true,
	"compaction/start":                true,
	"compaction/summary":              true,
	"feedback/record":                 true,
	"goal/change":                     true,
	"hook/invoked":                    true,
	"hook/result":                     true,
	TypeRetryScheduled:                true,
	TypeRetryStarted:                  true,
	"permission/preset":               true,
	"plan/mode":                       true,
	TypeRequestContext:                true,
	TypeRequestHeader:                 true,
	"sandbox/mode":                    true,
	"schedule/change":                 true,
	TypeEndSeed:                       true,
	"session/title":                   true,
	"session/title-llm-request":       true,
	TypeStepEnd:                       true,
	TypeStepStart:                     true,
	"subagent/descriptor":             true,
	"team/member":                     true,
	"team/message/delivered":          true,
	"team/message/queued":             true,
	"team/task":                       true,
	"todo/write":                      true,
	"tool-workflow/agent-end":         true,
	"tool-workflow/agent-start":       true,
	"tool-workflow/run-end":           true,
	"tool-workflow/run-start":         true,
	TypeToolStarted:                   true,
	"tool/code-dispatch":              true,
	"tool/code-dispatch-start":        true,
	TypeToolFinished:                  true,
	TypeTurnEnd:                       true,
	TypeTurnStart:                     true,
	TypeUserMessage:                   true,
	"web/deepseek-search-llm-request": true,
}

// Ours reports whether events of this type are our own additions to the
// format. They are always ignorable.
func Ours(eventType string) bool {
	return eventType == TypeParameters || eventType == TypeRequestSent
}

// CheckKnown returns why a log that holds ev must not be loaded, or nil. What
// an event of an unknown type means cannot be guessed, so it refuses the whole
// log, unless its writer marked it as ignorable. Types and reasons that were
// retired are refused even then. Every error wraps [ErrUnknownEvent].
func CheckKnown(ev *Event) error {
	name := ev.Type()
	if name == "request/header-delta" || name == "mode/set" {
		return fmt.Errorf("%w: event %d has the retired type %s; load the log with the release that wrote it",
			ErrUnknownEvent, ev.Seq, name)
	}
	if h, ok := ev.Data.(RequestHeader); ok && h.Reason == "fallback" {
		return fmt.Errorf("%w: event %d is a %s with the retired reason fallback; load the log with the release that wrote it",
			ErrUnknownEvent, ev.Seq, name)
	}
	if known[name] || ev.Ignorable {
		return nil
	}
	return fmt.Errorf("%w: event %d has type %s; load the log with a release that knows it, "+
		"or have its writer mark such events with ignorable: true", ErrUnknownEvent, ev.Seq, name)
}
