package replay

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/brackets"
)

// fold is the state of a replay. A log that breaks a rule is followed as well
// as can be, so that what comes behind is still looked at.
type fold struct {
	report    Report
	inherited dsh.Seq // events copied from another session

	next     dsh.Seq
	brackets brackets.Brackets
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
	start    dsh.Seq
	attempts int         // begun so far
	attempt  *attempt    // nil before the first and behind one that is over
	earlier  dsh.Sources // the chunks of attempts that are over
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
	p := dsh.Pos{Turn: f.brackets.Turn}
	if f.step != nil {
		p.Step = f.brackets.Step
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
		if f.brackets.Turn != 0 {
			f.find(ev, KindBracket, "a seed ends inside turn %d", f.brackets.Turn)
		}
		f.headed = false
	case dsh.ChunkRun, dsh.Opaque: // expanded; says nothing of requests
	}
}

// done ends the replay.
func (f *fold) done() *Report {
	r := &f.report
	r.Events, r.Open = f.next, f.brackets.Turn != 0
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
	f.nests(ev, f.brackets.Odd(ev))
	f.closeStep()
	f.brackets.Apply(ev)
}

func (f *fold) turnEnd(ev *dsh.Event, d dsh.TurnEnd) {
	f.nests(ev, f.brackets.Odd(ev))
	switch {
	case (d.Reason.Kind == dsh.EndAborted) != (d.Reason.Cause.Kind != ""):
		f.find(ev, KindEnding, "%s with the cause %q", d.Reason.Kind, d.Reason.Cause.Kind)
	case (d.Reason.Kind == dsh.EndError) != (d.Reason.Failure != nil):
		f.find(ev, KindEnding, "%s, and a failure is named: %t", d.Reason.Kind, d.Reason.Failure != nil)
	}
	f.closeStep()
	f.brackets.Apply(ev)
}

func (f *fold) stepStart(ev *dsh.Event, d dsh.StepStart) {
	f.nests(ev, f.brackets.Odd(ev))
	f.closeStep()
	f.brackets.Apply(ev)
	f.step = &step{start: ev.Seq}
	f.mark(ev.Seq)
}

func (f *fold) stepEnd(ev *dsh.Event, d dsh.StepEnd) {
	if f.within(ev, d.Turn, d.Step) {
		f.missing(ev)
	}
	f.closeStep()
	f.brackets.Apply(ev)
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
	return f.nests(ev, f.brackets.Outside(ev, turn, no))
}

// nests notes what is odd about the place of an event; it returns false if
// something is.
func (f *fold) nests(ev *dsh.Event, odd string) bool {
	if odd != "" {
		f.find(ev, KindBracket, "%s", odd)
	}
	return odd == ""
}

// userMessage looks for a message that parts calls from their results. Whether
// it was claimed is no matter: hooks may add to what a step begins with, drop
// and rewrite it.
func (f *fold) userMessage(ev *dsh.Event) {
	if ev.Surface.Kind == dsh.SurfaceAppend && f.step != nil && owing(f.step.calls) {
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
	case f.brackets.Turn == 0:
		f.find(ev, KindInbox, "%d messages of %s are claimed, and no turn is open", d.Removed, d.Target)
	case f.step != nil:
		f.find(ev, KindInbox, "%d messages of %s are claimed inside of step %d", d.Removed, d.Target, f.brackets.Step)
	}
}
