package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
	"github.com/dsh-actor/dsh-actor/tool"
)

// An Agent is one agent of a runtime.
//
// Messages without an ID get one. An agent that failed (a bug in this module:
// user code cannot make it) tells its callers so once and is reopened from its
// log by the next call.
type Agent struct {
	rt      *Runtime
	spec    Spec
	gear    gear
	id      dsh.AgentID
	session dsh.SessionID

	// The place in the tree; see tree.go.
	parent *Agent // nil for a top-level agent
	child  *Child // what the agent is to its parent, or nil
	root   dsh.AgentID
	depth  int
	// Guarded by rt.tree.mu.
	kids     *kids // nil before the first child
	draining bool  // no more children

	life     atomic.Pointer[life]
	mu       sync.Mutex // guards reopening and disposing
	disposed bool
}

// ID returns the agent's ID.
func (a *Agent) ID() dsh.AgentID { return a.id }

// Session returns the ID of the agent's session.
func (a *Agent) Session() dsh.SessionID { return a.session }

// Tools returns the registry of the agent's own tools. Changes take effect
// with its next step.
func (a *Agent) Tools() *tool.Registry { return a.gear.tools }

// Followup queues a message for a turn of its own and wakes the agent. When it
// returns nil the message is in the log, which is durable at its next barrier:
// at the latest when a step is proposed with the message.
func (a *Agent) Followup(ctx context.Context, m *dsh.Message) error {
	return a.Do(ctx, Followup(m))
}

// Steer queues a message for the nearest step and wakes the agent.
func (a *Agent) Steer(ctx context.Context, m *dsh.Message) error { return a.Do(ctx, Steer(m)) }

// Inject queues a message for the nearest step; it waits for something else
// that wakes the agent.
func (a *Agent) Inject(ctx context.Context, m *dsh.Message) error { return a.Do(ctx, Inject(m)) }

// KeepInbox makes a cancel leave pending input alone.
const KeepInbox = true

// Cancel aborts what runs and, unless told to keep it, withdraws what is
// pending. It returns when the agent has taken note; the turn ends when all
// that runs has come to its end (see [Agent.WaitIdle]). An idle agent has
// nothing to abort, and nothing is kept for later.
func (a *Agent) Cancel(ctx context.Context, cause dsh.Cause, keepInbox bool) error {
	return a.Do(ctx, Cancel(cause, keepInbox))
}

// A Command is something that an agent is told, for [Agent.Do].
type Command struct{ input loop.Input }

// Followup is the command of [Agent.Followup].
func Followup(m *dsh.Message) Command { return Command{agent.Followup(m)} }

// Steer is the command of [Agent.Steer].
func Steer(m *dsh.Message) Command { return Command{agent.Steer(m)} }

// Inject is the command of [Agent.Inject].
func Inject(m *dsh.Message) Command { return Command{agent.Inject(m)} }

// Send is the command that queues a message for target, waking the agent or
// not.
func Send(m *dsh.Message, target dsh.Target, wake bool) Command {
	return Command{loop.Deliver{Message: agent.Named(m), Target: target, Wake: wake}}
}

// Prepend is the command that queues a message ahead of others for target. It
// does not wake the agent.
func Prepend(m *dsh.Message, target dsh.Target) Command {
	return Command{loop.Deliver{Message: agent.Named(m), Target: target, Front: true}}
}

// Replace is the command that puts m where the message with id is pending.
func Replace(id dsh.MessageID, m *dsh.Message) Command {
	return Command{loop.Replace{ID: id, Message: agent.Named(m)}}
}

// Remove is the command that withdraws a pending message.
func Remove(id dsh.MessageID) Command { return Command{loop.Remove{ID: id}} }

// Clear is the command that withdraws all pending messages.
func Clear() Command { return Command{loop.Clear{}} }

// Cancel is the command of [Agent.Cancel].
func Cancel(cause dsh.Cause, keepInbox bool) Command {
	return Command{loop.Cancel{Cause: cause, KeepInbox: keepInbox}}
}

// Append is the command that logs a fact; see [Agent.Append].
func Append(fact dsh.Fact, op dsh.SurfaceOp, sources dsh.Sources) Command {
	return Command{loop.Append{Fact: fact, Surface: op, Sources: sources}}
}

// Do applies commands one after the other with nothing in between: no hook, no
// model and no tool gets to act before the last, and no other sender. Cancel
// and Followup together are "stop that and do this instead". A refused command
// does not keep the others from being applied; the errors are joined.
func (a *Agent) Do(ctx context.Context, commands ...Command) error {
	inputs := make([]loop.Input, len(commands))
	for i, c := range commands {
		inputs[i] = c.input
	}
	_, err := a.do(ctx, nil, inputs...)
	return err
}

// Append logs a fact that the program has to record and returns its number. A
// fact on the surface needs op.
func (a *Agent) Append(ctx context.Context, fact dsh.Fact, op dsh.SurfaceOp, sources dsh.Sources) (dsh.Seq, error) {
	l, err := a.alive(ctx)
	if err != nil {
		return 0, err
	}
	return l.handle.Append(ctx, fact, op, sources)
}

// do applies inputs and returns the life that took them.
func (a *Agent) do(ctx context.Context, outcome chan<- agent.Outcome, inputs ...loop.Input) (*life, error) {
	l, err := a.alive(ctx)
	if err != nil {
		return nil, err
	}
	reply := make(chan agent.Done, 1)
	l.handle.Send(agent.Do{Commands: inputs, Reply: reply, Outcome: outcome})
	done, err := await(ctx, a, l, reply)
	if err != nil {
		return l, err
	}
	return l, errors.Join(done.Errs...)
}

// Maintain runs task while the agent is idle; input that wakes waits for its
// end. The task's context names the agent and is cancelled with it. The error
// is the task's, or [ErrBusy].
func (a *Agent) Maintain(ctx context.Context, task func(ctx context.Context) error) error {
	l, err := a.alive(ctx)
	if err != nil {
		return err
	}
	reply := make(chan error, 1)
	l.handle.Send(agent.Maintain{Task: task, Reply: reply})
	result, err := await(ctx, a, l, reply)
	if err != nil {
		return err
	}
	return result
}

// WaitIdle returns when neither a turn nor maintenance is open. It follows
// work that was started in between.
func (a *Agent) WaitIdle(ctx context.Context) error {
	l, err := a.alive(ctx)
	if err != nil {
		return err
	}
	reply := make(chan struct{}, 1)
	l.handle.Send(agent.WaitIdle{Reply: reply})
	if _, err = await(ctx, a, l, reply); err != nil && ctx.Err() != nil {
		l.handle.Send(agent.Unwait{Reply: reply})
	}
	return err
}

// State is a snapshot of an agent.
type State struct {
	Status   hook.Status
	LastTurn int
	// Next is the number of the next event.
	Next  dsh.Seq
	Inbox dsh.Inbox
	// Surface is the events that the model sees; Messages is what it sees of
	// them.
	Surface  []dsh.Seq
	Messages []*dsh.Message
}

// State returns a snapshot of the agent.
func (a *Agent) State(ctx context.Context) (State, error) {
	l, err := a.alive(ctx)
	if err != nil {
		return State{}, err
	}
	reply := make(chan agent.State, 1)
	l.handle.Send(agent.Inspect{Reply: reply})
	s, err := await(ctx, a, l, reply)
	return State(s), err
}

// Dispose cancels what runs, waits for everything that was started, closes the
// session and gives the ID up. Pending input is discarded. A second call waits
// for the first.
func (a *Agent) Dispose(ctx context.Context) error { return a.dispose(ctx, false) }

func (a *Agent) dispose(ctx context.Context, keepInbox bool) error {
	drained, err := a.drainFirst(ctx, keepInbox)
	if err != nil {
		return err
	}
	if err := a.stop(ctx, keepInbox || drained); err != nil || a.child == nil {
		return err
	}
	return a.child.waitGone(ctx)
}

// stop ends the agent itself.
func (a *Agent) stop(ctx context.Context, keepInbox bool) error {
	a.mu.Lock()
	a.disposed = true
	l := a.life.Load()
	a.mu.Unlock()
	l.handle.Send(agent.Dispose{KeepInbox: keepInbox, Reply: make(chan error, 1)})
	select {
	case <-l.handle.Gone():
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.handle.Failure() != nil {
		// Nobody is left to close the session of an agent that failed.
		a.rt.system.Root.Send(l.session, session.Close{Reply: make(chan error, 1)})
	}
	select {
	case <-l.sessionGone:
	case <-ctx.Done():
		return ctx.Err()
	}
	a.forget()
	return l.handle.Closed()
}

// forget gives the agent's ID up. That of a child is given up by whoever tells
// how it ended.
func (a *Agent) forget() {
	if a.child == nil {
		a.rt.forget(a)
	}
}

// alive returns the agent's life, a new one if the last failed.
func (a *Agent) alive(ctx context.Context) (*life, error) {
	l := a.life.Load()
	if !l.failed() {
		return l, nil
	}
	l, err := a.reopen(ctx)
	if err != nil {
		return nil, fmt.Errorf("runtime: reopen agent %s: %w", a.id, err)
	}
	return l, nil
}

// gone returns the error of a call to a life that is over.
func (a *Agent) gone(l *life) error {
	if err := l.handle.Failure(); err != nil {
		return err
	}
	return fmt.Errorf("runtime: agent %s: %w", a.id, ErrDisposed)
}

// await waits for a reply from l.
func await[T any](ctx context.Context, a *Agent, l *life, reply <-chan T) (T, error) {
	var zero T
	select {
	case v := <-reply:
		return v, nil
	case <-ctx.Done():
		return zero, ctx.Err()
	case <-l.handle.Gone():
		select {
		case v := <-reply:
			return v, nil
		default:
			return zero, a.gone(l)
		}
	}
}
