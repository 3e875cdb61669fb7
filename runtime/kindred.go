package runtime

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// lineage finds the children of sessions.
type lineage struct {
	ctx    context.Context //nolint:containedctx // of the one question that it answers.
	faster session.Lineage // nil: the list was read
	known  map[dsh.SessionID][]dsh.SessionHeader
	found  bool
	errs   []error
}

func (rt *Runtime) lineage(ctx context.Context) *lineage {
	l := &lineage{ctx: ctx, known: map[dsh.SessionID][]dsh.SessionHeader{}}
	var fast bool
	if l.faster, fast = rt.opts.Store.(session.Lineage); !fast {
		l.note(rt.opts.Store.List(ctx))
	}
	return l
}

func (l *lineage) note(headers iter.Seq2[dsh.SessionHeader, error]) {
	for h, err := range headers {
		if err != nil {
			l.errs = append(l.errs, err)
		} else if h.Origin == "subagent" {
			l.found = true
			l.known[h.ParentSession] = append(l.known[h.ParentSession], h)
		}
	}
}

// below returns the headers of a session's children, oldest first.
func (l *lineage) below(parent dsh.SessionID) []dsh.SessionHeader {
	if _, asked := l.known[parent]; l.faster != nil && !asked {
		l.known[parent] = nil
		l.note(l.faster.Children(l.ctx, parent))
	}
	list := l.known[parent]
	slices.SortStableFunc(list, func(x, y dsh.SessionHeader) int { return cmp.Compare(x.CreatedAt, y.CreatedAt) })
	return list
}

// lost says why nothing was found. Where anything was, a log that cannot be
// read is most likely somebody else's.
func (l *lineage) lost() error {
	if l.found {
		return nil
	}
	return errors.Join(l.errs...)
}

// catchUp brings the log of an agent that is to be resumed, which holds events,
// and the logs of all its descendants to where an orderly end would have left
// them: turns are closed, and how a background child settled is in the inbox of
// its parent's log, once.
//
// A log comes behind those of its children, and a notice has the name of the
// life that it tells of. So a crash at any point of this leaves work for the next
// time and nothing to be done twice. Descendants that somebody has open are left
// alone with all that is below them: whoever has them does the same. One whose
// log cannot be read is left to who asks for it.
func (rt *Runtime) catchUp(ctx context.Context, log session.Log, events []dsh.Event) ([]dsh.Event, error) {
	id := log.Header().ID
	v := &catcher{rt: rt, kin: rt.lineage(ctx), seen: map[dsh.SessionID]bool{id: true}}
	events, err := v.log(ctx, log, events)
	if errs := v.kin.errs; len(errs) > 0 && err == nil && !v.kin.found {
		rt.opts.Logger.Warn("no children found", zap.String("session", string(id)), zap.Error(errors.Join(errs...)))
	}
	return events, err
}

// catcher goes through the logs of a tree.
type catcher struct {
	rt   *Runtime
	kin  *lineage
	seen map[dsh.SessionID]bool // headers may say anything
}

// log brings one log up to date, behind those below it, and returns what it
// holds then.
func (v *catcher) log(ctx context.Context, log session.Log, events []dsh.Event) ([]dsh.Event, error) {
	for i := range events {
		if err := dsh.CheckKnown(&events[i]); err != nil {
			return nil, err // nothing is added to what is not understood
		}
	}
	notices, err := v.below(ctx, log.Header().ID)
	if err != nil {
		return nil, err
	}
	closers := dsh.Closers(events)
	if err := session.Extend(ctx, log, closers); err != nil {
		return nil, err
	}
	events = append(events[:len(events):len(events)], closers...)
	var messages []*dsh.Message
	for _, n := range notices {
		if !n.foreign(events) {
			messages = append(messages, n.Message)
		}
	}
	left, err := leave(ctx, log, events, messages)
	return append(events, left...), err
}

// notice is that of a child's last life.
type notice struct {
	*dsh.Message
	child dsh.SessionID
	ended int64 // when the life logged its last event
}

// foreign reports whether a log has the notice under another name, which those
// have that somebody else wrote, or that are older than the names.
func (n *notice) foreign(events []dsh.Event) bool {
	for i := range events {
		splice, ok := events[i].Data.(dsh.InboxSpliced)
		if !ok || events[i].Time < n.ended {
			continue
		}
		for _, m := range splice.Inserted {
			kind, sender := delegation.Sender(m)
			if kind == delegation.SettledSource && sender == n.child && !delegation.IsNoticeID(m.ID) {
				return true
			}
		}
	}
	return false
}

// below brings the logs below a session up to date and returns the notices of
// its children's last lives.
func (v *catcher) below(ctx context.Context, parent dsh.SessionID) (notices []*notice, err error) {
	for _, h := range v.kin.below(parent) {
		if v.seen[h.ID] || v.rt.live(h.ID) != nil || v.rt.telling.has(h.ID) {
			continue
		}
		v.seen[h.ID] = true
		n, err := v.child(ctx, h.ID)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && !errors.Is(err, session.ErrInUse):
			v.rt.opts.Logger.Warn("child not caught up", zap.String("session", string(h.ID)),
				zap.String("parent", string(parent)), zap.Error(err))
		case n != nil && !v.rt.opts.Delegation.DropNotices:
			notices = append(notices, n)
		}
	}
	return notices, nil
}

// child brings the log of a child up to date. There is no notice of a one-shot
// child, and of one that was never asked for anything.
func (v *catcher) child(ctx context.Context, id dsh.SessionID) (n *notice, err error) {
	log, err := v.rt.openLog(ctx, id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	events, err := log.Read(ctx, 0, 0)
	if err != nil {
		return nil, err
	}
	stored := length(events)
	if events, err = v.log(ctx, log, events); err != nil {
		return nil, err
	}
	if length(events) > stored {
		if err := log.Sync(ctx); err != nil {
			return nil, err
		}
	}
	own := log.Header().SeedLength
	d, ok, err := delegation.ReadDescriptor(events, own)
	if err != nil || !ok || d.Mode != delegation.Continuable {
		return nil, err
	}
	life, err := delegation.LastLife(events, own, d.Mode)
	if err != nil || !life.Begun {
		return nil, err
	}
	m := delegation.Notice(id, d.Label, life.Outcome)
	m.ID = delegation.NoticeID(id, life.At)
	return &notice{Message: m, child: id, ended: events[len(events)-1].Time}, nil
}

// beginning returns where a life on a log that holds events begins: with the
// session/end-seed that its agent logs first, unless the log ends with one.
func beginning(events []dsh.Event) dsh.Seq {
	if n := len(events); n > 0 {
		if _, ok := events[n-1].Data.(dsh.EndSeed); ok {
			return events[n-1].Seq
		}
	}
	return length(events)
}

// noticeID names the notice of the child's life, which logged events, as
// whoever finds the log after a crash would.
func (c *Child) noticeID(l *life, events []dsh.Event) dsh.MessageID {
	at, begun := delegation.LifeStart(events, c.began)
	if !begun { // an agent that broke was given another life in vain
		if all, err := l.log.Read(context.Background(), 0, 0); err == nil {
			at, _ = delegation.LifeStart(all, l.log.Header().SeedLength)
		}
	}
	return delegation.NoticeID(c.session, at)
}

// telling is the children that have settled and whose parents are being told.
type telling struct {
	mu    sync.Mutex
	count map[dsh.SessionID]int // lives of a child that are told of
}

// begin notes that a child's parent is being told, until over is called. It
// comes before the child is forgotten.
func (t *telling) begin(id dsh.SessionID) (over func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == nil {
		t.count = map[dsh.SessionID]int{}
	}
	t.count[id]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.count[id]--; t.count[id] == 0 {
			delete(t.count, id)
		}
	}
}

// has reports whether a parent is being told. It is to be asked of a child that
// is not live.
func (t *telling) has(id dsh.SessionID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count[id] > 0
}
