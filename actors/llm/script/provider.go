package script

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// ErrExhausted is the failure of a request for which no response is left.
var ErrExhausted = errors.New("model script exhausted")

// Options configure a [Provider]. The zero value works.
type Options struct {
	// Gates are what the steps of the responses wait for. By default the
	// provider has its own; see [Provider.Gates].
	Gates *Gates
	// Models describes the models by name. Nothing is known of others.
	Models map[string]llm.Model
	// Record keeps each request for [Provider.Requests]. By default none is
	// kept, and the memory of a request is free when its stream ends.
	Record bool
}

func (o Options) withDefaults() Options {
	if o.Gates == nil {
		o.Gates = new(Gates)
	}
	return o
}

// A Provider serves scripted responses. It is safe for concurrent use.
type Provider struct {
	options Options
	next    func(*dsh.Request) Response

	mu        sync.Mutex
	responses []Response
	requests  []*dsh.Request
}

// New returns a provider that serves each response once, in order.
func New(o Options, responses ...Response) *Provider {
	p := &Provider{options: o.withDefaults(), responses: slices.Clone(responses)}
	p.next = p.take
	return p
}

// Func returns a provider that asks next for each request's response. Next is
// called on the goroutines of the streams, possibly at the same time, and may
// return the same response again and again.
func Func(o Options, next func(*dsh.Request) Response) *Provider {
	return &Provider{options: o.withDefaults(), next: next}
}

// Repeat returns a provider that serves the same response for ever.
func Repeat(o Options, r Response) *Provider {
	return Func(o, func(*dsh.Request) Response { return r })
}

// Gates returns the gates that responses wait for.
func (p *Provider) Gates() *Gates { return p.options.Gates }

// Add appends responses to what a provider of [New] has left.
func (p *Provider) Add(responses ...Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.responses = append(p.responses, responses...)
}

// Left returns how many responses nobody asked for.
func (p *Provider) Left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.responses)
}

// Requests returns the requests so far in the order in which they took their
// responses, if [Options.Record] is set.
func (p *Provider) Requests() []*dsh.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Model returns what [Options.Models] says of a model.
func (p *Provider) Model(name string) llm.Model { return p.options.Models[name] }

// Stream plays the next response. The response is taken when the sequence is
// iterated, and again each time it is.
func (p *Provider) Stream(ctx context.Context, req *dsh.Request) iter.Seq2[dsh.Chunk, error] {
	return func(yield func(dsh.Chunk, error) bool) {
		if p.options.Record {
			p.record(req)
		}
		for _, step := range p.next(req) {
			switch step := step.(type) {
			case Emit:
				if !yield(step.Chunk, nil) {
					return
				}
			case Wait:
				p.options.Gates.Wait(context.WithoutCancel(ctx), step.Gate)
			case Hang:
				<-ctx.Done()
				if step.Gate != "" {
					p.options.Gates.Wait(context.WithoutCancel(ctx), step.Gate)
				}
				yield(nil, ctx.Err())
				return
			case Do:
				step.Func(ctx)
			case Delay:
				if !pause(ctx, step.For) {
					yield(nil, ctx.Err())
					return
				}
			case Fail:
				yield(nil, step.Err)
				return
			}
		}
	}
}

func (p *Provider) record(req *dsh.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, req)
}

func (p *Provider) take(*dsh.Request) Response {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.responses) == 0 {
		return Response{Fail{Err: ErrExhausted}}
	}
	r := p.responses[0]
	p.responses[0] = nil // the list may live as long as the test
	p.responses = p.responses[1:]
	return r
}

// pause lets d pass; it returns false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
