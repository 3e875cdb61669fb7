package loop

import (
	"slices"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// idle: no turn and no maintenance; nothing is open.
type idle struct{}

func (idle) String() string { return "idle" }

func (s idle) step(m *Machine, in Input) state { return m.unexpected(s, in) }

// A border is where a transition ends and the next begins. Between them the
// host lets observers of what was just logged act, so that a cancel at a
// border is seen on the other side.
type border uint8

const (
	stepEntered   border = iota // step/start and its messages are logged
	answerLogged                // the assistant message is logged
	stepClosed                  // step/end is logged
	turnClosed                  // turn/end is logged
	resultsLogged               // tool results are logged, more may follow
)

var borderNames = [...]string{"step-entered", "answer-logged", "step-closed", "turn-closed", "results-logged"}

// between: at a border, going on with Continue.
type between struct {
	at    border
	tools *executing // at answerLogged with calls and at resultsLogged
	fresh bool       // at turnClosed: the next turn may open at once
}

func (s between) String() string { return borderNames[s.at] }

func (s between) step(m *Machine, in Input) state {
	switch in.(type) {
	case Cancel:
		return s
	case Continue:
	default:
		return m.unexpected(s, in)
	}
	switch s.at {
	case stepEntered:
		return m.prepare()
	case answerLogged:
		return m.afterAnswer(s.tools)
	case stepClosed:
		return m.afterStep()
	case resultsLogged:
		return s.tools.advance(m)
	default:
		return m.afterTurn(s.fresh)
	}
}

// openTurn begins a turn: it logs the bracket, claims input and asks whether
// its first step may be entered.
func (m *Machine) openTurn() state {
	if m.Status() == hook.Idle {
		m.notify(hook.StatusChanged{Status: hook.Running})
	}
	m.lastTurn++
	m.turn = &turn{}
	m.aborted, m.latched = dsh.Cause{}, false
	m.log(dsh.TurnStart{Turn: m.lastTurn})
	return m.propose(true)
}

// propose claims input and asks whether a step may be entered: with all of
// next-step and, for the first step of a turn, one next-turn message.
func (m *Machine) propose(first bool) state {
	m.pos = dsh.Pos{Turn: m.lastTurn, Step: m.turn.step + 1}
	claimed := m.claim(first)
	m.turn.claimed = append(m.turn.claimed, claimed...)
	if m.cfg.Volatile {
		return admitting{messages: claimed}.ask(m)
	}
	m.do(Sync{Pos: m.pos})
	return admitting{messages: claimed}
}

// holds reports whether a turn is open and has claimed a message.
func (t *turn) holds(id dsh.MessageID) bool {
	return t != nil && slices.ContainsFunc(t.claimed, func(m *dsh.Message) bool { return m.ID == id })
}

// claim takes input for a step. Claims are pure deletions; the notices follow
// both.
func (m *Machine) claim(first bool) []*dsh.Message {
	steps := len(m.inbox.NextStep)
	turns := 0
	if first && len(m.inbox.NextTurn) > 0 {
		turns = 1
	}
	if steps+turns == 0 {
		return nil
	}
	claimed := make([]*dsh.Message, 0, steps+turns)
	claimed = append(append(claimed, m.inbox.NextStep...), m.inbox.NextTurn[:turns]...)
	if steps > 0 {
		m.splice(dsh.InboxSpliced{Target: dsh.NextStep, Removed: steps})
	}
	if turns > 0 {
		m.splice(dsh.InboxSpliced{Target: dsh.NextTurn, Removed: 1})
	}
	for _, message := range claimed {
		m.notify(hook.Claimed{Message: message, Turn: m.lastTurn})
	}
	return claimed
}

// admitting: the hooks are asked whether a step may be entered, once the log
// is durable.
type admitting struct {
	messages []*dsh.Message
	asked    bool // the log is durable and Admit is open
}

func (admitting) String() string { return "admitting" }

func (s admitting) ask(m *Machine) state {
	m.do(Admit{Pos: m.pos, Messages: s.messages, Config: m.proposal()})
	s.asked = true
	return s
}

func (s admitting) step(m *Machine, in Input) state {
	if _, ok := in.(Cancel); ok {
		return s // closes when the answer is there
	}
	if _, ok := in.(Synced); ok == s.asked {
		return m.unexpected(s, in)
	}
	switch in := in.(type) {
	case Synced:
		switch {
		case in.Err != nil:
			return m.failTurn(in.Err)
		case m.isAborted():
			return m.closeTurn()
		}
		return s.ask(m)
	case Admitted:
		return m.enter(in)
	case Refused:
		m.turn.ending = dsh.Ending{Kind: dsh.EndBlocked}
		return m.closeTurn()
	case HookFailed:
		return m.failTurn(in.Err)
	default:
		return m.unexpected(s, in)
	}
}

// enter opens a step with the admitted messages. A step that would add nothing
// is not opened when it is the turn's first or when the turn has an ending.
func (m *Machine) enter(in Admitted) state {
	if m.isAborted() {
		return m.closeTurn()
	}
	if len(in.Messages) == 0 {
		if m.turn.step == 0 {
			return m.closeEmpty()
		}
		if m.turn.ending.Kind != "" {
			return m.closeTurn()
		}
	}
	m.turn.step++
	m.turn.ending = dsh.Ending{}
	m.turn.failed = nil
	m.log(dsh.StepStart{Turn: m.lastTurn, Step: m.turn.step})
	for _, message := range in.Messages {
		if message.ID == "" {
			message = m.named(message)
		}
		m.logMessage(dsh.UserMessage{Message: message}, nil)
	}
	m.logContext(in.Prompt.Context)
	m.turn.prompt = in.Prompt
	return between{at: stepEntered}
}

// named returns a copy of message with an ID.
func (m *Machine) named(message *dsh.Message) *dsh.Message {
	named := *message
	named.ID = m.messageID()
	return &named
}

// endStep logs the end of the open step.
func (m *Machine) endStep() state {
	m.log(dsh.StepEnd{Turn: m.lastTurn, Step: m.turn.step})
	return between{at: stepClosed}
}

// afterStep goes on behind a step: to the turn's end if it has one and nothing
// is waiting, else to the next step.
func (m *Machine) afterStep() state {
	switch {
	case m.isAborted() || m.turn.ending.Kind == dsh.EndError:
		return m.closeTurn()
	case m.turn.ending.Kind == "" || len(m.inbox.NextStep) > 0:
		return m.propose(false)
	}
	m.do(AskStopping{Pos: m.pos})
	return stopping{}
}

// stopping: the turn-stopping hooks are asked.
type stopping struct{}

func (stopping) String() string { return "stopping" }

func (s stopping) step(m *Machine, in Input) state {
	switch in := in.(type) {
	case Cancel:
		return s
	case Settled:
		if !m.isAborted() && len(m.inbox.NextStep) > 0 {
			return m.propose(false)
		}
		return m.closeTurn()
	case HookFailed:
		return m.failTurn(in.Err)
	default:
		return m.unexpected(s, in)
	}
}

// failTurn ends the turn with an error that is nobody's structured failure.
// An abort that came first stands.
func (m *Machine) failTurn(err error) state {
	if m.isAborted() {
		return m.closeTurn()
	}
	m.fail(err, dsh.Flatten(err))
	return m.closeTurn()
}

// failStep ends the open step, and with it the turn, with such an error.
func (m *Machine) failStep(err error) state {
	m.fail(err, dsh.Flatten(err))
	return m.endStep()
}

// fail gives the turn its error ending.
func (m *Machine) fail(err error, f *dsh.Failure) {
	m.turn.err = err
	m.turn.ending = dsh.Ending{Kind: dsh.EndError, Failure: f}
}

// closeTurn logs the turn's end, aborted if it was, else with its ending. An
// aborted turn closes when the children have settled.
func (m *Machine) closeTurn() state {
	if m.isAborted() {
		m.turn.ending = dsh.Ending{Kind: dsh.EndAborted, Cause: m.aborted}
		if m.cfg.Children {
			m.do(AwaitChildren{Pos: m.pos})
			return settling{}
		}
	}
	if m.turn.ending.Kind == dsh.EndError {
		m.notify(hook.Erred{Turn: m.lastTurn, Step: m.turn.step, Err: m.turn.err})
	}
	fresh := m.turn.ending.Kind == dsh.EndCompleted || m.turn.ending.Kind == dsh.EndMaxTokens
	return m.logTurnEnd(fresh)
}

// settling: an aborted turn waits for the agent's children. Nothing else is
// open.
type settling struct{}

func (settling) String() string { return "settling" }

func (s settling) step(m *Machine, in Input) state {
	switch in.(type) {
	case Cancel:
		return s
	case ChildrenSettled:
		return m.logTurnEnd(false)
	default:
		return m.unexpected(s, in)
	}
}

// closeEmpty ends a turn that never opened a step. Input that is queued waits
// for the next wake.
func (m *Machine) closeEmpty() state {
	m.turn.ending = dsh.Ending{Kind: dsh.EndCompleted}
	return m.logTurnEnd(false)
}

func (m *Machine) logTurnEnd(fresh bool) state {
	m.log(dsh.TurnEnd{Turn: m.lastTurn, Reason: m.turn.ending})
	m.do(EndTurn{Turn: m.lastTurn, Ending: m.turn.ending, Usage: m.turn.usage, Answer: m.turn.answer})
	m.turn = nil
	m.pos = dsh.Pos{Turn: m.lastTurn, Step: -1} // answers to this turn are late now
	return between{at: turnClosed, fresh: fresh}
}

// afterTurn opens the next turn in the same phase after a normal end with
// input pending; otherwise the phase is over. A cancel of the closed turn has
// no effect on the next.
func (m *Machine) afterTurn(fresh bool) state {
	if fresh && !m.inbox.Empty() && !m.disposed {
		return m.openTurn()
	}
	return m.endPhase()
}

// endPhase makes the machine idle, and opens a turn at once if a wake was
// latched and something is pending.
func (m *Machine) endPhase() state {
	if m.Status() == hook.Running {
		m.notify(hook.StatusChanged{Status: hook.Idle})
	}
	again := m.latched && !m.inbox.Empty()
	m.aborted, m.latched = dsh.Cause{}, false
	m.state = idle{}
	if again {
		return m.openTurn()
	}
	return m.state
}
