package runtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
)

type (
	// ChildSpec describes a child.
	ChildSpec = delegation.Spec
	// ChildOutcome is how a child ended.
	ChildOutcome = delegation.Outcome
)

// A Child is one life of an agent that another agent asked for. Beside what
// every agent can do, it comes to one outcome: through [Child.Run], through
// [Child.Wait], or when it is disposed of. Then it is gone; a background child
// lives again when it is sent a message.
type Child struct {
	*Agent
	owner *Agent // the parent
	spec  delegation.Spec
	first dsh.Seq // of this life
	began dsh.Seq // where the log says that this life begins; see delegation.Life
	run   string  // names this life

	// Guarded by owner.rt.tree.mu.
	busy bool // works in the background
	cut  bool // cancelled with its parent, which waits for it

	begun    sync.Once
	accepted atomic.Bool // its inbox took a first message
	mine     atomic.Bool // its owner cancelled it
	overtime atomic.Bool

	mu     sync.Mutex // guards the timers and what the outcome is to be
	limit  *time.Timer
	grace  *time.Timer
	ended  bool
	told   sync.Once
	left   sync.Once
	set    bool // result is decided
	result delegation.Outcome
	done   chan struct{} // closed when result is there
	gone   chan struct{} // closed when nothing is left of the child
}

var _ delegation.Child = (*Child)(nil)

func newChild(owner *Agent, spec delegation.Spec) *Child {
	return &Child{
		owner: owner, spec: spec, run: uuid.NewString(),
		done: make(chan struct{}), gone: make(chan struct{}),
	}
}

// Run gives the child a prompt and waits for its outcome; see
// [Child.RunMessage].
func (c *Child) Run(ctx context.Context, prompt string) (ChildOutcome, error) {
	return c.RunMessage(ctx, dsh.UserText(prompt))
}

// RunMessage gives the child a message and waits until it has nothing left to
// do and is gone. When ctx ends first, the child is cancelled with cause parent
// and waited for, for the runtime's grace at most; the outcome tells. The error
// is about the child's being started at all.
func (c *Child) RunMessage(ctx context.Context, m *dsh.Message) (ChildOutcome, error) {
	if err := c.Begin(ctx, m); err != nil {
		return ChildOutcome{}, errors.Join(err, c.Dispose(context.WithoutCancel(ctx)))
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		c.curtail(dsh.Cause{Kind: dsh.CauseParent})
		<-c.done
	}
	return c.result, nil
}

// Begin gives the child its first message and returns when its inbox has it,
// durably: whoever is told that the child works will find it. The child settles
// by itself when it has nothing left to do.
func (c *Child) Begin(ctx context.Context, m *dsh.Message) error {
	if c.spec.Background {
		c.start()
	}
	c.watchTime()
	if c.spec.Background {
		c.working()
	}
	if err := c.Followup(ctx, m); err != nil && (c.spec.Background || !errors.Is(err, ErrNotDurable)) {
		return err
	}
	c.accepted.Store(true)
	c.start()
	c.retire()
	return nil
}

// Wait lets the child settle when it has nothing left to do, and returns its
// outcome. When ctx ends first, Wait returns its error and the child goes on.
func (c *Child) Wait(ctx context.Context) (ChildOutcome, error) {
	c.start()
	c.retire()
	select {
	case <-c.done:
		return c.result, nil
	case <-ctx.Done():
		return ChildOutcome{}, ctx.Err()
	}
}

// Done is closed when the child has its outcome.
func (c *Child) Done() <-chan struct{} { return c.done }

// Interrupt cancels the child's turn and keeps its inbox. It returns when the
// child has taken note.
func (c *Child) Interrupt(ctx context.Context) error {
	return c.Cancel(ctx, dsh.Cause{Kind: dsh.CauseParent}, KeepInbox)
}

// Dispose ends the child, its own children first, and waits until it is gone.
func (c *Child) Dispose(ctx context.Context) error {
	if c.life.Load() == nil {
		c.mine.Store(true)
		if c.life.Load() == nil {
			return c.waitGone(ctx) // whoever makes it disposes of it
		}
	}
	return c.dispose(ctx, false)
}

// Parent returns the agent that asked for the child.
func (c *Child) Parent() *Agent { return c.owner }

// Label says what the child is for.
func (c *Child) Label() string { return c.spec.Label }

func (c *Child) waitGone(ctx context.Context) error {
	select {
	case <-c.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retire lets the child go when it is quiet. What is still pending for a next
// step then stays in its log.
func (c *Child) retire() {
	keep := !c.rt.opts.Delegation.DropNotices
	c.life.Load().handle.Send(agent.Retire{KeepInbox: keep})
}

// cancelDisposed is what an agent is told first that is being disposed of.
func cancelDisposed(keepInbox bool) []loop.Input {
	return []loop.Input{loop.Cancel{Cause: dsh.Cause{Kind: dsh.CauseDisposed}, KeepInbox: keepInbox}}
}

// curtail cancels the child and what it has pending, and leaves it to itself if
// it does not come to an end in time. It does not wait.
func (c *Child) curtail(cause dsh.Cause) {
	c.mine.Store(true)
	l := c.life.Load()
	if l == nil {
		return // whoever makes it looks
	}
	l.handle.Send(agent.Do{
		Commands: []loop.Input{loop.Cancel{Cause: cause}}, Reply: make(chan agent.Done, 1),
	})
	grace := c.rt.opts.Delegation.grace()
	c.mu.Lock()
	defer c.mu.Unlock()
	if grace > 0 && c.grace == nil && !c.ended {
		c.grace = time.AfterFunc(grace, c.abandon)
	}
}

// watchTime begins the time that the child has.
func (c *Child) watchTime() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spec.Timeout > 0 && c.limit == nil && !c.ended {
		c.limit = time.AfterFunc(c.spec.Timeout, func() {
			c.overtime.Store(true)
			c.curtail(dsh.Cause{Kind: dsh.CauseHook, Reason: "time limit"})
		})
	}
}

func (c *Child) stopTimers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, t := range []*time.Timer{c.limit, c.grace} {
		if t != nil {
			t.Stop()
		}
	}
}

// abandon gives a child its outcome that was cancelled and does not come to an
// end. Nobody waits for it any more but who disposes of its parent.
func (c *Child) abandon() {
	select {
	case <-c.done:
		return
	default:
	}
	if !c.atWork() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	o := c.tally(c.life.Load().packed(ctx))
	o.Kind, o.Limit, o.Failure, o.Cause = delegation.Limited, delegation.LimitDeaf, nil, dsh.Cause{}
	c.decide(o)
	c.conclude()
	t := &c.rt.tree
	t.mu.Lock()
	quiet, settled := c.unbusy()
	t.mu.Unlock()
	c.tellOwner(quiet, settled)
}

// atWork reports whether somebody waits for the child to settle. One that was
// cancelled between its messages is just idle.
func (c *Child) atWork() bool { return c.accepted.Load() }

// decide gives the child its outcome; the first counts, and is returned.
func (c *Child) decide(o delegation.Outcome) delegation.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.set {
		c.set, c.result = true, o
	}
	return c.result
}

// conclude tells whoever waits that there is an outcome.
func (c *Child) conclude() { c.told.Do(func() { close(c.done) }) }

// finish sees a life of the child off, on a goroutine of its own: it reads how
// it ended, tells whoever has to know, and gives the place in the tree up. A
// one-shot child is still registered when its end is told; a background child's
// parent knows before that.
func (c *Child) finish(l *life) {
	if l.handle.Failure() != nil {
		if c.closeFailed(l) {
			return // the life that closed it finishes
		}
		c.rt.system.Root.Send(l.session, session.Close{Reply: make(chan error, 1)})
	}
	<-l.sessionGone
	c.stopTimers()
	c.orphan()
	events, err := l.log.Read(context.Background(), c.began, 0)
	o := c.tally(events, err)
	t := &c.rt.tree
	t.mu.Lock()
	if c.kids != nil {
		o.Descendants = c.kids.below
	}
	t.mu.Unlock()
	used := o.Total()
	o = c.decide(o)
	if !c.spec.Background {
		c.end(o, true)
	}
	told := c.rt.telling.begin(c.session)
	c.rt.forget(c.Agent)
	if c.spec.Background && c.accepted.Load() {
		c.notify(o, c.noticeID(l, events))
	}
	told()
	if c.spec.Background {
		c.end(o, false)
	}
	c.release(used)
	c.conclude()
	c.leave()
}

// closeFailed brings an agent that broke back once, so that its log is closed,
// and disposes of it.
func (c *Child) closeFailed(l *life) bool {
	next, err := c.reopen(context.Background())
	if err != nil || next == l {
		return false
	}
	next.handle.Send(agent.Dispose{KeepInbox: true, Reply: make(chan error, 1)})
	return true
}

// tally returns how the child ended that has logged these events in this life.
func (c *Child) tally(events []dsh.Event, err error) delegation.Outcome {
	if err != nil {
		return delegation.Outcome{Kind: delegation.Failed, Failure: dsh.Flatten(err)}
	}
	var t delegation.Tally
	for i := range events {
		if events[i].Seq >= c.first {
			t.Add(&events[i])
		}
	}
	quiet := delegation.Failed
	if c.spec.Background {
		quiet = delegation.Completed
	}
	o := t.Outcome(quiet)
	idle := !c.accepted.Load() && o.Turns == 0
	switch {
	case o.Kind == delegation.Completed && !idle:
	case c.overtime.Load():
		o.Kind, o.Limit, o.Failure = delegation.Limited, delegation.LimitTime, nil
	case idle:
		o.Kind, o.Cause, o.Failure = delegation.Aborted, dsh.Cause{Kind: dsh.CauseDisposed}, nil
	case c.mine.Load() && o.Kind != delegation.Aborted:
		o.Kind, o.Cause, o.Failure, o.Limit = delegation.Aborted, dsh.Cause{Kind: dsh.CauseParent}, nil, ""
	}
	return o
}

// start tells that the child lives; once.
func (c *Child) start() {
	c.begun.Do(func() {
		for _, w := range c.rt.watch {
			contained(func() { w.ChildStarted(c.started()) })
		}
	})
}

// end tells that the child's life is over.
func (c *Child) end(o delegation.Outcome, registered bool) {
	c.start()
	for _, w := range c.rt.watch {
		contained(func() { w.ChildEnded(delegation.Ended{Started: c.started(), Outcome: o, Registered: registered}) })
	}
}

func (c *Child) started() delegation.Started {
	return delegation.Started{
		Run: c.run, Initiator: c.initiator(), Transport: c.spec.Transport(), Label: c.spec.Label,
		Background: c.spec.Background,
	}
}

// contained runs an observer; what it panics with changes nothing.
func contained(run func()) {
	defer func() { _ = recover() }()
	run()
}

// chained returns the hooks without those that only observe children.
func chained(hooks []any) []any {
	var kept []any
	for _, h := range hooks {
		if _, ok := h.(delegation.Observer); ok {
			if _, err := hook.NewSet(h); err != nil {
				continue
			}
		}
		kept = append(kept, h)
	}
	return kept
}

// observers returns the hooks that are told of children.
func observers(hooks []any) []delegation.Observer {
	var list []delegation.Observer
	for _, h := range hooks {
		if o, ok := h.(delegation.Observer); ok {
			list = append(list, o)
		}
	}
	return list
}
