package admission

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// refusalTime is how long a refusal may take. A request that was not refused
// until then counts as answered: models may think for minutes before their
// first word.
const refusalTime = 2 * time.Second

// ErrStopped ends the wait of a request whose gate stopped.
var ErrStopped = errors.New("admission: the runtime stopped")

// Provider serves requests once its actor has admitted them.
type Provider struct {
	root *actor.RootContext
	gate *actor.PID
	gone chan struct{}

	served   llm.Provider
	counting bool // tokens are limited
}

var _ llm.Provider = (*Provider)(nil)

// Start spawns the actor before a provider, whose keys it knows if it is an
// [llm.Keys]; l is for each of them.
func Start(root *actor.RootContext, p llm.Provider, l llm.Limits, opts ...actor.PropsOption) *Provider {
	providers := []llm.Provider{p}
	if keys, ok := p.(*llm.Keys); ok {
		providers = keys.Providers()
	}
	out := &Provider{root: root, gone: make(chan struct{}), served: p, counting: l.TokensPerMinute > 0}
	out.gate = root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return newGate(providers, l, out.gone)
	}, opts...))
	return out
}

// Stop ends the actor and the wait of whoever is left.
func (p *Provider) Stop() { p.root.Stop(p.gate) }

// Model implements [llm.Provider].
func (p *Provider) Model(name string) llm.Model { return p.served.Model(name) }

// Stream implements [llm.Provider]. The wait for admission is the stream's.
func (p *Provider) Stream(ctx context.Context, req *dsh.Request) iter.Seq2[dsh.Chunk, error] {
	return func(yield func(dsh.Chunk, error) bool) {
		t := &ticket{admitted: make(chan verdict, 1)}
		if i, ok := dsh.InitiatorFrom(ctx); ok {
			t.agent = i.Agent
		}
		if p.counting {
			t.tokens = estimate(req)
		}
		p.root.Send(p.gate, ask{t})
		select {
		case v := <-t.admitted:
			if v.key == nil {
				yield(nil, tooLong(v.wait))
				return
			}
			p.serve(ctx, v.key, t, req, yield)
		case <-ctx.Done():
			p.root.Send(p.gate, leave{t})
			yield(nil, ctx.Err())
		case <-p.gone:
			yield(nil, ErrStopped)
		}
	}
}

// tooLong is the failure of a request that would wait for longer than anybody
// should in silence. What the provider said of its limit is said on, so that
// the retry policy and the user decide.
func tooLong(wait time.Duration) *dsh.Failure {
	ms := wait.Milliseconds()
	return &dsh.Failure{
		Code: dsh.CodeRateLimit, ProviderRetryAfterMs: &ms,
		Message: fmt.Sprintf("admission: the provider asked for a pause, of which %v are left", wait.Round(time.Second)),
	}
}

// serve runs an admitted request and tells the gate of its first word and of
// its end, however that comes.
func (p *Provider) serve(
	ctx context.Context, k *key, t *ticket, req *dsh.Request, yield func(dsh.Chunk, error) bool,
) {
	end := ended{t: t}
	accepted := time.AfterFunc(refusalTime, func() { p.root.Send(p.gate, answered{t}) })
	defer func() {
		accepted.Stop()
		p.root.Send(p.gate, end)
	}()
	first := true
	for c, err := range k.provider.Stream(ctx, req) {
		switch c := c.(type) {
		case dsh.Usage:
			end.tokens = tokensOf(c)
		case dsh.Finish:
			end.note(c.Reason.Failure)
		default:
		}
		if err != nil {
			end.note(dsh.AsFailure(err))
		} else if first {
			first = false
			p.root.Send(p.gate, answered{t})
		}
		if !yield(c, err) {
			return
		}
	}
}

// note takes a failure that says something of the key.
func (o *outcome) note(f *dsh.Failure) {
	if f == nil || f.Code != dsh.CodeRateLimit && (f.Code != dsh.CodeServer || f.ProviderRetryAfterMs == nil) {
		return
	}
	o.refused = true
	if f.ProviderRetryAfterMs != nil {
		o.wait = time.Duration(*f.ProviderRetryAfterMs) * time.Millisecond
	}
}

// bytesPerToken is a rough mean over languages and code.
const bytesPerToken = 4

// estimate returns about how many tokens a request has.
func estimate(req *dsh.Request) int {
	n := len(req.Header.System)
	for _, t := range req.Header.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	for _, m := range req.Messages {
		n += sizeOf(m.Content)
	}
	return n/bytesPerToken + 1
}

func sizeOf(content []dsh.Block) int {
	n := 0
	for _, b := range content {
		switch b := b.(type) {
		case dsh.Text:
			n += len(b.Text)
		case dsh.Reasoning:
			n += len(b.Text)
		case dsh.ToolCall:
			n += len(b.Name) + len(b.Arguments)
		case dsh.ToolResult:
			n += sizeOf(b.Content)
		case dsh.Image:
			n += 1000 * bytesPerToken // they cost about this much, not their bytes
		}
	}
	return n
}

func tokensOf(u dsh.Usage) int {
	n := u.InputTokens + u.OutputTokens
	for _, c := range []*int64{u.CacheReadTokens, u.CacheWriteTokens} {
		if c != nil {
			n += *c
		}
	}
	return int(n)
}
