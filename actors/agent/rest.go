package agent

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// rest tells those who wait for idle and gives back what an idle agent does
// not need.
func (h *host) rest(c actor.Context) {
	for _, reply := range h.idle {
		reply <- struct{}{}
	}
	h.idle = nil
	h.m.Rest()
	switch {
	case len(h.disposal) > 0 || h.retires(c):
		h.dispose(c)
	case h.cfg.Rests != nil:
		h.handle.idle.Store(time.Now().UnixNano())
		h.cfg.Rests()
	}
	h.work = nil
}

// dispose ends an agent that is quiet.
func (h *host) dispose(c actor.Context) {
	h.notify(hook.Disposed{})
	replies := h.disposal
	h.disposal = nil
	h.leave(c)
	handle := h.handle
	go func() {
		<-handle.sessionGone
		for _, reply := range replies {
			reply <- handle.Closed()
		}
	}()
}

// leave closes the session and stops.
func (h *host) leave(c actor.Context) {
	h.over = true
	h.handle.closing = &closing{answer: make(chan error, 1)}
	c.Send(h.cfg.Session, session.Close{Reply: h.handle.closing.answer})
	c.Stop(h.self)
}

// passivate stops an agent that is quiet. Unlike dispose it leaves no trace.
func (h *host) passivate(c actor.Context, msg Passivate) {
	busy := !h.m.Idle() || h.m.Next() != msg.Next || len(h.watched)+len(h.subs)+len(h.disposal) > 0 ||
		h.retiring != nil || h.cfg.Observer != nil || h.cfg.Kin != nil && h.cfg.Kin.Busy()
	if busy {
		msg.Reply <- Passivated{}
		return
	}
	h.handle.rested.Store(true)
	h.leave(c)
	pending := h.m.Pending(dsh.NextTurn)+h.m.Pending(dsh.NextStep) > 0
	msg.Reply <- Passivated{OK: true, Requested: h.m.Requested(), Pending: pending}
}
