package llm

import (
	"context"
	"iter"
	"net/http"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Provider is the route that requests take to models. It is served by one
// adapter and shared by all agents of a process, so it must be safe for
// concurrent use.
type Provider interface {
	// Model describes a model of this provider; the zero Model is right for
	// one of which nothing is known. It must not do I/O: it is called before
	// a request, on a goroutine that serves other agents too.
	Model(name string) Model

	// Stream sends a request and yields its chunks in order, ending with a
	// [dsh.Finish]. A non-nil error ends the sequence instead; it becomes the
	// request's failure, structured if it is a [dsh.Failure]. When ctx is
	// cancelled, Stream releases what it holds and returns soon, yielding
	// ctx's error. It runs on the stream's own goroutine, may block, and
	// starts its work when iterated. What it yields must not change later.
	Stream(ctx context.Context, req *dsh.Request) iter.Seq2[dsh.Chunk, error]
}

// A Model is what an adapter knows of a model. Zero values are unknown.
type Model struct {
	// ContextWindow is in tokens.
	ContextWindow int
	// MaxTokens is the output cap that the adapter sends when nobody set one.
	MaxTokens int
	// ReasoningEffort is the effort that the adapter sends when nobody set
	// one.
	ReasoningEffort string
	// Price is what the model costs.
	Price Price
}

// Resolve fills the values of c that the adapter would fill in and marks them.
func (m Model) Resolve(c dsh.CallConfig) (dsh.CallConfig, dsh.AdapterDefaults) {
	var filled dsh.AdapterDefaults
	if c.MaxTokens == 0 && m.MaxTokens > 0 {
		c.MaxTokens, filled.MaxTokens = m.MaxTokens, true
	}
	if c.ReasoningEffort == "" && m.ReasoningEffort != "" {
		c.ReasoningEffort, filled.ReasoningEffort = m.ReasoningEffort, true
	}
	return c, filled
}

type headersKey struct{}

// WithHeaders returns ctx with headers that an adapter over HTTP sends with the
// request it is asked for. They are no part of the request and reach no log.
func WithHeaders(ctx context.Context, h http.Header) context.Context {
	return context.WithValue(ctx, headersKey{}, h)
}

// HeadersFrom returns the headers of [WithHeaders], which must not be changed,
// or nil.
func HeadersFrom(ctx context.Context) http.Header {
	h, _ := ctx.Value(headersKey{}).(http.Header)
	return h
}
