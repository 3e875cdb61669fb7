package dsh

import (
	"fmt"
	"slices"
)

// Texts of results that no tool wrote. The model reads them.
const (
	// TextNotStarted answers a call that a crash kept from starting.
	TextNotStarted = "This call never started: the session was interrupted before it."
	// TextOutcomeUnknown answers a call that a crash left without a result.
	TextOutcomeUnknown = "This call was started and its result was lost when the session was interrupted. " +
		"Its outcome is unknown. Only a read-only or idempotent call may be repeated without checking first."
	// TextNotDispatched answers a call that a cancelled turn kept from starting.
	TextNotDispatched = "This call never ran because the turn was cancelled."
	// TextAborted answers a call that was running when its turn was cancelled.
	TextAborted = "This call was running when the turn was cancelled. It may have taken effect in part."
)

// Closers returns the events that complete a log which ends inside a turn, as
// after a crash: an error result for each tool call without one, then the end
// of the step, then the end of the turn, interrupted. It returns nil for a log
// that needs none.
//
// The same log always gives the same closers, with the time of its last event;
// a log that has them needs no more.
func Closers(events []Event) []Event {
	var o openTurn
	for i := range events {
		o.apply(&events[i])
	}
	if o.turn == 0 {
		return nil
	}
	last := &events[len(events)-1]
	r := repair{seq: last.Last() + 1, time: last.Time}
	for _, call := range o.calls {
		r.result(&o, call)
	}
	if o.step != 0 {
		r.add(Event{Data: StepEnd{Turn: o.turn, Step: o.step}})
	}
	r.add(Event{Data: TurnEnd{Turn: o.turn, Reason: Ending{Kind: EndInterrupted}}})
	return r.closers
}

// openTurn is what a log has opened and not closed. Zero numbers stand for
// none.
type openTurn struct {
	turn, step int
	calls      []openCall // in model order
}

// openCall is a tool call of the open step without a result.
type openCall struct {
	id      CallID
	started bool
	seq     Seq // of its tool/call, if started
}

func (o *openTurn) apply(ev *Event) {
	switch d := ev.Data.(type) {
	case TurnStart:
		*o = openTurn{turn: d.Turn}
	case TurnEnd:
		*o = openTurn{}
	case StepStart:
		o.step = d.Step
	case StepEnd:
		o.step, o.calls = 0, nil
	case AssistantMessage:
		for _, call := range CallsOf(d.Message.Content) {
			o.calls = append(o.calls, openCall{id: call.ID})
		}
	case ToolStarted:
		i := slices.IndexFunc(o.calls, func(c openCall) bool { return c.id == d.CallID && !c.started })
		if i >= 0 {
			o.calls[i].started, o.calls[i].seq = true, ev.Seq
		}
	case ToolFinished:
		if ev.Surface.Kind() == SurfaceReplace {
			return // an old result, shortened
		}
		if i := slices.IndexFunc(o.calls, func(c openCall) bool { return c.id == resultOf(d.Message) }); i >= 0 {
			o.calls = slices.Delete(o.calls, i, i+1)
		}
	default: // opens and closes nothing
	}
}

// resultOf returns the call that a result message answers.
func resultOf(m *Message) CallID {
	for _, b := range m.Content {
		if r, ok := b.(ToolResult); ok {
			return r.CallID
		}
	}
	if s, ok := m.Source.(ToolSource); ok {
		return s.CallID
	}
	return ""
}

// repair numbers the closers as they are added.
type repair struct {
	seq     Seq
	time    int64
	closers []Event
}

func (r *repair) add(ev Event) {
	ev.Seq, ev.Time = r.seq, r.time
	r.closers = append(r.closers, ev)
	r.seq++
}

func (r *repair) result(o *openTurn, call openCall) {
	failure, text := ToolNotStarted, TextNotStarted
	var sources *Sources
	if call.started {
		failure, text = ToolOutcomeUnknown, TextOutcomeUnknown
		sources = Cite(call.seq)
	}
	r.add(Event{
		Surface: Append,
		Sources: sources,
		Data: ToolFinished{
			Turn: o.turn,
			Step: o.step,
			Message: &Message{
				ID:      MessageID(fmt.Sprintf("interrupted-tool-result-%s-%d", call.id, r.seq)),
				Role:    RoleUser,
				Content: []Block{ToolResult{CallID: call.id, Content: []Block{Text{Text: text}}, IsError: true}},
				Source:  ToolSource{CallID: call.id},
			},
			Error: &failure,
		},
	})
}

// Codes of a [ForkError].
const (
	ForkOpenTurn        = "OPEN_TURN"
	ForkInvalidBoundary = "INVALID_BOUNDARY"
)

// A ForkError says why a log cannot be forked at a boundary.
type ForkError struct {
	// Code is ForkOpenTurn or ForkInvalidBoundary.
	Code     string
	Boundary Seq
	// Turn is the turn that is open at the boundary, with ForkOpenTurn.
	Turn int
	// Before and After are the nearest boundaries that would do. After is -1
	// if there is none.
	Before, After Seq
	// Events is how many events the log has.
	Events Seq
}

// Error says what is wrong and which boundaries would do.
func (e *ForkError) Error() string {
	if e.Code != ForkOpenTurn {
		near := e.Before
		if e.Boundary < 0 {
			near = e.After
		}
		return fmt.Sprintf("dsh: cannot fork at %d: the log has %d events; fork at %d", e.Boundary, e.Events, near)
	}
	text := fmt.Sprintf("dsh: cannot fork at %d: turn %d is open there; fork at %d, before it starts",
		e.Boundary, e.Turn, e.Before)
	if e.After < 0 {
		return text + ", for it has not ended"
	}
	return fmt.Sprintf("%s, or at %d, after it has ended", text, e.After)
}

// CheckFork returns why the first boundary events of a whole log cannot seed
// another one, as a [*ForkError], or nil.
func CheckFork(events []Event, boundary Seq) error {
	e := &ForkError{Boundary: boundary, After: -1}
	var o openTurn
	for i := range events {
		e.near(&o)
		o.apply(&events[i])
		if e.Events < boundary {
			e.Turn = o.turn
		}
		e.Events += events[i].Span()
	}
	e.near(&o)
	switch {
	case boundary < 0 || boundary > e.Events:
		e.Code, e.Turn = ForkInvalidBoundary, 0
	case e.Turn != 0:
		e.Code = ForkOpenTurn
	default:
		return nil
	}
	return e
}

// near takes note of a boundary behind e.Events, where o is open.
func (e *ForkError) near(o *openTurn) {
	switch {
	case o.turn != 0:
	case e.Events <= e.Boundary:
		e.Before = e.Events
	case e.After < 0:
		e.After = e.Events
	}
}

// Cut returns the first n events of a log, packed as they were. A [ChunkRun]
// that reaches beyond is replaced by its first part; events is not written to,
// and appending to the result does not either.
func Cut(events []Event, n Seq) []Event {
	var total Seq
	for i := range events {
		span := events[i].Span()
		if total+span > n {
			return cutAt(events, i, n-total)
		}
		total += span
	}
	return slices.Clip(events)
}

// cutAt returns events[:i] and the first n chunks of the run at i.
func cutAt(events []Event, i int, n Seq) []Event {
	if n <= 0 {
		return slices.Clip(events[:i])
	}
	part := events[i]
	run := part.Data.(ChunkRun) // nothing else spans more than one
	run.Chunks = slices.Clip(run.Chunks[:n])
	part.Data = run
	return append(slices.Clip(events[:i]), part)
}
