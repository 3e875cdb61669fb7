package loop

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// Refusals of commands, to be compared with errors.Is.
var (
	// ErrBusy refuses maintenance while a turn or other maintenance runs.
	ErrBusy = errors.New("agent is busy")
	// ErrDuplicate refuses a message whose ID is already pending.
	ErrDuplicate = errors.New("message is already pending")
	// ErrNotPending refuses to edit a message that is not pending.
	ErrNotPending = errors.New("message is not pending")
)

// Config is what a machine needs to know of its agent. The zero value works
// but has no route.
type Config struct {
	Session dsh.SessionID
	// Call is the configuration that the agent's first request starts from, or
	// nil. It is kept until there was one.
	Call *dsh.CallConfig
	// MaxParallelCalls bounds the tool bodies in flight; 0 means 10.
	MaxParallelCalls int
	// Volatile says that there is nothing to make durable, so that no
	// barrier needs to be asked for.
	Volatile bool
	// Children says that the agent may have children that work in the
	// background: an aborted turn closes when they have settled.
	Children bool
	// Requested says that the last header of the log to be restored was sent
	// by this life of the agent, which goes on: what a hook made of it stands.
	Requested bool
}

// DefaultMaxParallelCalls is how many bodies of one message's tool calls run
// at once unless an agent says otherwise.
const DefaultMaxParallelCalls = 10

// A state is what the machine is waiting for. step applies an input that is
// no command (but may be a Cancel, which [Machine.cancel] has accounted for)
// and returns the state that follows.
type state interface {
	fmt.Stringer
	step(m *Machine, in Input) state
}

// A Machine is the loop of one agent. It is not safe for concurrent use: its
// host serialises inputs.
//
// Invariants:
//  1. Every event gets the next sequence number, here and nowhere else.
//  2. A turn closes when nothing that it asked is open.
//  3. The inbox is what the logged splices make of it.
type Machine struct {
	cfg Config

	// Folds of the log.
	next     dsh.Seq
	history  dsh.History
	inbox    dsh.Inbox
	header   dsh.HeaderFold
	lastTurn int
	snapshot contextFold
	seeded   bool // the log ends with session/end-seed

	state     state
	pos       dsh.Pos
	turn      *turn     // nil while none is open
	aborted   dsh.Cause // of the phase that runs; zero if not aborted
	latched   bool      // input woke the machine while it could not open a turn
	disposed  bool      // no wake is latched any more
	requested bool      // a header was logged in this life
	tasks     int       // maintenance tasks so far, for their positions

	now  int64
	slab []dsh.Event // events are carved from here, so that a Log is a slice
	mark int         // slab[mark:] is logged and not yet in out
	out  *output     // nil while the machine rests
}

// output is the effects of the step that is being made. It is used again for the
// next, and an idle machine does not pay for it.
type output struct {
	effects []Effect
	logs    []Log    // Log effects are carved from here
	told    []Notify // and Notify effects from here
	room    struct { // where they begin, so that a few take one allocation
		effects [effectRoom]Effect
		logs    [carveRoom]Log
		told    [carveRoom]Notify
	}
}

// effectRoom and carveRoom are for how many effects, and how many of a kind, there
// is room at once.
const (
	effectRoom = 8
	carveRoom  = effectRoom / 2
)

// reset forgets the effects of the last step; o may be nil.
func (o *output) reset() *output {
	if o == nil {
		o = &output{}
	}
	o.effects, o.logs, o.told = o.room.effects[:0], o.room.logs[:0], o.room.told[:0]
	return o
}

// carve puts v into an array that several values share and returns its
// address.
func carve[T any](room *[]T, v T) *T {
	if len(*room) == cap(*room) {
		*room = make([]T, 0, carveRoom)
	}
	*room = append(*room, v)
	return &(*room)[len(*room)-1]
}

// turn is what is known of the open turn. It exists while that is open, so that
// an idle machine does not pay for it.
type turn struct {
	claimed []*dsh.Message
	step    int  // steps opened
	sticky  bool // a step hit max-tokens
	ending  dsh.Ending
	err     error // behind an error ending
	usage   dsh.Usage
	failed  []dsh.Code // the step's attempts
	answer  *dsh.Message
	prompt  Prompt // of the open step
}

// New returns the machine of a new session.
func New(cfg Config) *Machine {
	if cfg.MaxParallelCalls <= 0 {
		cfg.MaxParallelCalls = DefaultMaxParallelCalls
	}
	if cfg.Call == nil {
		cfg.Call = &dsh.CallConfig{}
	}
	return &Machine{cfg: cfg, state: idle{}, requested: cfg.Requested}
}

// Step applies one input at a time in Unix milliseconds. It returns the
// effects that the host must perform in order, and for a refused command why;
// a refused command has no effects. The effects are valid until the next call;
// the events that they hold stay.
func (m *Machine) Step(now int64, in Input) ([]Effect, error) {
	m.out, m.now = m.out.reset(), now
	if at, ok := position(in); ok {
		if at != m.pos {
			return nil, nil // an answer from a previous life
		}
		m.state = m.state.step(m, in)
		m.flush()
		return m.out.effects, nil
	}
	if _, ok := in.(Continue); ok {
		m.state = m.state.step(m, in)
		m.flush()
		return m.out.effects, nil
	}
	err := m.command(in)
	m.flush()
	return m.out.effects, err
}

// Between reports whether the machine stands at a border between two
// transitions and goes on with [Continue].
func (m *Machine) Between() bool { _, ok := m.state.(between); return ok }

// Idle reports whether neither a turn nor maintenance is open.
func (m *Machine) Idle() bool { _, ok := m.state.(idle); return ok }

// Status returns the public status: maintenance counts as idle.
func (m *Machine) Status() hook.Status {
	switch m.state.(type) {
	case idle, *maintaining:
		return hook.Idle
	}
	return hook.Running
}

// State returns the name of the state that the machine is in.
func (m *Machine) State() string { return m.state.String() }

// Pos returns the position that open questions carry.
func (m *Machine) Pos() dsh.Pos { return m.pos }

// Next returns the sequence number of the next event.
func (m *Machine) Next() dsh.Seq { return m.next }

// Requested reports whether this life has sent a header: see [Config].
func (m *Machine) Requested() bool { return m.requested }

// LastTurn returns the number of the last turn opened.
func (m *Machine) LastTurn() int { return m.lastTurn }

// Inbox returns a copy of the pending lists.
func (m *Machine) Inbox() dsh.Inbox {
	return dsh.Inbox{
		NextTurn: append([]*dsh.Message(nil), m.inbox.NextTurn...),
		NextStep: append([]*dsh.Message(nil), m.inbox.NextStep...),
	}
}

// Pending returns how many messages wait for target.
func (m *Machine) Pending(target dsh.Target) int { return m.inbox.Len(target) }

// History returns the history, which the caller may only read, and only until
// the next Step.
func (m *Machine) History() *dsh.History { return &m.history }

// Rest gives back the memory that an idle machine does not need.
func (m *Machine) Rest() {
	m.out = nil
	m.slab, m.mark = m.slab[len(m.slab):], 0
}

// unexpected panics: an answer nobody asked for is a bug of the host.
func (m *Machine) unexpected(s state, in Input) state {
	panic(fmt.Sprintf("loop: %T in state %v at %v", in, s, m.pos))
}

// log appends one event without a place on the surface.
func (m *Machine) log(fact dsh.Fact) dsh.Seq {
	return m.append(dsh.Event{Data: fact})
}

// logMessage appends one surface event at the end.
func (m *Machine) logMessage(fact dsh.Fact, sources *dsh.Sources) dsh.Seq {
	return m.append(dsh.Event{Data: fact, Surface: dsh.Append, Sources: sources})
}

// slabSize is how many events share an allocation.
const slabSize = 8

// append numbers ev, folds it and puts it into the effects. It returns the
// event's (first) sequence number. The caller has made sure that the history
// accepts it.
func (m *Machine) append(ev dsh.Event) dsh.Seq {
	ev.Seq, ev.Time = m.next, m.now
	if err := m.history.Apply(&ev); err != nil {
		panic(fmt.Sprintf("loop: %v in state %v at %v", err, m.state, m.pos))
	}
	m.header.Apply(&ev)
	m.next += ev.Span()
	if len(m.slab) == cap(m.slab) {
		m.flush()
		m.slab, m.mark = make([]dsh.Event, 0, slabSize), 0
	}
	m.slab = append(m.slab, ev)
	return ev.Seq
}

// flush turns the events logged since the last effect into a Log effect.
func (m *Machine) flush() {
	if n := len(m.slab); n > m.mark {
		m.emit(carve(&m.out.logs, Log{Events: m.slab[m.mark:n]}))
		m.mark = n
	}
}

// do adds an effect behind the events logged so far.
func (m *Machine) do(e Effect) {
	m.flush()
	m.emit(e)
}

func (m *Machine) emit(e Effect) { m.out.effects = append(m.out.effects, e) }

func (m *Machine) notify(n hook.Notice) { m.do(carve(&m.out.told, Notify{Notice: n})) }

// messageID returns the ID of a message that the machine itself makes. It
// derives from the session and the number of the event that will hold it, so
// it is unique and the same whenever the same inputs are played again.
func (m *Machine) messageID() dsh.MessageID { return m.messageIDAt(m.next) }

func (m *Machine) messageIDAt(seq dsh.Seq) dsh.MessageID {
	return dsh.MessageID(string(m.cfg.Session) + "." + strconv.FormatInt(int64(seq), 10))
}
