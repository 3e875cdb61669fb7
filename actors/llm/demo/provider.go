package demo

import (
	"context"
	"iter"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Model is the name that the demo has for itself. It answers to any.
const Model = "demo"

// DefaultPace is a pace at which people can read along.
const DefaultPace = 12 * time.Millisecond

// Options of a [Provider]. The zero value works.
type Options struct {
	// Pace is the time before each piece of an answer; 0 is none.
	Pace time.Duration
}

// A Provider is the demo. It is stateless and safe for concurrent use.
type Provider struct{ pace time.Duration }

var _ llm.Provider = (*Provider)(nil)

// New returns a demo.
func New(o Options) *Provider { return &Provider{pace: max(o.Pace, 0)} }

// Model says that nothing is known of any model.
func (p *Provider) Model(string) llm.Model { return llm.Model{} }

// Stream answers a request.
func (p *Provider) Stream(ctx context.Context, req *dsh.Request) iter.Seq2[dsh.Chunk, error] {
	return func(yield func(dsh.Chunk, error) bool) {
		a := reply(req)
		chunks := a.chunks(budget(req))
		for i, c := range chunks {
			if !pause(ctx, p.wait(c)) {
				yield(nil, ctx.Err())
				return
			}
			if i == len(chunks)-1 && !yield(usage(req, chunks), nil) {
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// wait returns how long to wait before a chunk: only deltas take time.
func (p *Provider) wait(c dsh.Chunk) time.Duration {
	switch c.(type) {
	case dsh.TextDelta, dsh.ToolCallDelta:
		return p.pace
	default:
		return 0
	}
}

// pause lets d pass; it returns false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
