package toolpool

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dsh-actor/dsh-actor/hook"
)

// ErrNotStarted is the error of a call that was aborted while it was queued.
var ErrNotStarted = errors.New("toolpool: aborted before the call started")

// DefaultLimit is how many bodies run at once unless a pool says otherwise.
const DefaultLimit = 1024

// Config of a pool; the zero value works.
type Config struct {
	// Limit bounds the bodies that run at once; 0 means [DefaultLimit].
	Limit int
}

// pool is the actor.
//
// Invariants: running <= limit; ring holds each agent with a queue once, and
// queues are never empty; if anything is queued, running == limit.
type pool struct {
	limit   int
	running int
	queues  map[string]*queue
	ring    []*queue // whose turn it is, in order
}

// queue is the calls of one agent that wait for a place.
type queue struct {
	agent string
	calls []Run
}

// freed tells that a body has ended.
type freed struct{}

// Props returns how to spawn a pool.
func Props(cfg Config, opts ...actor.PropsOption) *actor.Props {
	if cfg.Limit <= 0 {
		cfg.Limit = DefaultLimit
	}
	return actor.PropsFromProducer(func() actor.Actor {
		return &pool{limit: cfg.Limit, queues: map[string]*queue{}}
	}, opts...)
}

// Receive handles one message. It never waits.
func (p *pool) Receive(c actor.Context) {
	defer p.rescue(c)
	switch msg := c.Message().(type) {
	case Run:
		switch {
		case msg.Waits:
			go execute(c.ActorSystem().Root, nil, msg)
		case p.running < p.limit:
			p.start(c, msg)
		default:
			p.enqueue(msg)
		}
	case freed:
		p.running--
		if call, ok := p.dequeue(); ok {
			p.start(c, call)
		}
	case Abort:
		for _, call := range p.drop(msg.ReplyTo.Id) {
			c.Send(call.ReplyTo, Result{Pos: call.Pos, Index: call.Index, Err: ErrNotStarted})
		}
	}
}

// rescue keeps a bug of the pool from costing anybody an answer: the calls that
// wait, and the one in hand, fail with it. Bodies that run go on and are counted.
func (p *pool) rescue(c actor.Context) {
	v := recover()
	if v == nil {
		return
	}
	failed := p.ring
	if run, ok := c.Message().(Run); ok && run.ReplyTo != nil {
		failed = append(failed, &queue{calls: []Run{run}})
	}
	p.queues, p.ring = map[string]*queue{}, nil
	for _, q := range failed {
		for _, call := range q.calls {
			c.Send(call.ReplyTo, Result{Pos: call.Pos, Index: call.Index, Err: fmt.Errorf("toolpool: %v", v)})
		}
	}
}

func (p *pool) start(c actor.Context, call Run) {
	p.running++
	go execute(c.ActorSystem().Root, c.Self(), call)
}

// execute runs one body and tells the agent, then the pool, even if the body
// ends the goroutine.
func execute(root *actor.RootContext, self *actor.PID, call Run) {
	result := Result{Pos: call.Pos, Index: call.Index, Err: hook.ErrExited}
	defer func() {
		root.Send(call.ReplyTo, result)
		if self != nil {
			root.Send(self, freed{})
		}
	}()
	result.Outcome, result.Err = run(call)
}

func run(call Run) (o hook.Outcome, err error) {
	defer hook.Catch("tool "+call.Call.Tool, &err)
	return call.Execute(call.Context, call.Call)
}

func (p *pool) enqueue(call Run) {
	agent := call.ReplyTo.Id
	q := p.queues[agent]
	if q == nil {
		q = &queue{agent: agent}
		p.queues[agent] = q
		p.ring = append(p.ring, q)
	}
	q.calls = append(q.calls, call)
}

// dequeue takes the oldest call of the agent whose turn it is.
func (p *pool) dequeue() (Run, bool) {
	if len(p.ring) == 0 {
		return Run{}, false
	}
	q := p.ring[0]
	p.ring[0] = nil
	p.ring = p.ring[1:]
	call := q.calls[0]
	q.calls[0] = Run{}
	if q.calls = q.calls[1:]; len(q.calls) > 0 {
		p.ring = append(p.ring, q)
	} else {
		delete(p.queues, q.agent)
	}
	return call, true
}

// drop removes and returns all queued calls of an agent.
func (p *pool) drop(agent string) []Run {
	q := p.queues[agent]
	if q == nil {
		return nil
	}
	delete(p.queues, agent)
	for i, other := range p.ring {
		if other == q {
			p.ring = append(p.ring[:i:i], p.ring[i+1:]...)
			break
		}
	}
	return q.calls
}
