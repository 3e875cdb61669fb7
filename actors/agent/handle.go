package agent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
)

// ErrGone is the error of asking an agent that has stopped.
var ErrGone = errors.New("agent is gone")

// A Handle speaks to one life of an agent. It is safe for concurrent use and
// is what hooks and tools get.
type Handle struct {
	cfg         *Config
	root        *actor.RootContext
	pid         *actor.PID
	gone        chan struct{}
	sessionGone <-chan struct{}
	failure     atomic.Pointer[error]
	idle        atomic.Int64 // since when, in Unix nanoseconds; 0 while busy
	rested      atomic.Bool
	closing     *closing // nil until the agent was disposed of
}

// closing is how the session of a disposed agent was closed.
type closing struct {
	answer chan error // has one before the session goes
	once   sync.Once
	err    error
}

var _ hook.Agent = (*Handle)(nil)

// Props returns how agents are spawned, all of them.
func Props(opts ...actor.PropsOption) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &host{} }, opts...)
}

// Spawn starts an agent with the props of all of them. sessionGone is closed
// when its session has stopped.
func Spawn(root *actor.RootContext, props *actor.Props, cfg *Config, sessionGone <-chan struct{}) *Handle {
	h := &Handle{cfg: cfg, root: root, gone: make(chan struct{}), sessionGone: sessionGone}
	h.pid = root.Spawn(props)
	h.Send(begin{h})
	return h
}

// begin is the first message of an agent.
type begin struct{ handle *Handle }

// ID returns the agent's ID.
func (h *Handle) ID() dsh.AgentID { return h.cfg.Initiator.Agent }

// Session returns the ID of the agent's session.
func (h *Handle) Session() dsh.SessionID { return h.cfg.Initiator.Session }

// PID returns where the agent receives its protocol.
func (h *Handle) PID() *actor.PID { return h.pid }

// Gone is closed when the agent has stopped.
func (h *Handle) Gone() <-chan struct{} { return h.gone }

// IdleSince returns when the agent last had something to do; ok is false while
// it has.
func (h *Handle) IdleSince() (t time.Time, ok bool) {
	ns := h.idle.Load()
	return time.Unix(0, ns), ns != 0
}

// Rested reports whether the agent was passivated. What it was sent and did not
// answer was not taken.
func (h *Handle) Rested() bool { return h.rested.Load() }

// Failure returns why the agent stopped by itself, or nil.
func (h *Handle) Failure() error {
	if err := h.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// Closed returns the session's answer to being closed. It is to be asked when
// agent and session are gone.
func (h *Handle) Closed() error {
	c := h.closing
	if c == nil {
		return nil // the agent failed
	}
	c.once.Do(func() {
		select {
		case c.err = <-c.answer:
		default:
			c.err = errors.New("agent: the session stopped before it was closed")
		}
	})
	return c.err
}

// Err returns the error of somebody who waited for an agent that is gone.
func (h *Handle) Err() error {
	if err := h.Failure(); err != nil {
		return err
	}
	return ErrGone
}

// Initiator returns who the agent acts for.
func (h *Handle) Initiator() dsh.Initiator { return h.cfg.Initiator }

// Send hands the agent a message of its protocol.
func (h *Handle) Send(message any) { h.root.Send(h.pid, message) }

// do applies one command and waits until the agent took it. The agent takes it
// at once, so a cancelled ctx (usually the turn's, and with it the hook's that
// asks) is no reason to give up on an answer that is on its way.
func (h *Handle) do(command loop.Input) (Done, error) {
	reply := make(chan Done, 1)
	h.Send(Do{Commands: []loop.Input{command}, Reply: reply})
	select {
	case done := <-reply:
		return done, done.Err()
	case <-h.gone:
		select {
		case done := <-reply:
			return done, done.Err()
		default:
			return Done{}, h.Err()
		}
	}
}

// Followup queues m for a turn of its own.
func (h *Handle) Followup(_ context.Context, m *dsh.Message) error {
	_, err := h.do(Followup(m))
	return err
}

// Steer queues m for the nearest step and wakes the agent.
func (h *Handle) Steer(_ context.Context, m *dsh.Message) error {
	_, err := h.do(Steer(m))
	return err
}

// Inject queues m for the nearest step without waking the agent.
func (h *Handle) Inject(_ context.Context, m *dsh.Message) error {
	_, err := h.do(Inject(m))
	return err
}

// Cancel aborts what runs.
func (h *Handle) Cancel(_ context.Context, cause dsh.Cause, keepInbox bool) error {
	_, err := h.do(loop.Cancel{Cause: cause, KeepInbox: keepInbox})
	return err
}

// Append logs a fact and returns its number.
func (h *Handle) Append(_ context.Context, fact dsh.Fact, op dsh.SurfaceOp, sources *dsh.Sources) (dsh.Seq, error) {
	done, err := h.do(loop.Append{Fact: fact, Surface: op, Sources: sources})
	return done.Next - 1, err
}

// Followup is the command that queues m for a turn of its own.
func Followup(m *dsh.Message) loop.Deliver {
	return loop.Deliver{Message: Named(m), Target: dsh.NextTurn, Wake: true}
}

// Steer is the command that queues m for the nearest step and wakes.
func Steer(m *dsh.Message) loop.Deliver {
	return loop.Deliver{Message: Named(m), Target: dsh.NextStep, Wake: true}
}

// Inject is the command that queues m for the nearest step without waking.
func Inject(m *dsh.Message) loop.Deliver {
	return loop.Deliver{Message: Named(m), Target: dsh.NextStep}
}

// Named returns m, or a copy of it with a new ID if it has none.
func Named(m *dsh.Message) *dsh.Message {
	if m.ID != "" {
		return m
	}
	named := *m
	named.ID = dsh.MessageID(uuid.NewString())
	return &named
}
