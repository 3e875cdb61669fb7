package runtime

import (
	"context"
	"errors"
	"slices"

	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// Children lists the agent's children, live and stored, oldest first; deep
// lists all descendants, each behind its parent. A child whose log cannot be
// read is listed with its problem.
func (a *Agent) Children(ctx context.Context, deep bool) ([]delegation.Entry, error) {
	below := map[dsh.SessionID][]dsh.SessionHeader{}
	var errs []error
	for h, err := range a.rt.opts.Store.List(ctx) {
		if err != nil {
			errs = append(errs, err) // about one log, which may be anybody's
			continue
		}
		if h.Origin == "subagent" {
			below[h.ParentSession] = append(below[h.ParentSession], h)
		}
	}
	if len(below) == 0 {
		return nil, errors.Join(errs...)
	}
	for _, list := range below {
		slices.SortStableFunc(list, func(x, y dsh.SessionHeader) int { return int(x.CreatedAt - y.CreatedAt) })
	}
	var entries []delegation.Entry
	var walk func(parent dsh.SessionID, depth int)
	walk = func(parent dsh.SessionID, depth int) {
		for _, h := range below[parent] {
			e := a.rt.entry(ctx, h)
			e.Depth, e.HasChildren = depth, len(below[h.ID]) > 0
			entries = append(entries, e)
			if deep {
				walk(h.ID, depth+1)
			}
		}
	}
	walk(a.session, 1)
	return entries, nil
}

// entry says what is known of a child.
func (rt *Runtime) entry(ctx context.Context, h dsh.SessionHeader) delegation.Entry {
	e := delegation.Entry{ID: h.ID, Parent: h.ParentSession, Status: delegation.Ready}
	var events []dsh.Event
	var err error
	live := rt.live(h.ID)
	if live != nil {
		e.Status = live.childStatus(ctx)
		if c := live.child; c != nil {
			d := c.descriptor()
			e.Mode, e.Label = d.Mode, d.Label
			return e
		}
	}
	if _, events, err = rt.readAll(ctx, h.ID); err != nil {
		e.Problem = "unavailable"
		return e
	}
	d, ok, err := delegation.ReadDescriptor(events, h.SeedLength)
	switch {
	case err != nil && !errors.Is(err, delegation.ErrVersion), err == nil && !ok:
		e.Problem = "corrupt"
	default:
		e.Mode, e.Label = d.Mode, d.Label
	}
	return e
}

// childStatus says whether a live child works. One with messages that wait for
// a wake works too.
func (a *Agent) childStatus(ctx context.Context) delegation.Status {
	s, err := a.State(ctx)
	switch {
	case err != nil:
		return delegation.Ready // it is just settling
	case s.Status == hook.Running || len(s.Inbox.NextTurn) > 0:
		return delegation.Running
	}
	return delegation.Resident
}
