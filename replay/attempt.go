package replay

import (
	"github.com/dsh-actor/dsh-actor/dsh"
)

// attempt is one request of the open step.
type attempt struct {
	request int // in the report
	derived mark
	asm     dsh.Assembler
	chunks  dsh.Sources
}

// ended reports whether the stream has its finish.
func (a *attempt) ended() bool { return a.asm.Finish() != nil }

// failure returns why the stream failed, as far as its finish says, or nil.
func (a *attempt) failure() *dsh.Failure {
	finish := a.asm.Finish()
	switch {
	case finish == nil || finish.Reason.Kind != dsh.FinishError && finish.Reason.Kind != dsh.FinishAborted:
		return nil
	case finish.Reason.Failure == nil:
		return &dsh.Failure{Code: dsh.CodeUnknown}
	}
	return finish.Reason.Failure
}

// begin begins an attempt, of which ev is the first trace, and derives its
// request as of the event before.
func (f *fold) begin(ev *dsh.Event) *attempt {
	f.over()
	s := f.step
	a := &attempt{request: len(f.report.Requests), derived: mark{ev.Seq - 1, f.history.Messages(), f.history.Generation()}}
	f.report.Requests = append(f.report.Requests, Request{
		Pos: dsh.Pos{Turn: f.brackets.Turn, Step: f.brackets.Step, Attempt: s.attempts},
		Seq: ev.Seq, Through: a.derived.seq, Header: f.header.Header, Messages: a.derived.messages,
	})
	s.attempts++
	s.attempt = a
	f.checkHeader(ev)
	return a
}

// strict looks whether a strict provider would take the derived messages. What
// is wrong with a history is told with the first request that has it.
func (f *fold) strict(ev *dsh.Event, m mark) {
	err := f.sent.check(m)
	switch {
	case err == nil:
		f.refusal = ""
	case err.Error() != f.refusal:
		f.refusal = err.Error()
		f.find(ev, KindRequest, "a strict provider would refuse it: %v", err)
	}
}

// over ends the attempt, if there is one, and says what became of it.
func (f *fold) over() {
	s := f.step
	if s == nil || s.attempt == nil {
		return
	}
	a := s.attempt
	r := &f.report.Requests[a.request]
	r.Usage = a.asm.Usage()
	if r.Outcome == "" {
		r.Outcome, r.Failure = Dropped, a.failure()
		if r.Failure != nil {
			r.Outcome = Failed
		}
	}
	for _, c := range a.chunks {
		s.earlier = s.earlier.With(c.First, c.Last)
	}
	s.attempt = nil
}

// chunk folds a chunk. The first one, and one behind a finish, begins an
// attempt.
func (f *fold) chunk(ev *dsh.Event, d dsh.AssistantChunk) {
	if !f.within(ev, d.Turn, d.Step) {
		return
	}
	if f.step.answered {
		f.find(ev, KindBracket, "a chunk behind the step's answer")
		return
	}
	a := f.step.attempt
	if a == nil || a.ended() {
		a = f.begin(ev)
		f.strict(ev, a.derived)
	}
	a.asm.Add(d.Chunk)
	a.chunks = a.chunks.With(ev.Seq, ev.Seq)
	f.report.Requests[a.request].Usage = a.asm.Usage()
}

// retryScheduled tells that the attempt failed, also one that left no other
// trace.
func (f *fold) retryScheduled(ev *dsh.Event, d dsh.RetryScheduled) {
	if !f.within(ev, d.Turn, d.Step) {
		return
	}
	if f.step.answered {
		f.find(ev, KindBracket, "a retry behind the step's answer")
		return
	}
	a := f.step.attempt
	if a == nil {
		a = f.begin(ev)
		f.strict(ev, a.derived)
	}
	if r := &f.report.Requests[a.request]; r.Outcome == "" {
		r.Outcome, r.Failure = Failed, d.Failure
	}
}

// requestSent compares the request with the digests of what was sent. A hook
// may send one request several times.
func (f *fold) requestSent(ev *dsh.Event, d dsh.RequestSent) {
	if !f.within(ev, d.Turn, d.Step) {
		return
	}
	s := f.step
	if s.answered {
		f.find(ev, KindBracket, "a request behind the step's answer")
		return
	}
	a := s.attempt
	if a != nil && f.report.Requests[a.request].Pos.Attempt != d.Attempt {
		f.over()
		a = nil
	}
	if a == nil {
		if d.Attempt < s.attempts {
			f.find(ev, KindBracket, "attempt %d is sent where attempt %d is next", d.Attempt, s.attempts)
		} else {
			s.attempts = d.Attempt // those between left no trace
		}
		a = f.begin(ev)
	}
	f.compare(ev, a, d)
}

// compare derives what the digests are of and compares.
func (f *fold) compare(ev *dsh.Event, a *attempt, d dsh.RequestSent) {
	r := &f.report.Requests[a.request]
	if f.step.start <= d.Through && d.Through < ev.Seq {
		a.derived = f.step.at(d.Through)
		r.Through, r.Messages = d.Through, a.derived.messages
	}
	f.strict(ev, a.derived)
	differences := f.sent.compare(d, r.Header, a.derived)
	if len(differences) == 0 && r.Digest != Different {
		r.Digest = Same
	}
	for _, text := range differences {
		r.Digest = Different
		f.find(ev, KindDigest, "%s", text)
	}
}

// at returns the history through an event of the step.
func (s *step) at(through dsh.Seq) mark {
	i := len(s.marks) - 1
	for i > 0 && s.marks[i].seq > through {
		i--
	}
	return s.marks[i]
}
