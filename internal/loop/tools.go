package loop

import (
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/tool"
)

// executing: the tool calls of one answer run. Calls start and results are
// logged in the model's order; bodies overlap.
//
// Invariants: calls[:committed] have their result in the log; calls[:started]
// have their tool/call in the log; running counts the bodies in flight; at
// most one question about a call's border (its mode, durability, policies) is
// open: the lane.
type executing struct {
	calls     []call
	started   int
	committed int
	running   int
	exclusive bool // an exclusive call was started and not committed
	lane      lane
	concluded bool
	broken    error // the plumbing failed: nothing new starts
}

// call is one tool call on its way.
type call struct {
	dsh.ToolCall
	seq     dsh.Seq // of its tool/call
	running bool    // its body is in flight
	ready   bool    // outcome waits to be committed
	skip    bool    // a policy failed: no review
	outcome hook.Outcome
}

// lane is the question that is open about a border of a call.
type lane uint8

const (
	laneFree lane = iota
	laneClassify
	laneSync
	laneJudge
	laneReview
)

func newExecuting(calls []dsh.ToolCall) *executing {
	s := &executing{calls: make([]call, len(calls))}
	for i, c := range calls {
		s.calls[i].ToolCall = c
	}
	return s
}

func (*executing) String() string { return "executing" }

func (s *executing) step(m *Machine, in Input) state {
	switch in := in.(type) {
	case Cancel:
		return s.advance(m)
	case Classified:
		if !s.answered(laneClassify, in.Call, s.started) {
			return m.unexpected(s, in)
		}
		return s.classified(m, in)
	case Judged:
		if !s.answered(laneJudge, in.Call, s.started-1) {
			return m.unexpected(s, in)
		}
		return s.judged(m, in)
	case Synced:
		if !s.answered(laneSync, 0, 0) {
			return m.unexpected(s, in)
		}
		return s.synced(m, in.Err)
	case Ran:
		if !s.calls[in.Call].running {
			return m.unexpected(s, in)
		}
		s.ran(m, in)
		return s.advance(m)
	case Reviewed:
		if !s.answered(laneReview, in.Call, s.committed) {
			return m.unexpected(s, in)
		}
		return s.commit(m, in)
	case ToolsFailed:
		if s.broken == nil {
			s.broken = in.Err
		}
		return s.advance(m)
	default:
		return m.unexpected(s, in)
	}
}

// answered frees the lane if l is open in it and the answer is about the call
// that was asked about.
func (s *executing) answered(l lane, call, asked int) bool {
	if s.lane != l || call != asked {
		return false
	}
	s.lane = laneFree
	return true
}

// advance does what is due next: log the result at the head of the line, start
// the next call, or end the step. With a question open in the lane it waits.
func (s *executing) advance(m *Machine) state {
	if s.lane != laneFree {
		return s
	}
	if s.committed < s.started && s.calls[s.committed].ready {
		s.review(m)
		return s
	}
	if m.isAborted() || s.broken != nil {
		if s.committed == s.started {
			return s.wind(m)
		}
		return s // what runs is waited for
	}
	if s.started == len(s.calls) {
		if s.committed == s.started {
			return s.end(m)
		}
		return s
	}
	if s.exclusive || s.running >= m.cfg.MaxParallelCalls {
		return s
	}
	s.lane = laneClassify
	m.do(Classify{Pos: m.pos, Index: s.started, Call: s.calls[s.started].ToolCall})
	return s
}

// classified starts the call that was asked about, unless it must run alone
// and others are not done: then it is asked about again when they are.
func (s *executing) classified(m *Machine, in Classified) state {
	if m.isAborted() || s.broken != nil {
		return s.advance(m)
	}
	if in.Mode != tool.Parallel && s.committed < s.started {
		if s.calls[s.committed].ready {
			return s.advance(m)
		}
		return s
	}
	s.exclusive = in.Mode != tool.Parallel
	c := &s.calls[s.started]
	s.started++
	c.seq = m.log(dsh.ToolStarted{
		Turn: m.lastTurn, Step: m.turn.step, CallID: c.ID, Name: c.Name, Arguments: c.Arguments,
	})
	s.lane = laneJudge
	m.do(Judge{Pos: m.pos, Index: in.Call, Call: c.ToolCall})
	return s
}

// judged lets the call run, once its tool/call is durable, or makes its
// denial the outcome.
func (s *executing) judged(m *Machine, in Judged) state {
	c := &s.calls[in.Call]
	switch {
	case in.Err != nil:
		c.ready, c.skip, c.outcome = true, true, Failed(in.Err)
	case in.Verdict.Kind != hook.Allow:
		c.ready, c.outcome = true, denied(in.Verdict)
	case m.isAborted() || s.broken != nil:
		c.ready, c.outcome = true, s.notDispatched()
	case m.cfg.Volatile:
		s.run(m, in.Call)
	default:
		s.lane = laneSync
		m.do(Sync{Pos: m.pos})
		return s
	}
	return s.advance(m)
}

// synced starts the body of the call started last, if its tool/call is
// durable; otherwise the plumbing is broken.
func (s *executing) synced(m *Machine, err error) state {
	i := s.started - 1
	switch {
	case err != nil:
		s.broken = err
		s.calls[i].ready, s.calls[i].skip, s.calls[i].outcome = true, true, s.notDispatched()
	case m.isAborted() || s.broken != nil:
		s.calls[i].ready, s.calls[i].outcome = true, s.notDispatched()
	default:
		s.run(m, i)
	}
	return s.advance(m)
}

func (s *executing) run(m *Machine, i int) {
	s.running++
	s.calls[i].running = true
	m.do(Run{Pos: m.pos, Index: i, Call: s.calls[i].ToolCall})
}

// ran keeps a body's outcome until its turn. A success that came after the
// abort does not count; a failure of its own stays.
func (s *executing) ran(m *Machine, in Ran) {
	c := &s.calls[in.Call]
	s.running--
	c.running, c.ready, c.outcome = false, true, in.Outcome
	if m.isAborted() && !in.Outcome.IsError {
		c.outcome = Aborted(in.Outcome.Context)
	}
}

// review asks about the outcome at the head of the line.
func (s *executing) review(m *Machine) {
	c := &s.calls[s.committed]
	s.lane = laneReview
	m.do(Review{Pos: m.pos, Index: s.committed, Call: c.ToolCall, Outcome: c.outcome, Skip: c.skip})
}

// commit logs the result at the head of the line and delivers what was
// attached to it.
func (s *executing) commit(m *Machine, in Reviewed) state {
	c := &s.calls[s.committed]
	s.committed++
	s.exclusive = false
	s.logResult(m, c, in.Outcome)
	for _, message := range in.Outcome.Context {
		s.attach(m, message)
	}
	s.concluded = s.concluded || in.Outcome.Conclude && !in.Outcome.IsError
	c.outcome = hook.Outcome{}
	return between{at: resultsLogged, tools: s}
}

// attach makes context pending behind what already waits for the next step.
func (s *executing) attach(m *Machine, message *dsh.Message) {
	if message.ID == "" {
		message = m.named(message)
	}
	if _, i := m.inbox.Find(message.ID); i >= 0 {
		return // it is on its way already
	}
	m.splice(dsh.InboxSpliced{
		Target: dsh.NextStep, Start: m.inbox.Len(dsh.NextStep), Inserted: []*dsh.Message{message},
	})
	m.notify(hook.Inserted{Message: message})
}

func (s *executing) logResult(m *Machine, c *call, o hook.Outcome) {
	content := o.Content
	if content == nil {
		content = []dsh.Block{}
	}
	message := &dsh.Message{
		ID: m.messageID(), Role: dsh.RoleUser, Source: dsh.ToolSource{CallID: c.ID},
		Content: []dsh.Block{dsh.ToolResult{CallID: c.ID, Content: content, IsError: o.IsError}},
	}
	m.logMessage(dsh.ToolFinished{
		Turn: m.lastTurn, Step: m.turn.step, Message: message, Error: o.Error, Meta: o.Meta,
	}, dsh.Cite(c.seq))
}

// wind gives each call that never started its pair of call and result, so that
// every call of an answer has exactly one result, and ends the step.
func (s *executing) wind(m *Machine) state {
	for ; s.started < len(s.calls); s.started++ {
		c := &s.calls[s.started]
		c.seq = m.log(dsh.ToolStarted{
			Turn: m.lastTurn, Step: m.turn.step, CallID: c.ID, Name: c.Name, Arguments: c.Arguments,
		})
		s.logResult(m, c, s.notDispatched())
	}
	if s.broken != nil && !m.isAborted() {
		return m.failStep(s.broken)
	}
	return m.endStep()
}

// notDispatched returns the outcome of a call that never ran, because of an
// abort or because the plumbing broke.
func (s *executing) notDispatched() hook.Outcome {
	o := NotDispatched()
	if s.broken != nil {
		o.Content = []dsh.Block{dsh.Text{Text: textBroken}}
	}
	return o
}

// textBroken is the result of a call that broken plumbing kept from running.
const textBroken = "This call never ran: the runtime could not start it. It had no effect."

// end closes a step whose calls all have results: another one is owed, unless
// a result concluded the turn or an earlier step was cut off.
func (s *executing) end(m *Machine) state {
	if s.concluded || m.turn.sticky {
		m.turn.ending = m.concluded()
	}
	return m.endStep()
}
