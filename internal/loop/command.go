package loop

import (
	"fmt"
	"slices"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// command applies a command, whatever the state.
func (m *Machine) command(in Input) error {
	switch in := in.(type) {
	case Start:
		m.start(in.Source)
	case Deliver:
		return m.deliver(in)
	case Wake:
		if !m.inbox.Empty() {
			m.wake()
		}
	case Replace:
		return m.replacePending(in)
	case Remove:
		return m.removePending(in.ID)
	case Clear:
		m.clearPending()
	case Cancel:
		m.cancel(in)
	case Maintain:
		return m.maintain()
	case Append:
		return m.appendFact(in)
	case Continue, Synced, Admitted, Refused, Prepared, Derived, Streamed, StreamEnded, Recovered, Settled, HookFailed,
		Classified, Judged, Ran, Reviewed, ToolsFailed, Maintained, ChildrenSettled:
		panic(fmt.Sprintf("loop: %T is no command", in))
	}
	return nil
}

// start marks where loaded history ends and announces the agent.
func (m *Machine) start(source hook.Source) {
	if m.next > 0 && !m.seeded {
		m.log(dsh.EndSeed{})
	}
	m.notify(hook.Created{})
	m.notify(hook.SessionStarted{Source: source})
}

// deliver makes a message pending. After an abort, what wakes cannot join the
// turn that is coming to its end: it waits in next-turn and the wake is kept
// for when the phase is over.
func (m *Machine) deliver(in Deliver) error {
	if _, i := m.inbox.Find(in.Message.ID); i >= 0 {
		return fmt.Errorf("loop: %w: %s", ErrDuplicate, in.Message.ID)
	}
	target := in.Target
	switch {
	case target == Nearest && m.Idle():
		target = dsh.NextTurn
	case target == Nearest:
		target = dsh.NextStep
	}
	if in.Wake && m.isAborted() && !m.Idle() {
		target = dsh.NextTurn
	}
	at := m.inbox.Len(target)
	if in.Front {
		at = 0
	}
	m.splice(dsh.InboxSpliced{Target: target, Start: at, Inserted: []*dsh.Message{in.Message}})
	m.notify(hook.Inserted{Message: in.Message})
	if in.Wake {
		m.wake()
	}
	return nil
}

// wake opens a turn now or, where that cannot be, remembers to.
func (m *Machine) wake() {
	switch m.state.(type) {
	case idle:
		m.state = m.openTurn()
	case *maintaining:
		m.latched = !m.disposed
	default:
		m.latched = m.latched || (m.turnIsClosed() || m.isAborted()) && !m.disposed
	}
}

func (m *Machine) replacePending(in Replace) error {
	target, i := m.inbox.Find(in.ID)
	if i < 0 {
		return fmt.Errorf("loop: replace %s: %w", in.ID, ErrNotPending)
	}
	if _, j := m.inbox.Find(in.Message.ID); j >= 0 && in.Message.ID != in.ID {
		return fmt.Errorf("loop: replace %s by %s: %w", in.ID, in.Message.ID, ErrDuplicate)
	}
	old := m.pending(target)[i]
	m.splice(dsh.InboxSpliced{
		Target: target, Start: i, Removed: 1,
		Inserted: []*dsh.Message{in.Message}, Outcome: dsh.OutcomeCanceled,
	})
	m.notify(hook.Discarded{Message: old})
	m.notify(hook.Inserted{Message: in.Message})
	return nil
}

func (m *Machine) removePending(id dsh.MessageID) error {
	target, i := m.inbox.Find(id)
	if i < 0 {
		return fmt.Errorf("loop: remove %s: %w", id, ErrNotPending)
	}
	m.discard(target, i, 1)
	return nil
}

// clearPending withdraws everything, next-step first.
func (m *Machine) clearPending() {
	for _, target := range []dsh.Target{dsh.NextStep, dsh.NextTurn} {
		if n := m.inbox.Len(target); n > 0 {
			m.discard(target, 0, n)
		}
	}
}

// discard withdraws n messages without a claim.
func (m *Machine) discard(target dsh.Target, at, n int) {
	gone := slices.Clone(m.pending(target)[at : at+n])
	m.splice(dsh.InboxSpliced{Target: target, Start: at, Removed: n, Outcome: dsh.OutcomeCanceled})
	for _, message := range gone {
		m.notify(hook.Discarded{Message: message})
	}
}

func (m *Machine) pending(target dsh.Target) []*dsh.Message {
	if target == dsh.NextStep {
		return m.inbox.NextStep
	}
	return m.inbox.NextTurn
}

// splice logs one change of a pending list and then makes it.
func (m *Machine) splice(s dsh.InboxSpliced) {
	m.log(s)
	if err := m.inbox.Apply(s); err != nil {
		panic(fmt.Sprintf("loop: %v in state %v at %v", err, m.state, m.pos))
	}
}

// cancel aborts the running phase, whose first cause wins, and drops what is
// pending and a wake that waits, unless told to keep them. A second disposal
// leaves what came after the first in the log.
func (m *Machine) cancel(in Cancel) {
	if in.Holding != "" && !m.turn.holds(in.Holding) {
		return
	}
	again := in.Cause.Kind == dsh.CauseDisposed && m.disposed
	if !in.KeepInbox && !again {
		m.clearPending()
		m.latched = false
	}
	if in.Cause.Kind == dsh.CauseDisposed {
		m.disposed, m.latched = true, false
	}
	if m.Idle() || m.isAborted() {
		return
	}
	m.aborted = in.Cause
	if m.turnIsClosed() {
		return // nothing is open
	}
	m.do(Abort{Pos: m.pos, Cause: in.Cause})
	m.state = m.state.step(m, in)
}

// turnIsClosed reports whether a turn has just ended and nothing followed yet.
func (m *Machine) turnIsClosed() bool {
	s, ok := m.state.(between)
	return ok && s.at == turnClosed
}

func (m *Machine) isAborted() bool { return m.aborted.Kind != "" }

// owesResults reports whether the last answer has calls without results.
func (m *Machine) owesResults() bool {
	switch s := m.state.(type) {
	case *executing:
		return true
	case between:
		return s.tools != nil
	}
	return false
}

// appendFact logs what a hook, a tool or a policy has to record.
func (m *Machine) appendFact(in Append) error {
	if in.Surface.Kind() == dsh.SurfaceAppend && m.owesResults() {
		return fmt.Errorf("loop: append %s: %w: tool calls wait for their results, which must follow at once; inject it",
			in.Fact.Type(), ErrBusy)
	}
	ev := dsh.Event{
		Seq: m.next, Data: in.Fact, Surface: in.Surface, Sources: in.Sources,
		Ignorable: dsh.Ours(in.Fact.Type()),
	}
	if err := m.history.Check(&ev); err != nil {
		return fmt.Errorf("loop: append: %w", err)
	}
	m.append(ev)
	return nil
}
