package delegation

import (
	"fmt"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Life is the last life in a child's log that was asked for anything. A life
// begins where an agent was made on the log, which session/end-seed marks.
type Life struct {
	// Begun says that there is one: the child has accepted a message.
	Begun bool
	// At is where it begins in the log. With the child's session it names the
	// life for ever.
	At dsh.Seq
	// Outcome is how it ended, as far as the log tells: what only the process
	// knew, that the child's time was over say, is not in it.
	Outcome Outcome
}

// LastLife reads a closed log (see [dsh.Closers]) whose events from a sequence
// number on are the child's own.
//
// A life that ended its last turn in order is interrupted all the same if it
// left something that it was going to work on: input for a turn, or what a
// child of its own was to wake it with.
func LastLife(events []dsh.Event, from dsh.Seq, mode Mode) (Life, error) {
	var l Life
	l.At, l.Begun = LifeStart(events, from)
	var inbox dsh.Inbox
	var tally Tally
	for i := range events {
		ev := &events[i]
		if splice, ok := ev.Data.(dsh.InboxSpliced); ok && ev.Seq >= from {
			if err := inbox.Apply(splice); err != nil {
				return Life{}, fmt.Errorf("%w: event %d: %w", ErrCorrupt, ev.Seq, err)
			}
		}
		if ev.Seq >= l.At {
			tally.Add(ev)
		}
	}
	quiet := Failed
	if mode == Continuable {
		quiet = Completed
	}
	l.Outcome = tally.Outcome(quiet)
	waiting := len(inbox.NextTurn) > 0 && l.Outcome.Kind != Aborted ||
		l.Outcome.Kind == Completed && hasNotice(inbox.NextStep)
	if waiting {
		l.Outcome.Kind, l.Outcome.Failure = Interrupted, nil
		l.Outcome.Limit, l.Outcome.Reason = "", ""
	}
	return l, nil
}

// LifeStart returns where the last life begins among the events from a sequence
// number on, which itself begins one, that has accepted a message.
func LifeStart(events []dsh.Event, from dsh.Seq) (at dsh.Seq, begun bool) {
	at = from
	here := from
	for i := range events {
		ev := &events[i]
		if ev.Seq < from {
			continue
		}
		switch d := ev.Data.(type) {
		case dsh.EndSeed:
			here = ev.Seq
		case dsh.InboxSpliced:
			if len(d.Inserted) > 0 {
				at, begun = here, true
			}
		case dsh.TurnStart:
			at, begun = here, true
		default:
		}
	}
	return at, begun
}

func hasNotice(pending []*dsh.Message) bool {
	for _, m := range pending {
		if kind, _ := Sender(m); kind == SettledSource {
			return true
		}
	}
	return false
}

// NoticeID names the notice of a life of a child. Whoever tells the parent uses
// it, so that a parent whose log has it is not told again.
func NoticeID(child dsh.SessionID, at dsh.Seq) dsh.MessageID {
	return dsh.MessageID(fmt.Sprintf("%s%s-%d", noticePrefix, child, at))
}

const noticePrefix = "settled-"

// IsNoticeID reports whether a notice has such a name, and not one that somebody
// else gave it.
func IsNoticeID(id dsh.MessageID) bool { return strings.HasPrefix(string(id), noticePrefix) }
