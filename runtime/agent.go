package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	base    base
	gear    gear
	id      dsh.AgentID
	session dsh.SessionID
	loaded  dsh.Seq

	// The place in the tree; see tree.go.
	parent *Agent // nil for a top-level agent
	child  *Child // what the agent is to its parent, or nil
	root   dsh.AgentID
	depth  int
	// Guarded by rt.tree.mu.
	kids     *kids // nil before the first child
	draining bool  // no more children

	life      atomic.Pointer[life] // nil while it is passive
	followers atomic.Int32
	turning   latch // of lives: guards reopening, passivating and disposing
	disposed  bool
	slept     dsh.Seq // of a passive agent: how long its log was
	requested bool    // and whether it had sent a header
	pending   bool    // and had something in its inbox
}

// ID returns the agent's ID.
func (a *Agent) ID() dsh.AgentID { return a.id }

// Session returns the ID of the agent's session.
func (a *Agent) Session() dsh.SessionID { return a.session }

// Loaded returns how many events the session had when the agent was made: those
// of a session that was resumed, the copied ones of a fork. The agent's own
// begin there, the first of which may close a turn that a crash left open.
func (a *Agent) Loaded() dsh.Seq { return a.loaded }

// Tools returns the registry of the agent's own tools. Changes take effect
// with its next step.
func (a *Agent) Tools() *tool.Registry { return a.gear.tools }

// Followup queues a message for a turn of its own and wakes the agent. When it
// returns nil the message is in the log for good. [ErrNotDurable] says that the
// agent has it and a crash may still undo that.
func (a *Agent) Followup(ctx context.Context, m *dsh.Message) error {
	return a.Do(ctx, Followup(m))
}

// Steer queues a message for the nearest step and wakes the agent.
func (a *Agent) Steer(ctx context.Context, m *dsh.Message) error { return a.Do(ctx, Steer(m)) }

// Inject queues a message for the nearest step; it waits for something else
// that wakes the agent.
func (a *Agent) Inject(ctx context.Context, m *dsh.Message) error { return a.Do(ctx, Inject(m)) }

// Wake opens a turn if none is open and something is pending, as it may be in a
// session that was resumed. With nothing pending it does nothing.
func (a *Agent) Wake(ctx context.Context) error { return a.Do(ctx, Wake()) }

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

// Wake is the command of [Agent.Wake].
func Wake() Command { return Command{loop.Wake{}} }

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
func Append(fact dsh.Fact, op dsh.SurfaceOp, sources *dsh.Sources) Command {
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
	l, err := a.instruct(ctx, nil, inputs...)
	if err != nil || !slices.ContainsFunc(inputs, asserts) {
		return err
	}
	return a.durable(ctx, l)
}

// Append logs a fact that the program has to record and returns its number. A
// fact on the surface needs op.
func (a *Agent) Append(ctx context.Context, fact dsh.Fact, op dsh.SurfaceOp, sources *dsh.Sources) (dsh.Seq, error) {
	reply := make(chan agent.Done, 1)
	l, done, err := ask(ctx, a, agent.Do{
		Commands: []loop.Input{loop.Append{Fact: fact, Surface: op, Sources: sources}}, Reply: reply,
	}, reply)
	if err != nil {
		return 0, err
	}
	if err := done.Err(); err != nil {
		return 0, err
	}
	return done.Next - 1, a.durable(ctx, l)
}

// instruct applies inputs and returns the life that took them.
func (a *Agent) instruct(ctx context.Context, outcome chan<- agent.Outcome, inputs ...loop.Input) (*life, error) {
	reply := make(chan agent.Done, 1)
	l, done, err := ask(ctx, a, agent.Do{Commands: inputs, Reply: reply, Outcome: outcome}, reply)
	if err != nil {
		return l, err
	}
	return l, errors.Join(done.Errs...)
}

// asserts reports whether a command puts something into the log that whoever
// sends it relies on. A cancel is in a hurry, and a wake brings nothing.
func asserts(command loop.Input) bool {
	_, cancel := command.(loop.Cancel)
	_, wake := command.(loop.Wake)
	return !cancel && !wake
}

// durable returns when the log is durable as far as l has it by now. A turn that
// has just begun needs the same barrier, which is then waited for twice and
// passed once.
func (a *Agent) durable(ctx context.Context, l *life) error {
	if a.rt.opts.Store.Volatile() {
		return nil
	}
	reply := make(chan session.Synced, 1)
	a.rt.system.Root.Send(l.session, session.Sync{Reply: reply})
	var s session.Synced
	select {
	case s = <-reply:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.sessionGone:
		select {
		case s = <-reply:
		default:
			return a.closed(l)
		}
	}
	switch {
	case s.Err == nil:
		return nil
	case session.Lost(s.Err):
		return fmt.Errorf("runtime: agent %s: %w", a.id, s.Err)
	}
	return fmt.Errorf("runtime: agent %s: %w: %w", a.id, ErrNotDurable, s.Err)
}

// closed returns why the log of a life whose session is gone was not made durable
// to its end, or nil.
func (a *Agent) closed(l *life) error {
	if l.link.failure() != nil {
		return a.lost(l)
	}
	<-l.handle.Gone()
	if err := l.handle.Failure(); err != nil {
		return err
	}
	return l.handle.Closed()
}

// lost returns the error of a life whose session broke.
func (a *Agent) lost(l *life) error {
	return fmt.Errorf("runtime: agent %s: %w", a.id, l.link.failure())
}

// Maintain runs task while the agent is idle; input that wakes waits for its
// end. The task's context names the agent and is cancelled with it. The error
// is the task's, or [ErrBusy].
func (a *Agent) Maintain(ctx context.Context, task func(ctx context.Context) error) error {
	reply := make(chan error, 1)
	_, result, err := ask(ctx, a, agent.Maintain{Task: task, Reply: reply}, reply)
	if err != nil {
		return err
	}
	return result
}

// WaitIdle returns when neither a turn nor maintenance is open. It follows
// work that was started in between.
func (a *Agent) WaitIdle(ctx context.Context) error {
	reply := make(chan struct{}, 1)
	l, _, err := ask(ctx, a, agent.WaitIdle{Reply: reply}, reply)
	if err != nil && ctx.Err() != nil && l != nil {
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
	reply := make(chan agent.State, 1)
	_, s, err := ask(ctx, a, agent.Inspect{Reply: reply}, reply)
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
	if err := a.turning.take(ctx); err != nil {
		return err
	}
	l, first, err := a.last(ctx, keepInbox)
	a.turning.let()
	if l == nil {
		if tell := a.gear.hooks.Notified; first && tell != nil {
			tell(a.face(nil), hook.Disposed{})
		}
		a.forget()
		return err
	}
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
	if l.link.failure() != nil {
		return a.lost(l)
	}
	return l.handle.Closed()
}

// last marks the agent as disposed of and returns its last life, and whether
// nobody had before. A passive one has none, and is brought back only to discard
// what is pending. The caller holds the latch.
func (a *Agent) last(ctx context.Context, keepInbox bool) (l *life, first bool, err error) {
	first = !a.disposed
	if first && a.life.Load() == nil && a.pending && !keepInbox {
		err = a.wake(ctx)
	}
	a.disposed = true
	return a.life.Load(), first, err
}

// forget gives the agent's ID up. That of a child is given up by whoever tells
// how it ended.
func (a *Agent) forget() {
	if a.child == nil {
		a.rt.forget(a)
	}
}

// alive returns the agent's life, a new one if the last failed or the agent is
// passive.
func (a *Agent) alive(ctx context.Context) (*life, error) {
	if l := a.life.Load(); l != nil && !l.failed() && !l.handle.Rested() {
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

// ask sends the agent a message and waits for the reply. One that came too late
// for a life that was just given up is sent to the next.
func ask[T any](ctx context.Context, a *Agent, message any, reply <-chan T) (*life, T, error) {
	for {
		l, err := a.alive(ctx)
		if err != nil {
			var zero T
			return nil, zero, err
		}
		l.handle.Send(message)
		v, err := await(ctx, a, l, reply)
		if err == nil || !l.handle.Rested() || ctx.Err() != nil {
			return l, v, err
		}
	}
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
