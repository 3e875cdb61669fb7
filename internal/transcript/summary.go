package transcript

import (
	"slices"
	"strings"

	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/words"
)

// State is what became of a session's last turn.
type State string

// States of a session besides the kinds of a turn's end.
const (
	// StateNew: there was no turn yet.
	StateNew State = "new"
	// StateOpen: a turn is open, or a crash left it so.
	StateOpen State = "open"
)

// titleMost is how many characters a title has at most.
const titleMost = 200

// A Summary folds a log into what a list says of it. NewSummary makes one.
type Summary struct {
	// Title is that of the log or else the first line that a user wrote.
	Title string
	State State
	// Failure is why the last turn failed, or nil.
	Failure         *dsh.Failure
	Turns           int
	Provider, Model string
	Last            int64 // when the last event was, in Unix milliseconds; 0 without any
	Events          dsh.Seq
	// Label and Mode are those of a sub-agent's descriptor.
	Label string
	Mode  delegation.Mode

	seed   dsh.Seq
	stale  bool // the title is that of the session that was copied
	inbox  dsh.Inbox
	ledger dsh.Ledger
	life   *delegation.Tally // the last that was asked for anything
	begun  *delegation.Tally // one that has not been asked yet, or nil
}

// NewSummary returns the summary of the log with header h and no events.
func NewSummary(h *dsh.SessionHeader) *Summary {
	return &Summary{State: StateNew, seed: h.SeedLength, life: &delegation.Tally{}}
}

// Add folds one event, packed or not.
func (s *Summary) Add(ev *dsh.Event) {
	if s.seed > 0 && ev.Seq >= s.seed { // the rest is the session's own
		s.seed, s.stale = 0, true
		s.inbox, s.ledger, s.life, s.begun = dsh.Inbox{}, dsh.Ledger{}, &delegation.Tally{}, nil
	}
	s.Events += ev.Span()
	s.Last = ev.Time
	s.ledger.Apply(ev)
	s.live(ev)
	switch d := ev.Data.(type) {
	case dsh.TurnStart:
		s.Turns = max(s.Turns, d.Turn)
		s.State, s.Failure = StateOpen, nil
	case dsh.TurnEnd:
		s.State, s.Failure = State(d.Reason.Kind), d.Reason.Failure
	case dsh.UserMessage:
		s.call(d.Message)
	case dsh.RequestHeader:
		s.Provider, s.Model = d.Header.Config.Provider, d.Header.Config.Model
	case dsh.InboxSpliced:
		_ = s.inbox.Apply(d) // what does not fit changes nothing
	case dsh.Opaque:
		s.opaque(ev, d)
	default:
	}
}

// call makes the first line that a user wrote the title, as long as there is no
// better one.
func (s *Summary) call(m *dsh.Message) {
	if _, ok := m.Source.(dsh.UserSource); !ok || s.Title != "" && !s.stale {
		return
	}
	text := strings.TrimSpace(dsh.TextOf(m.Content))
	line, _, _ := strings.Cut(text, "\n")
	s.Title, s.stale = words.OneLine(line, titleMost), false
}

func (s *Summary) opaque(ev *dsh.Event, d dsh.Opaque) {
	switch d.Name {
	case typeTitle:
		s.Title, s.stale = words.OneLine(titleOf(d.Raw), titleMost), false
	case delegation.DescriptorType:
		if desc, _, err := delegation.ReadDescriptor([]dsh.Event{*ev}, s.seed); err == nil && s.seed == 0 {
			s.Label, s.Mode = desc.Label, desc.Mode
		}
	}
}

// Pending returns how many messages no turn has taken yet.
func (s *Summary) Pending() int { return len(s.inbox.NextTurn) + len(s.inbox.NextStep) }

// Usage returns how many requests there were and what they used, without what
// was copied from another session.
func (s *Summary) Usage() (requests int, usage dsh.Usage) { return s.ledger.Total() }

// live adds to what the lives of a sub-agent come to. A life begins where the
// session is opened and counts once it is asked for anything, as in
// delegation.LastLife.
func (s *Summary) live(ev *dsh.Event) {
	asked := false
	switch d := ev.Data.(type) {
	case dsh.EndSeed:
		s.begun = &delegation.Tally{}
	case dsh.InboxSpliced:
		asked = len(d.Inserted) > 0
	case dsh.TurnStart:
		asked = true
	default:
	}
	s.life.Add(ev)
	if s.begun == nil {
		return
	}
	if s.begun.Add(ev); asked {
		s.life, s.begun = s.begun, nil
	}
}

// Outcome returns how the last life of a sub-agent ended, as far as its log
// tells. It means nothing while a turn is open.
func (s *Summary) Outcome() delegation.Outcome {
	quiet := delegation.Failed
	if s.Mode == delegation.Continuable {
		quiet = delegation.Completed
	}
	o := s.life.Outcome(quiet)
	if len(s.inbox.NextTurn) > 0 && o.Kind != delegation.Aborted || o.Kind == delegation.Completed && slices.ContainsFunc(s.inbox.NextStep, settles) {
		return delegation.Outcome{Kind: delegation.Interrupted, Output: o.Output, Turns: o.Turns, Usage: o.Usage}
	}
	return o
}

// settles reports whether a message tells that a sub-agent has settled.
func settles(m *dsh.Message) bool {
	kind, _ := delegation.Sender(m)
	return kind == delegation.SettledSource
}
