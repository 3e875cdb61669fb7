package dispatch

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// burst is how many messages one actor handles before others get a turn.
const burst = 256

// Mailbox returns the option with which an actor's mailbox is emptied by the
// pool's workers.
func (p *Pool) Mailbox() actor.PropsOption {
	return actor.WithMailbox(func() actor.Mailbox { return newMailbox(p, false) })
}

// Inline returns the option with which an actor handles a message on the
// goroutine that sends it, one at a time: whoever sends while another handles
// leaves the message to that one. It is for actors whose handlers are short
// and call nobody back: the hand-over to a worker would cost more than the
// work.
func (p *Pool) Inline() actor.PropsOption {
	return actor.WithMailbox(func() actor.Mailbox { return newMailbox(p, true) })
}

// mailbox is unbounded. System messages go before others.
//
// Invariant: running is set exactly while process is scheduled or active.
type mailbox struct {
	pool    *Pool
	inline  bool
	invoker actor.MessageInvoker
	work    func() // process, for the pool; nil if inline, which rarely needs it

	mu        sync.Mutex
	system    []any
	user      []any
	head      int    // user[:head] is taken
	room      [2]any // where user begins, so that a few messages take no memory
	running   bool
	suspended bool
}

var _ actor.Mailbox = (*mailbox)(nil)

func newMailbox(p *Pool, inline bool) *mailbox {
	m := &mailbox{pool: p, inline: inline}
	if !inline {
		m.work = m.process
	}
	return m
}

// PostUserMessage adds a message behind the others.
func (m *mailbox) PostUserMessage(message any) {
	m.mu.Lock()
	if m.inline && !m.running && m.head == len(m.user) && !m.suspended {
		m.handleNow(message, false)
		return
	}
	if m.user == nil {
		m.user = m.room[:0]
	}
	m.user = append(m.user, message)
	m.schedule()
}

// PostSystemMessage adds a message that goes before all user messages.
func (m *mailbox) PostSystemMessage(message any) {
	m.mu.Lock()
	if m.inline && !m.running {
		m.handleNow(message, true)
		return
	}
	m.system = append(m.system, message)
	m.schedule()
}

// handleNow handles a message that finds the actor idle, and then what came
// meanwhile. It unlocks the mailbox.
func (m *mailbox) handleNow(message any, system bool) {
	m.running = true
	m.mu.Unlock()
	m.handle(message, system)
	m.process()
}

// schedule makes sure that somebody empties the mailbox; it unlocks it.
func (m *mailbox) schedule() {
	start := !m.running
	m.running = true
	m.mu.Unlock()
	switch {
	case !start:
	case m.inline:
		m.process()
	default:
		m.pool.Run(m.work)
	}
}

// RegisterHandlers tells who handles messages. It comes before any message
// can, since nobody knows the actor yet.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
}

// Start does nothing: there is nothing to start.
func (m *mailbox) Start() {}

// UserMessageCount returns how many messages wait.
func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.user) - m.head
}

// process handles messages until there are none, or for a burst.
func (m *mailbox) process() {
	for range burst {
		message, system, ok := m.take()
		if !ok {
			return
		}
		m.handle(message, system)
	}
	m.pool.Run(m.process)
}

// take removes the next message; with none left the mailbox is idle and owns
// no memory for messages.
func (m *mailbox) take() (message any, system, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.system) > 0 {
		message = m.system[0]
		m.system[0] = nil
		if m.system = m.system[1:]; len(m.system) == 0 {
			m.system = nil
		}
		return message, true, true
	}
	if m.head == len(m.user) || m.suspended {
		if m.head == len(m.user) {
			m.user, m.head = nil, 0
			clear(m.room[:]) // a burst that outgrew it was copied
		}
		m.running = false
		return nil, false, false
	}
	message = m.user[m.head]
	m.user[m.head] = nil
	m.head++
	return message, false, true
}

func (m *mailbox) handle(message any, system bool) {
	defer func() {
		if v := recover(); v != nil {
			m.invoker.EscalateFailure(v, message)
		}
	}()
	if m.pool.Handled != nil {
		m.pool.Handled.Add(1)
	}
	if !system {
		m.invoker.InvokeUserMessage(message)
		return
	}
	switch message.(type) {
	case *actor.SuspendMailbox:
		m.suspend(true)
	case *actor.ResumeMailbox:
		m.suspend(false)
	default:
		m.invoker.InvokeSystemMessage(message)
	}
}

func (m *mailbox) suspend(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspended = on
}
