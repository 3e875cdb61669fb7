package openai

import (
	"context"
	"errors"
	"io"
	"iter"
	"math"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/dsh"
	goopenai "github.com/sashabaranov/go-openai"
)

// Provider serves one endpoint. It is safe for concurrent use; create it with
// [New].
type Provider struct {
	set     settings
	client  *goopenai.Client
	secrets secrets
}

var _ llm.Provider = (*Provider)(nil)

// New returns a provider, or every problem of o at once. It does no I/O.
func New(o Options) (*Provider, error) {
	set, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	config := goopenai.DefaultConfig(set.APIKey)
	config.BaseURL = template(set.BaseURL).fill("x", "x", "x")
	config.HTTPClient = &doer{
		client: set.HTTPClient, headers: set.Headers, initiator: set.InitiatorHeader, base: template(set.BaseURL),
	}
	config.EmptyMessagesLimit = math.MaxUint
	return &Provider{
		set:     set,
		client:  goopenai.NewClientWithConfig(config),
		secrets: newSecrets(set.APIKey, set.Headers),
	}, nil
}

// Model implements [llm.Provider].
func (p *Provider) Model(name string) llm.Model { return p.set.Models[name] }

// CloseIdleConnections closes connections that wait to be used again.
func (p *Provider) CloseIdleConnections() { p.set.HTTPClient.CloseIdleConnections() }

// skeleton is the request that go-openai is given. The body that is sent is
// the exchange's; a made-up model name keeps go-openai from refusing one that
// begins like OpenAI's own.
var skeleton = goopenai.ChatCompletionRequest{Model: "model"}

// Stream implements [llm.Provider].
func (p *Provider) Stream(ctx context.Context, req *dsh.Request) iter.Seq2[dsh.Chunk, error] {
	return func(yield func(dsh.Chunk, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(nil, err)
			return
		}
		body, err := p.set.encode(req)
		if err != nil {
			yield(nil, &dsh.Failure{Code: dsh.CodeInvalid, Message: p.secrets.readable(err.Error()), Cause: err})
			return
		}
		requestCtx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		x := &exchange{
			body: body, request: req, own: llm.HeadersFrom(ctx),
			dog: newWatchdog(p.set.Options, cancel), abort: func() { cancel(nil) },
		}
		defer x.dog.stop()
		if tell := p.set.Quiet; tell != nil {
			x.dog.listen(func(q Quiet) { tell(ctx, q) })
		}
		r := &run{
			p:      p,
			ctx:    ctx,
			x:      x,
			yield:  yield,
			answer: newAnswer(&p.set.Options, req.Header),
		}
		r.do(withExchange(requestCtx, x))
	}
}

// run is one iteration of a stream. All of it happens on the goroutine of the
// one who iterates.
type run struct {
	p      *Provider
	ctx    context.Context //nolint:containedctx // lives as long as the call that got it.
	x      *exchange
	yield  func(dsh.Chunk, error) bool
	answer *answer
}

func (r *run) do(requestCtx context.Context) {
	stream, err := r.p.client.CreateChatCompletionStream(requestCtx, skeleton)
	if err != nil {
		r.fail(err)
		return
	}
	defer func() {
		r.x.dog.stop() // what is left needs no watch
		_ = stream.Close()
	}()
	for {
		raw, err := stream.RecvRaw()
		if err != nil {
			r.end(err)
			return
		}
		chunk, err := decodeChunk(raw)
		if err != nil {
			r.fail(err)
			return
		}
		if !r.send(r.answer.add(&chunk)) {
			return
		}
	}
}

// end decides whether what ended the stream is the end of the answer.
func (r *run) end(err error) {
	complete := errors.Is(err, io.EOF) ||
		r.p.set.Truncated == AcceptFinish && r.answer.finish != "" && errors.Is(failureOf(err), ErrTruncated)
	if !complete {
		r.fail(err)
		return
	}
	ends, err := r.answer.end()
	if err != nil {
		r.fail(err)
		return
	}
	r.send(ends)
}

// send yields chunks and reports whether to go on. The watchdog's clock stands
// meanwhile.
func (r *run) send(chunks []dsh.Chunk) bool {
	for _, c := range chunks {
		if r.ctx.Err() != nil {
			r.yield(nil, r.ctx.Err())
			return false
		}
		r.x.dog.pause()
		more := r.yield(c, nil)
		r.x.dog.resume()
		if !more {
			return false
		}
	}
	return true
}

// fail yields what the server counted, if it did, and the failure.
func (r *run) fail(err error) {
	err = r.p.failure(r.ctx, r.x, err)
	if r.answer.usage != nil && r.ctx.Err() == nil && !r.send([]dsh.Chunk{*r.answer.usage}) {
		return
	}
	r.yield(nil, err)
}
