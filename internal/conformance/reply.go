package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Reply is a scripted model response: a list of chunks or a shorthand.
type Reply struct {
	Chunks []Piece `json:"chunks"`

	// An answer; MaxTokens stands for Text with a cut-off finish.
	Text        *string         `json:"text"`
	MaxTokens   *string         `json:"maxTokens"`
	Reasoning   string          `json:"reasoning"`
	ToolCalls   []ToolCallSpec  `json:"toolCalls"`
	Usage       *UsageSpec      `json:"usage"`
	Pieces      int             `json:"pieces"`
	ReplayState json.RawMessage `json:"replayState"`

	// A failure behind After.
	After   []Piece      `json:"after"`
	Error   *FailureSpec `json:"error"`
	Aborted *FailureSpec `json:"aborted"`
	Throw   *FailureSpec `json:"throw"`

	// A stream that waits for the abort, and then for AbortGate.
	HangAfter []Piece `json:"hangAfter"`
	AbortGate string  `json:"abortGate"`
}

// UnmarshalJSON reads a reply strictly.
func (r *Reply) UnmarshalJSON(data []byte) error {
	type plain Reply
	if err := strict(data, (*plain)(r)); err != nil {
		return fmt.Errorf("model response %s: %w", brief(data), err)
	}
	return nil
}

// An Expander turns replies into steps of a stream. The zero value works for
// replies without actions.
type Expander struct {
	// Do runs actions from inside a stream.
	Do func(ctx context.Context, actions []Action)
	// Substitute replaces names of children in tool-call arguments.
	Substitute func(string) string
}

// Expand returns the steps of a reply.
func (e Expander) Expand(r Reply) script.Response {
	switch {
	case r.Chunks != nil:
		return e.pieces(r.Chunks)
	case r.Error != nil:
		return e.finish(r.After, dsh.FinishError, r.Error)
	case r.Aborted != nil:
		return e.finish(r.After, dsh.FinishAborted, r.Aborted)
	case r.Throw != nil:
		return append(e.pieces(r.After), script.Fail{Err: r.Throw.thrown()})
	case r.HangAfter != nil:
		return append(e.pieces(r.HangAfter), script.Hang{Gate: r.AbortGate})
	}
	return e.answer(r)
}

func (e Expander) answer(r Reply) script.Response {
	a := script.Answer{Reasoning: r.Reasoning, Pieces: r.Pieces, ReplayState: r.ReplayState}
	switch {
	case r.MaxTokens != nil:
		a.Text, a.Finish = *r.MaxTokens, dsh.FinishMaxTokens
	case r.Text != nil:
		a.Text = *r.Text
	}
	for _, c := range r.ToolCalls {
		call := c.call()
		if e.Substitute != nil {
			call.Arguments = e.Substitute(call.Arguments)
		}
		a.Calls = append(a.Calls, call)
	}
	if r.Usage != nil {
		usage := r.Usage.usage()
		a.Usage = &usage
	}
	return a.Response()
}

func (e Expander) finish(after []Piece, kind dsh.FinishKind, f *FailureSpec) script.Response {
	reason := dsh.FinishReason{Kind: kind, Failure: f.failure()}
	return append(e.pieces(after), script.Emit{Chunk: dsh.Finish{Reason: reason}})
}

func (e Expander) pieces(pieces []Piece) script.Response {
	steps := make(script.Response, 0, len(pieces)+1)
	for _, p := range pieces {
		switch {
		case p.Wait != "":
			steps = append(steps, script.Wait{Gate: p.Wait})
		case p.Do != nil:
			steps = append(steps, script.Do{Func: func(ctx context.Context) {
				if e.Do != nil {
					e.Do(ctx, p.Do)
				}
			}})
		default:
			steps = append(steps, script.Emit{Chunk: p.Chunk})
		}
	}
	return steps
}

// Piece is a chunk, or a pseudo-chunk that waits for a gate or acts.
type Piece struct {
	Chunk dsh.Chunk
	Wait  string
	Do    []Action
}

// UnmarshalJSON reads a piece strictly.
func (p *Piece) UnmarshalJSON(data []byte) error {
	var wire struct {
		Wait string   `json:"wait"`
		Do   []Action `json:"do"`

		Type           string          `json:"type"`
		Index          int             `json:"index"`
		BlockType      string          `json:"blockType"`
		Text           string          `json:"text"`
		ID             dsh.CallID      `json:"id"`
		Name           *string         `json:"name"`
		ArgumentsDelta string          `json:"argumentsDelta"`
		Block          BlockSpec       `json:"block"`
		Usage          UsageSpec       `json:"usage"`
		Reason         FinishSpec      `json:"reason"`
		ReplayState    json.RawMessage `json:"replayState"`
	}
	if err := strict(data, &wire); err != nil {
		return fmt.Errorf("chunk %s: %w", brief(data), err)
	}
	p.Wait, p.Do = wire.Wait, wire.Do
	switch wire.Type {
	case "":
		if p.Wait == "" && p.Do == nil {
			return fmt.Errorf("chunk %s: no type", brief(data))
		}
	case "block-start":
		p.Chunk = dsh.BlockStart{Index: wire.Index, BlockType: wire.BlockType}
	case "text-delta":
		p.Chunk = dsh.TextDelta{Index: wire.Index, Text: wire.Text}
	case "reasoning-delta":
		p.Chunk = dsh.ReasoningDelta{Index: wire.Index, Text: wire.Text}
	case "tool-call-delta":
		p.Chunk = dsh.ToolCallDelta{Index: wire.Index, ID: wire.ID, Name: wire.Name, ArgumentsDelta: wire.ArgumentsDelta}
	case "block-end":
		p.Chunk = dsh.BlockEnd{Index: wire.Index, Block: wire.Block.Block}
	case "usage":
		p.Chunk = wire.Usage.usage()
	case "finish":
		p.Chunk = dsh.Finish{
			Reason:      dsh.FinishReason{Kind: dsh.FinishKind(wire.Reason.Kind), Failure: wire.Reason.Failure.failure()},
			ReplayState: wire.ReplayState,
		}
	default:
		return fmt.Errorf("chunk %s: unknown type %q", brief(data), wire.Type)
	}
	return nil
}

// FinishSpec is the reason of a finish chunk.
type FinishSpec struct {
	Kind    string       `json:"kind"`
	Failure *FailureSpec `json:"failure"`
}

// ToolCallSpec is a tool call of an answer.
type ToolCallSpec struct {
	ID   dsh.CallID      `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// call returns the call; an object is serialised compactly, a string is the
// raw text of the arguments, and absent ones are {}.
func (c ToolCallSpec) call() dsh.ToolCall {
	call := dsh.ToolCall{ID: c.ID, Name: c.Name, Arguments: "{}"}
	if c.Args == nil {
		return call
	}
	if json.Unmarshal(c.Args, &call.Arguments) == nil {
		return call
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, c.Args); err != nil {
		panic(err) // It was part of a JSON text.
	}
	call.Arguments = compact.String()
	return call
}

// UsageSpec is a usage as it is written.
type UsageSpec struct {
	InputTokens      int64  `json:"inputTokens"`
	OutputTokens     int64  `json:"outputTokens"`
	CacheReadTokens  *int64 `json:"cacheReadTokens"`
	CacheWriteTokens *int64 `json:"cacheWriteTokens"`
	ReasoningTokens  *int64 `json:"reasoningTokens"`
}

func (u UsageSpec) usage() dsh.Usage { return dsh.Usage(u) }

// FailureSpec is a failure as it is written.
type FailureSpec struct {
	Message string   `json:"message"`
	Code    dsh.Code `json:"code"`
	Status  int      `json:"status"`
	// RetryAfterMs and ProviderRetryAfterMs are the same.
	RetryAfterMs         *int64 `json:"retryAfterMs"`
	ProviderRetryAfterMs *int64 `json:"providerRetryAfterMs"`
	RequestID            string `json:"requestId"`
}

func (f *FailureSpec) failure() *dsh.Failure {
	if f == nil {
		return nil
	}
	out := &dsh.Failure{
		Message: f.Message, Code: f.Code, Status: f.Status,
		ProviderRetryAfterMs: f.ProviderRetryAfterMs, RequestID: f.RequestID,
	}
	if out.Code == "" {
		out.Code = dsh.CodeUnknown
	}
	if f.RetryAfterMs != nil {
		out.ProviderRetryAfterMs = f.RetryAfterMs
	}
	return out
}

// thrown returns what the adapter throws: a plain error if there is no code.
func (f *FailureSpec) thrown() error {
	if f.Code == "" {
		return errors.New(f.Message)
	}
	return f.failure()
}

// BlockSpec is a content block as it is written.
type BlockSpec struct{ dsh.Block }

// UnmarshalJSON reads any block.
func (b *BlockSpec) UnmarshalJSON(data []byte) (err error) {
	b.Block, err = dsh.DecodeBlock(data)
	return err
}

func blocksOf(specs []BlockSpec) []dsh.Block {
	blocks := make([]dsh.Block, len(specs))
	for i, s := range specs {
		blocks[i] = s.Block
	}
	return blocks
}
