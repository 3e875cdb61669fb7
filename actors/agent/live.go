package agent

import (
	"sync"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// notify publishes a notice: to the observer at once, to subscribers that have
// room, and to the hooks on the notifier's goroutine.
func (h *host) notify(n hook.Notice) {
	h.follow(n)
	if h.cfg.Observer != nil {
		h.cfg.Observer.Noticed(n, h.act)
	}
	for _, ch := range h.subs {
		select {
		case ch <- n:
		default:
		}
	}
	if run := h.cfg.Hooks.Notified; run != nil {
		if h.notices == nil {
			h.notices = &notifier{}
		}
		h.notices.push(func() { run(h.face, n) })
	}
}

// watch is somebody who wants to know what becomes of a pending message.
type watch struct {
	id    dsh.MessageID
	reply chan<- Outcome
}

// unwatch removes and returns who watches a message, or nil. Of several the
// first is meant: a message is pending once.
func (h *host) unwatch(id dsh.MessageID) chan<- Outcome {
	for i, w := range h.watched {
		if w.id == id {
			if h.watched = append(h.watched[:i:i], h.watched[i+1:]...); len(h.watched) == 0 {
				h.watched = nil
			}
			return w.reply
		}
	}
	return nil
}

// follow moves watched messages along with the inbox's notices.
func (h *host) follow(n hook.Notice) {
	if len(h.watched) == 0 {
		return
	}
	switch n := n.(type) {
	case hook.Claimed:
		if reply := h.unwatch(n.Message.ID); reply != nil {
			h.claimed = append(h.claimed, reply)
		}
	case hook.Discarded:
		if reply := h.unwatch(n.Message.ID); reply != nil {
			h.later(func() { reply <- Outcome{Discarded: true} })
		}
	case hook.Created, hook.SessionStarted, hook.Inserted, hook.StatusChanged, hook.Erred, hook.Disposed:
	}
}

// A notifier runs functions in order on a goroutine that exists while there
// are any. The zero value is ready.
type notifier struct {
	mu      sync.Mutex
	queue   []func()
	running bool
}

func (q *notifier) push(run func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, run)
	if !q.running {
		q.running = true
		go q.drain()
	}
}

func (q *notifier) drain() {
	for {
		q.mu.Lock()
		if len(q.queue) == 0 {
			q.queue, q.running = nil, false
			q.mu.Unlock()
			return
		}
		run := q.queue[0]
		q.queue = q.queue[1:]
		q.mu.Unlock()
		run()
	}
}
