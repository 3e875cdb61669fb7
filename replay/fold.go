package replay

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// fold is the state of a replay. A log that breaks a rule is followed as well
// as can be, so that what comes behind is still looked at.
type fold struct {
	report    Report
	inherited dsh.Seq // events copied from another session

	next     dsh.Seq
	lastTurn int
	turn     int   // open; 0 for none
	steps    int   // of the open turn
	step     *step // nil while none is open
	inbox    dsh.Inbox
	history  dsh.History

	header dsh.HeaderFold
	headed bool // a header was logged in this life

	sent    sent   // what requests have in common
	refusal string // of the last request that a strict provider would refuse
}

// step is an open step.
type step struct {
	no       int
	start    dsh.Seq
	attempts int          // begun so far
	attempt  *attempt     // nil before the first and behind one that is over
	earlier  *dsh.Sources // the chunks of attempts that are over
	answered bool
	calls    []call
	marks    []mark
}

// mark is the history behind an event.
type mark struct {
	seq        dsh.Seq
	messages   []*dsh.Message
	generation int
}

// pos returns where the fold is. Behind an attempt it is that one's position
// until another begins.
func (f *fold) pos() dsh.Pos {
	p := dsh.Pos{Turn: f.turn}
	if f.step != nil {
		p.Step = f.step.no
		switch s := f.step; {
		case s.attempt != nil:
			p.Attempt = f.report.Requests[s.attempt.request].Pos.Attempt
		case s.answered:
			p.Attempt = s.attempts - 1
		default:
			p.Attempt = s.attempts
		}
	}
	return p
}

// find notes a finding about ev.
func (f *fold) find(ev *dsh.Event, kind Kind, format string, args ...any) {
	f.report.Findings = append(f.report.Findings, Finding{
		Kind: kind, Seq: ev.Seq, Pos: f.pos(), Text: fmt.Sprintf(format, args...),
	})
}

// add folds one event, which is not packed.
func (f *fold) add(ev *dsh.Event) {
	if ev.Seq != f.next {
		f.find(ev, KindSequence, "event %d stands where %d is due", ev.Seq, f.next)
	}
	f.next = ev.Seq + 1
	f.apply(ev)
	if err := f.history.Apply(ev); err != nil {
		f.find(ev, KindSurface, "%v", err)
	}
	f.header.Apply(ev)
	if f.step != nil && !f.step.answered && dsh.OnSurface(ev.Type()) {
		f.mark(ev.Seq)
	}
}

func (f *fold) mark(seq dsh.Seq) {
	f.step.marks = append(f.step.marks, mark{seq, f.history.Messages(), f.history.Generation()})
}

func (f *fold) apply(ev *dsh.Event) {
	switch d := ev.Data.(type) {
	case dsh.TurnStart:
		f.turnStart(ev, d)
	case dsh.TurnEnd:
		f.turnEnd(ev, d)
	case dsh.StepStart:
		f.stepStart(ev, d)
	case dsh.StepEnd:
		f.stepEnd(ev, d)
	case dsh.UserMessage:
		f.userMessage(ev)
	case dsh.RequestHeader:
		f.requestHeader(ev, d)
	case dsh.RequestParameters:
		f.requestParameters(ev, d)
	case dsh.RequestContext:
		f.requestContext(ev, d)
	case dsh.RequestSent:
		f.requestSent(ev, d)
	case dsh.AssistantChunk:
		f.chunk(ev, d)
	case dsh.AssistantMessage:
		f.answer(ev, d)
	case dsh.RetryScheduled:
		f.retryScheduled(ev, d)
	case dsh.RetryStarted:
		if f.within(ev, d.Turn, d.Step) {
			f.over()
		}
	case dsh.ToolStarted:
		f.toolStarted(ev, d)
	case dsh.ToolFinished:
		f.toolFinished(ev, d)
	case dsh.InboxSpliced:
		f.spliced(ev, d)
	case dsh.EndSeed:
		if f.turn != 0 {
			f.find(ev, KindBracket, "a seed ends inside turn %d", f.turn)
		}
		f.headed = false
	case dsh.ChunkRun, dsh.Opaque: // expanded; says nothing of requests
	}
}

// done ends the replay.
func (f *fold) done() *Report {
	r := &f.report
	r.Events, r.Open = f.next, f.turn != 0
	at := make(map[dsh.Pos]int, len(r.Requests))
	for i := range r.Requests {
		at[r.Requests[i].Pos] = i
		if r.Requests[i].Outcome == "" {
			r.Requests[i].Outcome = Pending
		}
	}
	for _, found := range r.Findings {
		if i, ok := at[found.Pos]; ok {
			r.Requests[i].Findings++
		}
	}
	return r
}

func (f *fold) turnStart(ev *dsh.Event, d dsh.TurnStart) {
	switch {
	case f.turn != 0:
		f.find(ev, KindBracket, "turn %d starts inside turn %d", d.Turn, f.turn)
	case d.Turn != f.lastTurn+1:
		f.find(ev, KindBracket, "turn %d starts where turn %d is next", d.Turn, f.lastTurn+1)
	}
	f.closeStep()
	f.turn, f.lastTurn, f.steps = d.Turn, d.Turn, 0
}

func (f *fold) turnEnd(ev *dsh.Event, d dsh.TurnEnd) {
	switch {
	case f.turn != d.Turn:
		f.find(ev, KindBracket, "turn %d ends and %s is open", d.Turn, number("turn", f.turn))
	case f.step != nil:
		f.find(ev, KindBracket, "turn %d ends and its step %d does not", d.Turn, f.step.no)
	}
	switch {
	case (d.Reason.Kind == dsh.EndAborted) != (d.Reason.Cause.Kind != ""):
		f.find(ev, KindEnding, "%s with the cause %q", d.Reason.Kind, d.Reason.Cause.Kind)
	case (d.Reason.Kind == dsh.EndError) != (d.Reason.Failure != nil):
		f.find(ev, KindEnding, "%s, and a failure is named: %t", d.Reason.Kind, d.Reason.Failure != nil)
	}
	f.closeStep()
	f.turn = 0
}

func (f *fold) stepStart(ev *dsh.Event, d dsh.StepStart) {
	switch {
	case f.turn == 0 || f.turn != d.Turn:
		f.find(ev, KindBracket, "step %d.%d starts and %s is open", d.Turn, d.Step, number("turn", f.turn))
	case f.step != nil:
		f.find(ev, KindBracket, "step %d.%d starts inside step %d", d.Turn, d.Step, f.step.no)
	case d.Step != f.steps+1:
		f.find(ev, KindBracket, "step %d.%d starts where step %d is next", d.Turn, d.Step, f.steps+1)
	}
	f.closeStep()
	f.turn, f.steps = d.Turn, d.Step
	f.step = &step{no: d.Step, start: ev.Seq}
	f.mark(ev.Seq)
}

func (f *fold) stepEnd(ev *dsh.Event, d dsh.StepEnd) {
	if f.within(ev, d.Turn, d.Step) {
		f.missing(ev)
	}
	f.closeStep()
}

func (f *fold) closeStep() {
	if f.step != nil {
		f.over()
		f.step = nil
	}
}

// within reports whether ev stands in the step that it names, and notes it if
// not.
func (f *fold) within(ev *dsh.Event, turn, no int) bool {
	switch {
	case f.step == nil:
		f.find(ev, KindBracket, "%s of step %d.%d, and no step is open", ev.Type(), turn, no)
	case turn != f.turn || no != f.step.no:
		f.find(ev, KindBracket, "%s of step %d.%d in step %d.%d", ev.Type(), turn, no, f.turn, f.step.no)
	default:
		return true
	}
	return false
}

// userMessage looks for a message that parts calls from their results. Whether
// it was claimed is no matter: hooks may add to what a step begins with, drop
// and rewrite it.
func (f *fold) userMessage(ev *dsh.Event) {
	if ev.Surface.Kind() == dsh.SurfaceAppend && f.step != nil && owing(f.step.calls) {
		f.find(ev, KindResult, "a message stands between the calls of an answer and their results")
	}
}

func (f *fold) spliced(ev *dsh.Event, d dsh.InboxSpliced) {
	if ev.Seq < f.inherited {
		return // the pending input of another session
	}
	if err := f.inbox.Apply(d); err != nil {
		f.find(ev, KindInbox, "%v", err)
		return
	}
	if d.Removed == 0 || len(d.Inserted) > 0 || d.Outcome != "" {
		return // no claim
	}
	switch {
	case f.turn == 0:
		f.find(ev, KindInbox, "%d messages of %s are claimed, and no turn is open", d.Removed, d.Target)
	case f.step != nil:
		f.find(ev, KindInbox, "%d messages of %s are claimed inside of step %d", d.Removed, d.Target, f.step.no)
	}
}

// number names a turn or a step that may not be there.
func number(what string, n int) string {
	if n == 0 {
		return "no " + what
	}
	return fmt.Sprintf("%s %d", what, n)
}
