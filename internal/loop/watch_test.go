package loop

import (
	"slices"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/tool"
)

// watch holds what a machine does to the laws that a log does not show: what
// is asked when, what an abort stops, which bodies overlap, where messages go.
type watch struct {
	status            hook.Status
	aborted           bool      // an Abort was passed on and what it aborts is not over
	cause             dsh.Cause // of the first cancel of the open turn or task
	entered           bool      // the last input opened a step
	due               []*dsh.Message
	last              dsh.Ending // of the last turn/end
	header            *dsh.Header
	config            dsh.CallConfig // of the last preparation
	durable           dsh.Seq        // what a barrier has made durable
	usage             dsh.Usage
	attempt           *dsh.Usage       // last told by the open stream
	derived           bool             // the last derivation succeeded
	asked             map[dsh.Pos]bool // positions of the requests of this life
	latched, disposed bool

	modes   map[int]tool.Mode // by the last classification of each call
	started []startedCall     // of the open step
	running map[int]bool

	inserted, claimed, discarded map[dsh.MessageID]int
}

type startedCall struct {
	seq       dsh.Seq
	exclusive bool
	done      bool
}

func newWatch() watch {
	return watch{
		inserted: map[dsh.MessageID]int{}, claimed: map[dsh.MessageID]int{}, discarded: map[dsh.MessageID]int{},
	}
}

// begin forgets what ended with a life; what was logged lives on.
func (w *watch) begin() {
	w.status, w.aborted, w.cause, w.due = hook.Idle, false, dsh.Cause{}, nil
	w.latched, w.disposed, w.asked = false, false, map[dsh.Pos]bool{}
	w.modes, w.started, w.running = map[int]tool.Mode{}, nil, map[int]bool{}
}

func (w *watch) pending(m *Machine) []*dsh.Message {
	b := m.Inbox()
	return slices.Concat(b.NextStep, b.NextTurn)
}

// input looks at an input before the machine gets it.
func (w *watch) input(m *Machine, in Input) {
	w.entered, w.due = false, nil
	if pos, ok := position(in); ok && pos != m.Pos() {
		return
	}
	switch in := in.(type) {
	case Cancel:
		if !m.Idle() && m.State() != borderNames[turnClosed] && w.cause.Kind == "" {
			w.cause = in.Cause
		}
		w.disposed = w.disposed || in.Cause.Kind == dsh.CauseDisposed
		w.latched = w.latched && in.KeepInbox && !w.disposed
	case Prepared:
		w.config = *in.Config
	case Derived:
		w.derived = in.Err == nil
	case Admitted:
		w.due = slices.Clone(in.Messages)
	case StreamEnded:
		if w.attempt != nil {
			w.usage, w.attempt = w.usage.Add(*w.attempt), nil
		}
	case Ran:
		delete(w.running, in.Call)
	case Maintained:
		w.aborted, w.cause = false, dsh.Cause{}
	}
}

// effect looks at an effect before the host performs it.
func (w *watch) effect(s *sim, e Effect) {
	if w.aborted {
		switch e.(type) {
		case *Log, *Notify, Review, AwaitChildren, EndTurn:
		default:
			fail("after an abort the machine asks %s", printQuestion(e))
		}
	}
	switch e := e.(type) {
	case Abort:
		if e.Cause != w.cause || e.Pos != s.m.Pos() {
			fail("aborted by %v at %v; the first cause is %v", e.Cause, e.Pos, w.cause)
		}
		w.aborted = true
	case Run:
		w.run(s, e)
	case Prepare:
		if w.asked[e.Pos] {
			fail("two requests at %v: an answer to the first would pass for one to the second", e.Pos)
		}
		w.asked[e.Pos] = true
	case OpenStream:
		w.attempt = nil
		if !w.derived {
			fail("a request is made although the log is not durable")
		}
		if err := dsh.CheckRequest(e.Request.Messages); err != nil {
			fail("request: %w", err)
		}
		if e.Request.Header != w.header || !w.header.Config.Equal(w.config) {
			fail("the request's header is not the one last logged, or not what was prepared")
		}
	case EndTurn:
		if e.Ending != w.last || len(s.open) > 0 {
			fail("turn %d ends %v (logged: %v) with %d questions open", e.Turn, e.Ending, w.last, len(s.open))
		}
		if e.Usage.InputTokens != w.usage.InputTokens {
			fail("turn %d used %d tokens, told %d", e.Turn, w.usage.InputTokens, e.Usage.InputTokens)
		}
		w.aborted, w.cause = false, dsh.Cause{}
	case *Notify:
		w.notice(e.Notice)
	}
}

// run holds the overlap of bodies to the rules of the pool.
func (w *watch) run(s *sim, e Run) {
	w.running[e.Index] = true
	limit := s.cfg.MaxParallelCalls
	if limit == 0 {
		limit = DefaultMaxParallelCalls
	}
	if len(w.running) > limit {
		fail("%d bodies run, the pool has %d", len(w.running), limit)
	}
	me := w.started[e.Index]
	for i, other := range w.started {
		if i != e.Index && !other.done && (me.exclusive || other.exclusive) {
			fail("call %d (exclusive: %v) runs beside %d (exclusive: %v)", e.Index, me.exclusive, i, other.exclusive)
		}
	}
	if !s.cfg.Volatile && w.durable <= me.seq {
		fail("call %d runs before event %d is durable", e.Index, me.seq)
	}
}

func (w *watch) notice(n hook.Notice) {
	switch n := n.(type) {
	case hook.StatusChanged:
		if n.Status == w.status {
			fail("the status changes from %s to %s", w.status, n.Status)
		}
		w.status = n.Status
	case hook.Inserted:
		w.inserted[n.Message.ID]++
	case hook.Claimed:
		w.claimed[n.Message.ID]++
	case hook.Discarded:
		w.discarded[n.Message.ID]++
	case hook.Created, hook.SessionStarted, hook.Erred, hook.Disposed:
	}
}

// event looks at an event that the machine logged.
func (w *watch) event(ev dsh.Event) {
	switch d := ev.Data.(type) {
	case dsh.TurnStart:
		w.usage, w.latched = dsh.Usage{}, false
		if w.status != hook.Running || w.aborted {
			fail("turn %d opens with status %s, aborted %v", d.Turn, w.status, w.aborted)
		}
	case dsh.TurnEnd:
		w.last = d.Reason
		if (d.Reason.Kind == dsh.EndAborted) != w.aborted || d.Reason.Cause != w.cause {
			fail("turn %d ends %s by %v; aborted: %v by %v", d.Turn, d.Reason.Kind, d.Reason.Cause, w.aborted, w.cause)
		}
	case dsh.StepStart:
		w.entered = true
		w.modes, w.started, w.running = map[int]tool.Mode{}, nil, map[int]bool{}
	case dsh.StepEnd:
		if len(w.running) > 0 {
			fail("step %d.%d ends while %d bodies run", d.Turn, d.Step, len(w.running))
		}
	case dsh.UserMessage:
		if w.entered && len(w.due) > 0 {
			if due := w.due[0]; due.ID != "" && due != d.Message || dsh.TextOf(due.Content) != dsh.TextOf(d.Message.Content) {
				fail("%s is logged where %s was admitted", d.Message.ID, due.ID)
			}
			w.due = w.due[1:]
		}
	case dsh.AssistantChunk:
		if w.aborted {
			fail("a chunk is logged after the abort")
		}
		if usage, ok := d.Chunk.(dsh.Usage); ok {
			w.attempt = &usage
		}
	case dsh.RequestHeader:
		if d.Reason == dsh.HeaderChange && d.Header.Equal(w.header) {
			fail("the same header is logged again")
		}
		w.header = d.Header
	case dsh.ToolStarted:
		i := len(w.started)
		w.started = append(w.started, startedCall{seq: ev.Seq, exclusive: w.modes[i] != tool.Parallel})
	case dsh.ToolFinished:
		if ev.Surface.Kind() == dsh.SurfaceAppend {
			i := slices.IndexFunc(w.started, func(c startedCall) bool { return !c.done })
			w.started[i].done = true
		}
	}
}

// after looks at the machine when the host has performed what an input caused.
func (w *watch) after(s *sim, in Input, refused error) {
	if w.entered && len(w.due) > 0 {
		fail("%d admitted messages are not logged", len(w.due))
	}
	if w.cause.Kind != "" && !w.aborted {
		fail("a cancel by %v was not passed on", w.cause)
	}
	if d, ok := in.(Deliver); ok && d.Wake && refused == nil {
		w.wake(s, d)
	}
	if _, ok := in.(Wake); ok && len(w.pending(s.m)) > 0 {
		w.latched = w.latched || w.waits(s) && !w.disposed
	}
	if s.m.Idle() && w.latched && len(w.pending(s.m)) > 0 {
		fail("a wake was lost: the machine is idle, %d messages are pending", len(w.pending(s.m)))
	}
	w.latched = w.latched && !s.m.Idle()
	if w.status != s.m.Status() {
		fail("the status was told to be %s and is %s", w.status, s.m.Status())
	}
	if open := len(s.open); !s.m.Between() && (open == 0) != s.m.Idle() {
		fail("in state %s at %v %d questions are open: %s", s.m.State(), s.m.Pos(), open, s.describeOpen())
	}
	inbox, told := s.laws.Inbox(), s.m.Inbox()
	if !slices.Equal(inbox.NextStep, told.NextStep) || !slices.Equal(inbox.NextTurn, told.NextTurn) {
		fail("the inbox is not what the splices make of it")
	}
}

// wake follows a delivery that wakes where no turn can open at once.
func (w *watch) wake(s *sim, d Deliver) {
	target, i := s.m.inbox.Find(d.Message.ID)
	if i < 0 {
		return // claimed at once
	}
	w.latched = w.latched || w.waits(s) && !w.disposed
	if w.aborted && target == dsh.NextStep && d.Target == dsh.NextTurn {
		fail("%s was sent to %s and waits in %s", d.Message.ID, d.Target, target)
	}
	if w.aborted && target == dsh.NextStep {
		fail("%s wakes an aborted machine and waits for its next step", d.Message.ID)
	}
}

// waits reports whether what wakes has to wait for the end of the phase.
func (w *watch) waits(s *sim) bool {
	return w.aborted || s.m.Status() == hook.Idle || s.m.State() == borderNames[turnClosed]
}

// balance holds that each message that was accepted was claimed, discarded or
// is still pending: once each time it was accepted.
func (w *watch) balance(m *Machine) {
	pending := map[dsh.MessageID]int{}
	for _, message := range w.pending(m) {
		pending[message.ID]++
	}
	for id, n := range w.inserted {
		if n != w.claimed[id]+w.discarded[id]+pending[id] {
			fail("%s was accepted %d times, claimed %d, discarded %d, pending %d",
				id, n, w.claimed[id], w.discarded[id], pending[id])
		}
	}
}
