package transcript

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/words"
)

// A Fold turns the events of a log into items. NewFold makes one.
//
// Invariant: what it keeps belongs to the open turn, the open step and the open
// attempt, but for sums and the last header.
type Fold struct {
	seed  dsh.Seq // events before it were copied from another session
	items []Item

	at      At
	events  dsh.Seq
	turns   int
	step    int
	turnAt  int64 // when it began
	stepAt  int64
	calls   map[dsh.CallID]call
	attempt dsh.Assembler
	said    bool // the attempt has chunks

	turnSum, stepSum, sum tally
	header                *dsh.Header
	inbox                 dsh.Inbox
	hidden                map[string]int
}

// call is a call of the open step.
type call struct {
	name    string
	at      int64
	started bool
}

// tally adds up events.
type tally struct {
	ledger dsh.Ledger
	sum    Sum
}

func (t *tally) total() Sum {
	sum := t.sum
	sum.Requests, sum.Usage = t.ledger.Total()
	return sum
}

// NewFold returns the fold of the log with header h.
func NewFold(h *dsh.SessionHeader) *Fold {
	return &Fold{seed: h.SeedLength, calls: map[dsh.CallID]call{}, hidden: map[string]int{}}
}

// Turns returns the number of the last turn.
func (f *Fold) Turns() int { return f.turns }

// Events returns how many events were folded, each chunk counted.
func (f *Fold) Events() dsh.Seq { return f.events }

// Add folds one event, packed or not, and returns what there is to tell of it.
// The slice is valid until the next call.
func (f *Fold) Add(ev *dsh.Event) []Item {
	f.items = f.items[:0]
	f.events += ev.Span()
	f.at.Seq, f.at.Time = ev.Seq, ev.Time
	if f.seed > 0 && ev.Seq >= f.seed {
		f.border()
	}
	for _, t := range []*tally{&f.turnSum, &f.stepSum, &f.sum} {
		t.ledger.Apply(ev)
	}
	f.fact(ev)
	return f.items
}

// border is passed once, between what was copied and what is the session's own.
// Who paid for the former, and what was pending then, is another's business.
func (f *Fold) border() {
	copied := int(f.seed)
	f.seed, f.sum, f.inbox = 0, tally{}, dsh.Inbox{}
	f.note(NoteBorder, "up to here copied from another session: "+words.Plural(copied, "event"))
}

func (f *Fold) emit(i Item) { f.items = append(f.items, i) }

func (f *Fold) note(kind NoteKind, text string) { f.emit(Note{f.at, kind, text}) }

func (f *Fold) hide(name string, n int) { f.hidden[name] += n }

// count adds to what the step, the turn and the session add up to.
func (f *Fold) count(add func(*Sum)) {
	add(&f.stepSum.sum)
	add(&f.turnSum.sum)
	add(&f.sum.sum)
}

func (f *Fold) fact(ev *dsh.Event) {
	switch d := ev.Data.(type) {
	case dsh.TurnStart:
		f.beginTurn(d)
	case dsh.TurnEnd:
		f.endTurn(d)
	case dsh.StepStart:
		f.abandon()
		f.step, f.stepAt, f.stepSum = d.Step, f.at.Time, tally{}
		clear(f.calls)
		f.count(func(s *Sum) { s.Steps++ })
		f.emit(StepBegan{f.at, d.Step})
	case dsh.StepEnd:
		f.abandon()
		f.emit(StepEnded{f.at, d.Step, f.since(f.stepAt), f.stepSum.total()})
		f.step = 0
		clear(f.calls)
	case dsh.UserMessage:
		f.message(ev, d.Message)
	case dsh.AssistantChunk:
		f.chunk(d.Chunk)
	case dsh.ChunkRun:
		for _, c := range d.Chunks {
			f.chunk(c)
		}
	case dsh.AssistantMessage:
		f.answer(d)
	case dsh.ToolStarted:
		f.calls[d.CallID] = call{d.Name, f.at.Time, true}
		f.count(func(s *Sum) { s.Calls++ })
		f.emit(Call{f.at, d.Name, d.Arguments})
	case dsh.ToolFinished:
		f.result(ev, d)
	case dsh.RequestHeader:
		f.emit(Request{f.at, d.Header, f.header})
		f.header = d.Header
	case dsh.RetryScheduled:
		f.abandon()
		f.count(func(s *Sum) { s.Retries++ })
		f.emit(Retry{f.at, d, time.Duration(d.DelayMs) * time.Millisecond})
	case dsh.InboxSpliced:
		f.spliced(d)
	default:
		f.fewWords(ev)
	}
}

// since returns how long ago then was, as far as a log's clock can be trusted.
func (f *Fold) since(then int64) time.Duration {
	return time.Duration(max(0, f.at.Time-then)) * time.Millisecond
}

func (f *Fold) beginTurn(d dsh.TurnStart) {
	f.abandon()
	f.turns = max(f.turns, d.Turn)
	f.at.Turn, f.turnAt, f.turnSum, f.step = d.Turn, f.at.Time, tally{}, 0
	f.emit(TurnBegan{f.at})
}

func (f *Fold) endTurn(d dsh.TurnEnd) {
	f.abandon()
	f.turns = max(f.turns, d.Turn)
	f.at.Turn = d.Turn
	f.emit(TurnEnded{f.at, d.Reason, f.since(f.turnAt), f.turnSum.total()})
	f.at.Turn, f.step = 0, 0
	clear(f.calls)
}

func (f *Fold) chunk(c dsh.Chunk) {
	f.said = true
	f.attempt.Add(c)
	f.hide(dsh.TypeAssistantChunk, 1)
}

// abandon tells of an attempt that ends without an answer.
func (f *Fold) abandon() {
	if blocks := f.saidSoFar(); len(blocks) > 0 {
		f.emit(Answer{At: f.at, Content: blocks, Failed: true})
	}
	f.attempt, f.said = dsh.Assembler{}, false
}

// saidSoFar returns what the model has said since the last answer.
func (f *Fold) saidSoFar() []dsh.Block {
	if !f.said {
		return nil
	}
	return slices.DeleteFunc(f.attempt.Blocks(), func(b dsh.Block) bool {
		switch b := b.(type) {
		case dsh.Text:
			return b.Text == ""
		case dsh.Reasoning:
			return b.Text == ""
		default:
			return false
		}
	})
}

func (f *Fold) message(ev *dsh.Event, m *dsh.Message) {
	item := Message{At: f.at, Message: m}
	if ev.Surface.Kind() == dsh.SurfaceReplace {
		item.Replaces = max(1, ev.Sources.Len())
	}
	f.emit(item)
}

func (f *Fold) answer(d dsh.AssistantMessage) {
	f.attempt, f.said = dsh.Assembler{}, false
	said := make([]dsh.Block, 0, len(d.Message.Content))
	for _, b := range d.Message.Content {
		if c, ok := b.(dsh.ToolCall); ok {
			f.calls[c.ID] = call{name: c.Name}
		} else {
			said = append(said, b)
		}
	}
	if len(said) > 0 || d.Interrupted {
		f.emit(Answer{At: f.at, Content: said, Interrupted: d.Interrupted})
	}
}

func (f *Fold) result(ev *dsh.Event, d dsh.ToolFinished) {
	for _, b := range d.Message.Content {
		r, ok := b.(dsh.ToolResult)
		if !ok {
			continue
		}
		c := f.calls[r.CallID]
		item := Result{
			At: f.at, Name: cmp.Or(c.name, string(r.CallID)), Started: c.started, Content: r.Content, IsError: r.IsError,
			Replaces: ev.Surface.Kind() == dsh.SurfaceReplace,
		}
		if c.started {
			item.Took = f.since(c.at)
		}
		if d.Error != nil {
			item.Code = d.Error.Code
		}
		if !item.Replaces {
			f.count(func(s *Sum) {
				if !c.started {
					s.Calls++
				}
				if r.IsError {
					s.CallsFailed++
				}
			})
		}
		f.emit(item)
	}
}

func (f *Fold) spliced(d dsh.InboxSpliced) {
	_ = f.inbox.Apply(d) // what does not fit changes nothing
	if d.Outcome == dsh.OutcomeCanceled {
		f.note(NoteInput, words.Plural(d.Removed, "message")+" withdrawn before any turn took it")
		return
	}
	f.hide(dsh.TypeInboxSpliced, 1)
}

// End returns what is to be said when there are no more events, of an answer
// that is not finished and of the rest. It changes nothing: more may come.
func (f *Fold) End() []Item {
	var items []Item
	if blocks := f.saidSoFar(); len(blocks) > 0 {
		items = append(items, Answer{At: f.at, Content: blocks, Unfinished: true})
	}
	end := End{
		At: f.at, Step: f.step, Events: f.events, Turns: f.turns, Sum: f.sum.total(),
		Pending: slices.Concat(f.inbox.NextStep, f.inbox.NextTurn),
	}
	for _, name := range slices.Sorted(maps.Keys(f.hidden)) {
		end.Hidden = append(end.Hidden, Count{name, f.hidden[name]})
	}
	return append(items, end)
}
