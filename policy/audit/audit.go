// Package audit records what an agent's requests really were, so that a replay
// of its log can tell whether "the model sees the log" held.
//
// A [Witness] is a stream hook next to the adapter. Right before a request is
// handed on it logs a [dsh.RequestSent]: digests of the configuration, of the
// system prompt, of the tools and of the messages, as they are after every other
// hook. Package replay derives the same request from the log and compares. A hook
// that puts something into a request that is not in the log, or takes something
// out, is found.
//
// The event is one of our own, marked ignorable. dsh reads a log that has it;
// the migrators of newer releases may refuse one, as they do any event that they
// do not know. That is why nobody is audited who does not ask for it:
//
//	rt, err := runtime.New(runtime.Options{Hooks: []any{audit.Witness{}}, …})
//
// The whole request is digested each time, which takes about as long as an
// adapter takes to write its body. Messages must not change once they are in the
// log; to trust that and digest only what is new would be to trust what is
// audited.
package audit

import (
	"context"
	"fmt"
	"iter"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// A Witness records the requests of every agent that it is a hook of. The zero
// value is ready, and safe for concurrent use.
type Witness struct{}

var _ hook.Witness = Witness{}

// Witness implements [hook.Witness].
func (Witness) Witness() {}

// Stream implements [hook.Stream]. A request whose record the log does not take
// is not sent. One that is made on behalf of no agent is passed on.
func (Witness) Stream(ctx context.Context, req *dsh.Request, next hook.StreamFunc) iter.Seq2[dsh.Chunk, error] {
	agent, ok := hook.AgentFrom(ctx)
	if !ok {
		return next(ctx, req)
	}
	return func(yield func(dsh.Chunk, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(nil, context.Cause(ctx)) // cancelled before it was sent
			return
		}
		if _, err := agent.Append(ctx, record(req), dsh.SurfaceOp{}, nil); err != nil {
			yield(nil, fmt.Errorf("audit: record request %v: %w", req.Pos, err))
			return
		}
		next(ctx, req)(yield)
	}
}

func record(req *dsh.Request) dsh.RequestSent {
	return dsh.RequestSent{
		Turn: req.Pos.Turn, Step: req.Pos.Step, Attempt: req.Pos.Attempt,
		Through: req.Through, Messages: len(req.Messages), Digest: req.Digest(),
	}
}
