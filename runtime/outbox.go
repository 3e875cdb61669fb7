package runtime

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/loop"
)

// patience bounds the waits for a session that is in use. One that is for longer
// belongs to another process, and whoever resumes it next finds out.
const patience = 4 * time.Second

// notify tells the parent how a background child settled: an idle parent gets a
// turn for it, a busy one finds it in its next step. A parent that is coming to
// its end, or that cancelled the child itself, is not woken. One that is not
// live finds it in its inbox when it is resumed.
func (c *Child) notify(o delegation.Outcome, name dsh.MessageID) {
	ctx := context.Background()
	m := delegation.Notice(c.session, c.spec.Label, o)
	m.ID = name
	id := c.parentSession()
	for wait := time.Millisecond; ; wait *= 2 {
		if parent := c.rt.live(id); parent != nil {
			if c.tell(ctx, parent, m) {
				return
			}
			if l := parent.life.Load(); l != nil {
				<-l.sessionGone
			}
		}
		if c.rt.opts.Delegation.DropNotices {
			return
		}
		err := c.rt.leaveFor(ctx, id, m)
		if errors.Is(err, session.ErrInUse) && wait < patience {
			time.Sleep(wait) // it is being opened or closed
			continue
		}
		if err != nil {
			c.rt.opts.Logger.Warn("notice lost", zap.String("agent", string(c.id)),
				zap.String("session", string(id)), zap.Error(err))
		}
		return
	}
}

// tell hands the notice to a live parent; it returns false if that is gone.
func (c *Child) tell(ctx context.Context, parent *Agent, m *dsh.Message) bool {
	t := &c.rt.tree
	t.mu.Lock()
	quiet := c.cut || parent.draining
	t.mu.Unlock()
	in := loop.Deliver{Message: m, Target: loop.Nearest, Wake: true}
	if quiet {
		in.Target, in.Wake = dsh.NextStep, false
	}
	err := parent.Do(ctx, Command{in})
	return err == nil || errors.Is(err, ErrNotDurable) || errors.Is(err, ErrDuplicate)
}

// leaveFor makes a message pending in the log of a session that is not open,
// unless the log has it.
func (rt *Runtime) leaveFor(ctx context.Context, id dsh.SessionID, m *dsh.Message) error {
	return rt.briefly(ctx, id, func(log session.Log) error {
		events, err := log.Read(ctx, 0, 0)
		if err != nil {
			return err
		}
		left, err := leave(ctx, log, events, []*dsh.Message{m})
		if err != nil || len(left) == 0 {
			return err
		}
		return log.Sync(ctx)
	})
}

// leave makes those of some messages pending that a log, which holds events,
// never had. It returns the events that it appended.
func leave(ctx context.Context, log session.Log, events []dsh.Event, messages []*dsh.Message) ([]dsh.Event, error) {
	var inbox dsh.Inbox
	had := map[dsh.MessageID]bool{}
	for i := range events {
		splice, ok := events[i].Data.(dsh.InboxSpliced)
		if !ok {
			continue
		}
		for _, m := range splice.Inserted {
			had[m.ID] = true
		}
		if events[i].Seq < log.Header().SeedLength {
			continue
		}
		if err := inbox.Apply(splice); err != nil {
			return nil, err
		}
	}
	messages = slices.DeleteFunc(messages, func(m *dsh.Message) bool { return had[m.ID] })
	if len(messages) == 0 {
		return nil, nil
	}
	left := []dsh.Event{{
		Seq: length(events), Time: time.Now().UnixMilli(),
		Data: dsh.InboxSpliced{Target: dsh.NextStep, Start: len(inbox.NextStep), Inserted: messages},
	}}
	return left, session.Extend(ctx, log, left)
}
