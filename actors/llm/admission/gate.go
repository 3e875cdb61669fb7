package admission

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// ticket is a request that asks to be admitted. The actor owns it, but for
// admitted, which it answers on once.
type ticket struct {
	agent    dsh.AgentID
	tokens   int // estimated
	admitted chan verdict

	key      *key // once admitted
	epoch    int  // the key's, when it was
	answered bool
	over     bool
}

// verdict is the answer to a ticket: a key, or the wait that is too long.
type verdict struct {
	key  *key
	wait time.Duration
}

// outcome is how an admitted request ended.
type outcome struct {
	tokens  int // used, or 0
	refused bool
	wait    time.Duration // that the provider asked for, or 0
}

// Messages the gate accepts: what a stream tells of its ticket, in this order.
// ask is answered on the ticket's channel; leave may come at any time behind
// it and ends an unused ticket.
type (
	ask      struct{ t *ticket }
	leave    struct{ t *ticket }
	answered struct{ t *ticket }
	ended    struct {
		t *ticket
		outcome
	}
	wake struct{ at time.Time }
)

// gate is the actor of one provider. It never waits; what waits are streams.
//
// Invariants: ring holds each agent with a queue once, and queues are never
// empty; if anything is queued, no key is ready for the head of the ring now.
type gate struct {
	keys   []*key
	turn   int // whose turn it is among keys that are equally busy
	queues map[dsh.AgentID]*queue
	ring   []*queue
	timer  *time.Timer
	wakes  time.Time // when it fires; zero if it is not set
	gone   chan struct{}
}

type queue struct {
	agent   dsh.AgentID
	tickets []*ticket
}

// Receive handles one message. It never waits.
func (g *gate) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case ask:
		g.enqueue(msg.t)
	case leave:
		g.leave(msg.t)
	case answered:
		if !msg.t.answered && !msg.t.over {
			msg.t.answered = true
			msg.t.key.answered(time.Now())
		}
	case ended:
		g.end(msg.t, msg.outcome)
	case wake:
		if msg.at.Equal(g.wakes) {
			g.wakes = time.Time{}
		}
	case *actor.Stopped:
		if g.timer != nil {
			g.timer.Stop()
		}
		close(g.gone)
		return
	default:
		return
	}
	g.pump(c)
}

func (g *gate) enqueue(t *ticket) {
	q := g.queues[t.agent]
	if q == nil {
		q = &queue{agent: t.agent}
		g.queues[t.agent] = q
		g.ring = append(g.ring, q)
	}
	q.tickets = append(q.tickets, t)
}

// leave ends a ticket that nobody waits with any more.
func (g *gate) leave(t *ticket) {
	if t.key != nil {
		g.end(t, outcome{}) // it was admitted meanwhile, and not used
		return
	}
	q := g.queues[t.agent]
	if q == nil {
		return
	}
	for i, have := range q.tickets {
		if have == t {
			q.tickets = append(q.tickets[:i:i], q.tickets[i+1:]...)
			break
		}
	}
	if len(q.tickets) > 0 {
		return
	}
	delete(g.queues, q.agent)
	for i, have := range g.ring {
		if have == q {
			g.ring = append(g.ring[:i:i], g.ring[i+1:]...)
			break
		}
	}
}

func (g *gate) end(t *ticket, o outcome) {
	if t.over || t.key == nil {
		return
	}
	t.over = true
	t.key.ended(time.Now(), t, o)
}

// pump admits who can be admitted, agents in turn, and sets the timer for the
// next.
func (g *gate) pump(c actor.Context) {
	now := time.Now()
	for len(g.ring) > 0 {
		t := g.ring[0].tickets[0]
		k, wait := g.choose(now, t.tokens)
		if cool := g.cooling(now); k == nil && cool > mostCool {
			g.advance()
			t.over = true
			t.admitted <- verdict{wait: cool}
			continue
		}
		if k == nil {
			g.sleep(c, now, wait)
			return
		}
		g.advance()
		t.key = k
		k.admit(now, t)
		t.admitted <- verdict{key: k}
	}
}

// cooling returns how long all keys still cool down.
func (g *gate) cooling(now time.Time) time.Duration {
	least := g.keys[0].cool.Sub(now)
	for _, k := range g.keys[1:] {
		least = min(least, k.cool.Sub(now))
	}
	return least
}

// choose returns the least busy key that is ready, or how long until one may
// be; less than 0 if that is not a matter of time.
func (g *gate) choose(now time.Time, tokens int) (best *key, wait time.Duration) {
	wait = -1
	for i := range g.keys {
		k := g.keys[(g.turn+i)%len(g.keys)]
		d, ok := k.ready(now, tokens)
		switch {
		case !ok:
		case d > 0:
			if wait < 0 || d < wait {
				wait = d
			}
		case best == nil || k.open < best.open:
			best = k
		}
	}
	if best != nil {
		g.turn++
	}
	return best, wait
}

// advance takes the head's ticket; its agent's next one waits behind the
// others.
func (g *gate) advance() {
	q := g.ring[0]
	g.ring[0] = nil
	g.ring = g.ring[1:]
	q.tickets[0] = nil
	if q.tickets = q.tickets[1:]; len(q.tickets) > 0 {
		g.ring = append(g.ring, q)
	} else {
		delete(g.queues, q.agent)
	}
}

func (g *gate) sleep(c actor.Context, now time.Time, wait time.Duration) {
	at := now.Add(wait)
	if wait < 0 || !g.wakes.IsZero() && !at.Before(g.wakes) {
		return
	}
	if g.timer != nil {
		g.timer.Stop()
	}
	g.wakes = at
	root, self := c.ActorSystem().Root, c.Self()
	g.timer = time.AfterFunc(wait, func() { root.Send(self, wake{at}) })
}

func newGate(providers []llm.Provider, l llm.Limits, gone chan struct{}) *gate {
	g := &gate{queues: map[dsh.AgentID]*queue{}, gone: gone}
	now := time.Now()
	for _, p := range providers {
		g.keys = append(g.keys, newKey(p, l, now))
	}
	return g
}
