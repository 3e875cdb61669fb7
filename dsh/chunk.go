package dsh

import "encoding/json"

// A Chunk is one element of a model stream: [BlockStart], [TextDelta],
// [ReasoningDelta], [ToolCallDelta], [BlockEnd], [Usage] or [Finish]. Usage
// comes before Finish; nothing follows Finish.
//
//sumtype:decl
type Chunk interface{ isChunk() }

// Chunks of a stream. Index numbers the blocks of one answer; blocks are
// ordered by the first chunk that names them.
type (
	// BlockStart opens a block. BlockType is "text", "reasoning" or
	// "tool-call".
	BlockStart struct {
		Index     int
		BlockType string
	}

	// TextDelta adds to a text block.
	TextDelta struct {
		Index int
		Text  string
	}

	// ReasoningDelta adds to a reasoning block.
	ReasoningDelta struct {
		Index int
		Text  string
	}

	// ToolCallDelta adds to a tool call. Name is nil where the chunk has
	// none, which is not the same as an empty one.
	ToolCallDelta struct {
		Index          int
		ID             CallID
		Name           *string
		ArgumentsDelta string
	}

	// BlockEnd closes a block with its whole value. The first one wins over
	// the deltas; later deltas of the block are ignored.
	BlockEnd struct {
		Index int
		Block Block
	}

	// Usage counts the tokens of one request. The counts are disjoint:
	// InputTokens are uncached ones, so a whole prompt is InputTokens plus
	// both cache counts. ReasoningTokens are part of OutputTokens. A nil
	// count was not told. In a stream the last one wins.
	Usage struct {
		InputTokens      int64
		OutputTokens     int64
		CacheReadTokens  *int64
		CacheWriteTokens *int64
		ReasoningTokens  *int64
	}

	// Finish ends a stream. ReplayState travels to the message's source.
	Finish struct {
		Reason      FinishReason
		ReplayState json.RawMessage
	}
)

func (BlockStart) isChunk()     {}
func (TextDelta) isChunk()      {}
func (ReasoningDelta) isChunk() {}
func (ToolCallDelta) isChunk()  {}
func (BlockEnd) isChunk()       {}
func (Usage) isChunk()          {}
func (Finish) isChunk()         {}

// Block types of a [BlockStart].
const (
	TextBlock      = "text"
	ReasoningBlock = "reasoning"
	ToolCallBlock  = "tool-call"
)

// Types of the blocks that no stream opens.
const (
	imageBlock      = "image"
	toolResultBlock = "tool-result"
)

// FinishKind says how a stream ended.
type FinishKind string

// Kinds of finish. FinishError and FinishAborted carry a failure.
const (
	FinishStop      FinishKind = "stop"
	FinishToolCalls FinishKind = "tool-calls"
	FinishMaxTokens FinishKind = "max-tokens"
	FinishError     FinishKind = "error"
	FinishAborted   FinishKind = "aborted"
)

// FinishReason says why a stream ended.
type FinishReason struct {
	Kind    FinishKind
	Failure *Failure
}

// Add returns the sum of two counts; a count told by neither stays untold.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:      u.InputTokens + v.InputTokens,
		OutputTokens:     u.OutputTokens + v.OutputTokens,
		CacheReadTokens:  addCount(u.CacheReadTokens, v.CacheReadTokens),
		CacheWriteTokens: addCount(u.CacheWriteTokens, v.CacheWriteTokens),
		ReasoningTokens:  addCount(u.ReasoningTokens, v.ReasoningTokens),
	}
}

func addCount(a, b *int64) *int64 {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	sum := *a + *b
	return &sum
}
