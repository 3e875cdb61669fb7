package runtime

import (
	"context"
	"errors"

	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// Children lists the agent's children, live and stored, oldest first; deep
// lists all descendants, each behind its parent. A child whose log cannot be
// read is listed with its problem; one that a crash kept from being made is not.
func (a *Agent) Children(ctx context.Context, deep bool) ([]delegation.Entry, error) {
	kin := a.rt.lineage(ctx)
	var entries []delegation.Entry
	var walk func(list []dsh.SessionHeader, depth int)
	walk = func(list []dsh.SessionHeader, depth int) {
		for _, h := range list {
			e, born := a.rt.entry(ctx, h)
			if !born {
				continue
			}
			theirs := kin.below(h.ID)
			e.Depth, e.HasChildren = depth, len(theirs) > 0
			entries = append(entries, e)
			if deep {
				walk(theirs, depth+1)
			}
		}
	}
	walk(kin.below(a.session), 1)
	if len(entries) == 0 {
		return nil, kin.lost()
	}
	return entries, nil
}

// entry says what is known of a child. One that was being made has a log, and
// was not born yet.
func (rt *Runtime) entry(ctx context.Context, h dsh.SessionHeader) (_ delegation.Entry, born bool) {
	e := delegation.Entry{ID: h.ID, Parent: h.ParentSession, Status: delegation.Ready}
	var events []dsh.Event
	var err error
	live := rt.live(h.ID)
	if live != nil {
		e.Status = live.childStatus(ctx)
		if c := live.child; c != nil {
			d := c.descriptor()
			e.Mode, e.Label = d.Mode, d.Label
			return e, true
		}
	}
	if _, events, err = rt.readAll(ctx, h.ID); err != nil {
		e.Problem = "unavailable"
		return e, true
	}
	d, ok, err := delegation.ReadDescriptor(events, h.SeedLength)
	_, begun := delegation.LifeStart(events, h.SeedLength)
	switch {
	case err == nil && !ok && !begun && live == nil:
		return e, false
	case err != nil && !errors.Is(err, delegation.ErrVersion), err == nil && !ok:
		e.Problem = "corrupt"
	default:
		e.Mode, e.Label = d.Mode, d.Label
	}
	if e.Problem != "" || live != nil {
		return e, true
	}
	events = append(events[:len(events):len(events)], dsh.Closers(events)...)
	life, err := delegation.LastLife(events, h.SeedLength, e.Mode)
	switch {
	case err != nil:
		e.Problem = "corrupt"
	case life.Begun:
		e.Outcome = &life.Outcome
		if e.Outcome.Kind == delegation.Interrupted {
			e.Status = delegation.CutShort
		}
	}
	return e, true
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
