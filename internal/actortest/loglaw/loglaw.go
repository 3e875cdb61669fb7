// Package loglaw holds a session log to the laws that every log obeys,
// whoever wrote it and whatever happened on the way. It knows nothing of the
// loop: it reads the log as a stranger would.
package loglaw

import (
	"fmt"
	"slices"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Laws folds a log and checks each event against what came before. The zero
// value has seen none.
//
//  1. Sequence numbers are dense.
//  2. Turns count up by one, steps restart at 1; brackets nest and never
//     overlap; what belongs to a step stands in it.
//  3. Each tool call of an answer has one tool/call and one tool/result
//     citing it, both in the model's order, before the step ends. (A call
//     that a crash kept from starting has no tool/call.)
//  4. An answer cites exactly the chunks of its own attempt.
//  5. A turn's end names a cause exactly when it was aborted, and a failure
//     exactly when it met an error.
//  6. The inbox splices fit.
//  7. The surface fits, and what a model would be sent whenever it is asked
//     is a request that strict providers accept.
type Laws struct {
	// Inherited is how many events were copied from another session, whose
	// pending input is not this one's.
	Inherited dsh.Seq

	next     dsh.Seq
	lastTurn int
	turn     int // open; 0 for none
	step     int // open; 0 for none
	steps    int // of the open turn
	calls    []call
	chunks   *dsh.Sources // since the attempt began
	finished bool         // the attempt's stream has a finish
	answered bool         // the open step has its answer
	inbox    dsh.Inbox
	history  dsh.History
}

type call struct {
	dsh.ToolCall
	started dsh.Seq
	begun   bool
	done    bool
}

// Check folds a whole log, packed or not, in which nothing may be open at the
// end, and returns the first breach.
func Check(log []dsh.Event) error {
	var l Laws
	if err := l.AddAll(log); err != nil {
		return err
	}
	return l.Closed()
}

// AddAll folds events, packed or not.
func (l *Laws) AddAll(packed []dsh.Event) error {
	for ev := range dsh.Expand(packed) {
		if err := l.Add(&ev); err != nil {
			return err
		}
	}
	return nil
}

// Closed returns an error if a bracket is open.
func (l *Laws) Closed() error {
	if l.turn != 0 {
		return fmt.Errorf("law 2: the log ends inside turn %d, step %d", l.turn, l.step)
	}
	return dsh.CheckRequest(l.history.Messages())
}

// Inbox returns what the splices make.
func (l *Laws) Inbox() dsh.Inbox { return l.inbox }

// History returns the fold of the surface.
func (l *Laws) History() *dsh.History { return &l.history }

// Owing reports whether an answer's calls are not all answered yet, so that
// nothing may come between.
func (l *Laws) Owing() bool {
	return slices.ContainsFunc(l.calls, func(c call) bool { return !c.done })
}

// Add folds one event, which must not be packed.
func (l *Laws) Add(ev *dsh.Event) error {
	if ev.Seq != l.next {
		return fmt.Errorf("law 1: event %d follows %d", ev.Seq, l.next-1)
	}
	l.next++
	if err := l.apply(ev); err != nil {
		return fmt.Errorf("event %d %s: %w", ev.Seq, ev.Type(), err)
	}
	if err := l.history.Apply(ev); err != nil {
		return fmt.Errorf("law 7: %w", err)
	}
	return nil
}

func (l *Laws) apply(ev *dsh.Event) error {
	switch d := ev.Data.(type) {
	case dsh.TurnStart:
		return l.turnStart(d)
	case dsh.TurnEnd:
		return l.turnEnd(d)
	case dsh.StepStart:
		return l.stepStart(d)
	case dsh.StepEnd:
		return l.stepEnd(d)
	case dsh.RequestHeader, dsh.RequestContext:
		if l.step == 0 || l.answered {
			return fmt.Errorf("law 2: not between step/start and the answer")
		}
	case dsh.AssistantChunk:
		return l.chunk(ev.Seq, d)
	case dsh.AssistantMessage:
		return l.answer(ev, d)
	case dsh.ToolStarted:
		return l.toolStarted(ev.Seq, d)
	case dsh.ToolFinished:
		return l.toolFinished(ev, d)
	case dsh.UserMessage:
		if ev.Surface.Kind() == dsh.SurfaceAppend && l.Owing() {
			return fmt.Errorf("law 3: a message between an answer's calls and their results")
		}
	case dsh.InboxSpliced:
		if ev.Seq < l.Inherited {
			return nil
		}
		if err := l.inbox.Apply(d); err != nil {
			return fmt.Errorf("law 6: %w", err)
		}
	}
	return nil
}

func (l *Laws) turnStart(d dsh.TurnStart) error {
	if l.turn != 0 || d.Turn != l.lastTurn+1 {
		return fmt.Errorf("law 2: turn %d begins behind turn %d (open: %d)", d.Turn, l.lastTurn, l.turn)
	}
	l.turn, l.lastTurn, l.steps = d.Turn, d.Turn, 0
	return nil
}

func (l *Laws) turnEnd(d dsh.TurnEnd) error {
	switch {
	case l.turn != d.Turn || l.step != 0:
		return fmt.Errorf("law 2: turn %d ends in turn %d, step %d", d.Turn, l.turn, l.step)
	case (d.Reason.Kind == dsh.EndAborted) != (d.Reason.Cause.Kind != ""):
		return fmt.Errorf("law 5: %s with cause %q", d.Reason.Kind, d.Reason.Cause.Kind)
	case (d.Reason.Kind == dsh.EndError) != (d.Reason.Failure != nil):
		return fmt.Errorf("law 5: %s with failure %t", d.Reason.Kind, d.Reason.Failure != nil)
	}
	l.turn = 0
	return nil
}

func (l *Laws) stepStart(d dsh.StepStart) error {
	if l.turn == 0 || l.turn != d.Turn || l.step != 0 || d.Step != l.steps+1 {
		return fmt.Errorf("law 2: step %d.%d begins in turn %d, step %d of %d", d.Turn, d.Step, l.turn, l.step, l.steps)
	}
	l.step, l.steps = d.Step, d.Step
	l.calls, l.chunks, l.finished, l.answered = nil, nil, false, false
	return nil
}

func (l *Laws) stepEnd(d dsh.StepEnd) error {
	if l.step == 0 || l.turn != d.Turn || l.step != d.Step {
		return fmt.Errorf("law 2: step %d.%d ends in %d.%d", d.Turn, d.Step, l.turn, l.step)
	}
	for _, c := range l.calls {
		if !c.done {
			return fmt.Errorf("law 3: call %s has no result", c.ID)
		}
	}
	l.step, l.calls = 0, nil
	return nil
}

func (l *Laws) in(turn, step int) error {
	if l.step == 0 || turn != l.turn || step != l.step {
		return fmt.Errorf("law 2: of step %d.%d in %d.%d", turn, step, l.turn, l.step)
	}
	return nil
}

func (l *Laws) chunk(seq dsh.Seq, d dsh.AssistantChunk) error {
	if l.answered {
		return fmt.Errorf("law 4: a chunk behind the answer")
	}
	if l.finished { // another attempt begins
		l.chunks, l.finished = nil, false
	}
	l.chunks = l.chunks.With(seq, seq)
	if _, ok := d.Chunk.(dsh.Finish); ok {
		l.finished = true
	}
	return l.in(d.Turn, d.Step)
}

// answer checks that the citation is a tail of the chunks so far: an attempt
// that broke off without a finish leaves its chunks before it.
func (l *Laws) answer(ev *dsh.Event, d dsh.AssistantMessage) error {
	if ev.Surface.Kind() == dsh.SurfaceReplace {
		return nil
	}
	if err := l.in(d.Turn, d.Step); err != nil {
		return err
	}
	if l.answered {
		return fmt.Errorf("law 4: a second answer in one step")
	}
	l.answered = true
	if ev.Sources == nil {
		return fmt.Errorf("law 4: an answer without a citation")
	}
	cited := slices.Collect(ev.Sources.All())
	chunks := slices.Collect(l.chunks.All())
	if len(cited) > len(chunks) || !slices.Equal(cited, chunks[len(chunks)-len(cited):]) {
		return fmt.Errorf("law 4: cites %v of the chunks %v", cited, chunks)
	}
	for _, c := range dsh.CallsOf(d.Message.Content) {
		if d.Interrupted {
			return fmt.Errorf("law 3: an interrupted answer has calls")
		}
		l.calls = append(l.calls, call{ToolCall: c})
	}
	return nil
}

func (l *Laws) toolStarted(seq dsh.Seq, d dsh.ToolStarted) error {
	if err := l.in(d.Turn, d.Step); err != nil {
		return err
	}
	for i := range l.calls {
		c := &l.calls[i]
		if c.begun {
			continue
		}
		if c.ID != d.CallID || c.Name != d.Name || c.Arguments != d.Arguments {
			return fmt.Errorf("law 3: %s starts where %s is next", d.CallID, c.ID)
		}
		c.begun, c.started = true, seq
		return nil
	}
	return fmt.Errorf("law 3: %s starts and nobody called it", d.CallID)
}

func (l *Laws) toolFinished(ev *dsh.Event, d dsh.ToolFinished) error {
	if ev.Surface.Kind() == dsh.SurfaceReplace {
		return nil
	}
	if err := l.in(d.Turn, d.Step); err != nil {
		return err
	}
	result, ok := d.Message.Content[0].(dsh.ToolResult)
	if !ok || len(d.Message.Content) != 1 {
		return fmt.Errorf("law 3: a result message must hold one result")
	}
	for i := range l.calls {
		c := &l.calls[i]
		if c.done {
			continue
		}
		if c.ID != result.CallID {
			return fmt.Errorf("law 3: result of %s where the one of %s is next", result.CallID, c.ID)
		}
		if c.begun && !slices.Equal(slices.Collect(ev.Sources.All()), []dsh.Seq{c.started}) {
			return fmt.Errorf("law 3: the result of %s cites %v, its call is %d", c.ID, ev.Sources, c.started)
		}
		if !c.begun && (d.Error == nil || *d.Error != dsh.ToolNotStarted) {
			return fmt.Errorf("law 3: %s has a result and never started", c.ID)
		}
		c.done = true
		return nil
	}
	return fmt.Errorf("law 3: a result for %s, whom nobody called", result.CallID)
}
