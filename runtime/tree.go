package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Delegation bounds agents' children and says what becomes of those that work
// in the background. The zero value has the defaults.
type Delegation struct {
	// MaxDepth is how deep a tree may be: children of a top-level agent have
	// depth 1. 0 means 3; a negative one forbids children.
	MaxDepth int
	// MaxChildren, MaxTree and MaxProcess bound the live children of an agent,
	// of a whole tree and of the process; 0 means 100, 1,000 and 100,000.
	MaxChildren, MaxTree, MaxProcess int
	// Grace is how long a cancelled child may take to come to an end before it
	// is left to itself; 0 means 30 seconds, a negative one waits for ever.
	Grace time.Duration

	// OutliveAbort lets background children go on when their parent's turn is
	// cancelled. By default they are cancelled too.
	OutliveAbort bool
	// OutliveDispose lets background children go on when their parent is
	// disposed of. By default they are ended first.
	OutliveDispose bool
	// DropNotices forgets how a background child settled when its parent is
	// not live to hear of it. By default the parent finds it in its inbox when
	// it is resumed.
	DropNotices bool

	// NewID names new children; nil generates names.
	NewID func() dsh.SessionID
	// Adopt returns the observer of a child whose log holds events. It is for
	// the project's own tests.
	Adopt func(c *Child, header dsh.SessionHeader, events []dsh.Event) observer
}

func (d Delegation) check() error {
	var errs []error
	for name, n := range map[string]int{"MaxChildren": d.MaxChildren, "MaxTree": d.MaxTree, "MaxProcess": d.MaxProcess} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("option Delegation.%s is %d: it must not be negative", name, n))
		}
	}
	return errors.Join(errs...)
}

func orDefault(n, fallback int) int {
	if n == 0 {
		return fallback
	}
	return n
}

// maxDepth returns how deep a tree may be.
func (d Delegation) maxDepth() int { return max(orDefault(d.MaxDepth, 3), 0) }

func (d Delegation) grace() time.Duration {
	if d.Grace == 0 {
		return 30 * time.Second
	}
	return d.Grace
}

// tree counts the live children of the process.
type tree struct {
	mu    sync.Mutex
	live  int
	roots map[dsh.AgentID]int // live children by the root of their tree
	known int                 // children that were not seen off yet
	empty chan struct{}       // closed when known is 0; nil while nobody waits
}

// wait returns when no child is left.
func (t *tree) wait(ctx context.Context) error {
	t.mu.Lock()
	if t.known == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.empty == nil {
		t.empty = make(chan struct{})
	}
	empty := t.empty
	t.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kids is an agent's live children.
//
// Invariants: busy counts the children of live that work in the background and
// were not left to themselves; cut counts those of them that were cancelled
// with the agent.
type kids struct {
	live    map[*Child]struct{}
	busy    int
	cut     int
	settled func()    // called when cut is 0; nil while nobody waits
	below   dsh.Usage // of all descendants that have settled
}

// home returns the agent's children; the caller holds tree.mu.
func (a *Agent) home() *kids {
	if a.kids == nil {
		a.kids = &kids{live: map[*Child]struct{}{}}
	}
	return a.kids
}

// admit makes room for a child, or says which limit is in the way.
func (a *Agent) admit(c *Child, maxDepth *int) error {
	d := a.rt.opts.Delegation
	depth := d.maxDepth()
	if maxDepth != nil {
		depth = min(depth, *maxDepth)
	}
	t := &a.rt.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	home := a.home()
	switch {
	case a.draining:
		return delegation.Errorf(delegation.CodeDraining, "the sub-agents of %s are being stopped; no new ones can be started", a.id)
	case a.depth+1 > depth:
		return delegation.Errorf(delegation.CodeDepth, "a sub-agent here would have depth %d, and the limit is %d; do the work yourself", a.depth+1, depth)
	case len(home.live) >= orDefault(d.MaxChildren, 100):
		return delegation.Errorf(delegation.CodeChildren, "%d sub-agents of this agent are live, which is the limit; wait for some to end", len(home.live))
	case t.roots[a.root] >= orDefault(d.MaxTree, 1000):
		return delegation.Errorf(delegation.CodeTree, "%d sub-agents of this tree are live, which is the limit; wait for some to end", t.roots[a.root])
	case t.live >= orDefault(d.MaxProcess, 100_000):
		return delegation.Errorf(delegation.CodeProcess, "%d sub-agents of this process are live, which is the limit; wait for some to end", t.live)
	}
	home.live[c] = struct{}{}
	t.roots[a.root]++
	t.live++
	t.known++
	return nil
}

// release gives a child's place up, with what it used; once.
func (c *Child) release(used dsh.Usage) {
	t := &c.owner.rt.tree
	t.mu.Lock()
	home := c.owner.home()
	if _, there := home.live[c]; !there {
		t.mu.Unlock()
		return
	}
	delete(home.live, c)
	home.below = home.below.Add(used)
	quiet, settled := c.unbusy()
	t.live--
	if t.roots[c.owner.root]--; t.roots[c.owner.root] == 0 {
		delete(t.roots, c.owner.root)
	}
	t.mu.Unlock()
	c.tellOwner(quiet, settled)
}

// leave tells whoever waits for it that nothing is left of a child; once.
func (c *Child) leave() {
	c.left.Do(func() {
		close(c.gone)
		t := &c.owner.rt.tree
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.known--; t.known == 0 && t.empty != nil {
			close(t.empty)
			t.empty = nil
		}
	})
}

// unbusy takes a child out of what its owner waits for; the caller holds
// tree.mu. Quiet says that nothing works in the background any more.
func (c *Child) unbusy() (quiet bool, settled func()) {
	home := c.owner.home()
	if c.cut {
		c.cut = false
		if home.cut--; home.cut == 0 {
			settled, home.settled = home.settled, nil
		}
	}
	if c.busy {
		c.busy = false
		home.busy--
	}
	return home.busy == 0, settled
}

// tellOwner lets an owner go on that waited for its children.
func (c *Child) tellOwner(quiet bool, settled func()) {
	if settled != nil {
		settled()
	}
	if quiet && c.owner.child != nil {
		c.owner.life.Load().handle.Send(agent.Nudge{})
	}
}

// working notes that a child works in the background from now on.
func (c *Child) working() {
	t := &c.owner.rt.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	if home := c.owner.home(); !c.busy {
		if _, there := home.live[c]; there {
			c.busy = true
			home.busy++
		}
	}
}

// children returns the live children.
func (a *Agent) children() []*Child {
	t := &a.rt.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.kids == nil {
		return nil
	}
	list := make([]*Child, 0, len(a.kids.live))
	for c := range a.kids.live {
		list = append(list, c)
	}
	return list
}

// family is an agent as its own actor sees its children.
type family Agent

var _ agent.Kin = (*family)(nil)

// Abort cancels the children with cause parent.
func (f *family) Abort() {
	a := (*Agent)(f)
	outlive := a.rt.opts.Delegation.OutliveAbort
	t := &a.rt.tree
	t.mu.Lock()
	var told []*Child
	if a.kids != nil {
		for c := range a.kids.live {
			if c.busy && outlive {
				continue
			}
			if c.busy && !c.cut {
				c.cut = true
				a.kids.cut++
			}
			told = append(told, c)
		}
	}
	t.mu.Unlock()
	for _, c := range told {
		c.curtail(dsh.Cause{Kind: dsh.CauseParent})
	}
}

// Await calls settled when the children that were cancelled with the agent have
// settled.
func (f *family) Await(settled func()) bool {
	t := &f.rt.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.kids == nil || f.kids.cut == 0 {
		return false
	}
	f.kids.settled = settled
	return true
}

// Busy reports whether children work in the background. A one-shot agent that
// its own may outlive does not wait for them.
func (f *family) Busy() bool {
	if f.rt.opts.Delegation.OutliveDispose && f.child != nil && !f.child.spec.Background {
		return false
	}
	t := &f.rt.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	return f.kids != nil && f.kids.busy > 0
}

// Drain ends all descendants, children after their own children, and refuses
// new ones from then on.
func (a *Agent) Drain(ctx context.Context) error {
	a.close()
	children := a.children()
	for _, c := range children {
		c.curtail(dsh.Cause{Kind: dsh.CauseParent})
	}
	errs := make(chan error, len(children))
	for _, c := range children {
		go func() { errs <- errors.Join(c.Drain(ctx), c.Dispose(ctx)) }()
	}
	var all []error
	for range children {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// close refuses new children from now on.
func (a *Agent) close() {
	t := &a.rt.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	a.draining = true
}

// orphan ends the children of an agent that has stopped by itself. Those that do
// not come to an end in time are not waited for.
func (a *Agent) orphan() {
	if a.rt.opts.Delegation.OutliveDispose {
		return
	}
	a.close()
	children := a.children()
	for _, c := range children {
		c.curtail(dsh.Cause{Kind: dsh.CauseParent})
		go func() { _ = c.Dispose(context.Background()) }()
	}
	for _, c := range children {
		<-c.done
	}
}

// drainFirst ends the children of an agent that is being disposed of. The
// agent itself is cancelled before them, so that what it waits for can end.
func (a *Agent) drainFirst(ctx context.Context, keepInbox bool) (drained bool, err error) {
	d := a.rt.opts.Delegation
	if d.OutliveDispose {
		return false, nil
	}
	if a.close(); len(a.children()) == 0 {
		return false, nil
	}
	if l := a.life.Load(); l != nil {
		l.handle.Send(agent.Do{
			Commands: cancelDisposed(keepInbox), Reply: make(chan agent.Done, 1),
		})
	}
	return !d.DropNotices, a.Drain(ctx)
}

// DescendantUsage sums what the agent's descendants used that have settled.
func (a *Agent) DescendantUsage() dsh.Usage {
	t := &a.rt.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.kids == nil {
		return dsh.Usage{}
	}
	return a.kids.below
}
