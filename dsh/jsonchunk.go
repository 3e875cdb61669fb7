package dsh

import (
	"encoding/json"
	"fmt"
)

// AppendChunk appends a chunk as an object with its type.
func AppendChunk(dst []byte, c Chunk) []byte {
	switch c := c.(type) {
	case BlockStart:
		dst = appendInt(dst, `{"type":"block-start","index":`, c.Index)
		return append(appendText(dst, `,"blockType":`, c.BlockType), '}')
	case TextDelta:
		dst = appendInt(dst, `{"type":"text-delta","index":`, c.Index)
		return append(appendText(dst, `,"text":`, c.Text), '}')
	case ReasoningDelta:
		dst = appendInt(dst, `{"type":"reasoning-delta","index":`, c.Index)
		return append(appendText(dst, `,"text":`, c.Text), '}')
	case ToolCallDelta:
		dst = appendInt(dst, `{"type":"tool-call-delta","index":`, c.Index)
		dst = appendText(dst, `,"id":`, c.ID)
		if c.Name != nil {
			dst = appendText(dst, `,"name":`, *c.Name)
		}
		return append(appendText(dst, `,"argumentsDelta":`, c.ArgumentsDelta), '}')
	case BlockEnd:
		dst = appendInt(dst, `{"type":"block-end","index":`, c.Index)
		return append(AppendBlock(append(dst, `,"block":`...), c.Block), '}')
	case Usage:
		return append(c.appendJSON(append(dst, `{"type":"usage","usage":`...)), '}')
	case Finish:
		dst = c.Reason.appendJSON(append(dst, `{"type":"finish","reason":`...))
		return append(optRaw(dst, `,"replayState":`, c.ReplayState), '}')
	}
	panic(fmt.Sprintf("dsh: no JSON form for chunk %T", c))
}

// DecodeChunk reads a chunk. It copies what it keeps of raw.
func DecodeChunk(raw json.RawMessage) (Chunk, error) {
	return decodeAs(raw, "chunk", decodeChunk)
}

func decodeChunk(v value) (Chunk, error) {
	kind, err := v.tag("type")
	if err != nil {
		return nil, err
	}
	switch kind {
	case "block-start":
		return decodeBlockStart(v)
	case "text-delta":
		index, text, err := decodeTextDelta(v)
		return TextDelta{index, text}, err
	case "reasoning-delta":
		index, text, err := decodeTextDelta(v)
		return ReasoningDelta{index, text}, err
	case "tool-call-delta":
		return decodeToolCallDelta(v)
	case "block-end":
		return decodeBlockEnd(v)
	case "usage":
		return decodeUsageChunk(v)
	case "finish":
		return decodeFinish(v)
	}
	return nil, within("type", fmt.Errorf("unknown chunk type %q", kind))
}

func decodeBlockStart(v value) (Chunk, error) {
	var c BlockStart
	err := v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "index":
			c.Index, err = intOf[int](v)
		case "blockType":
			c.BlockType, err = v.text()
		}
		return err
	}, "index", "blockType")
	return c, err
}

func decodeTextDelta(v value) (index int, text string, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "index":
			index, err = intOf[int](v)
		case "text":
			text, err = v.text()
		}
		return err
	}, "index", "text")
	return index, text, err
}

func decodeToolCallDelta(v value) (Chunk, error) {
	var c ToolCallDelta
	err := v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "index":
			c.Index, err = intOf[int](v)
		case "id":
			c.ID, err = textOf[CallID](v)
		case "name":
			c.Name, err = decodePtr(v, value.text)
		case "argumentsDelta":
			c.ArgumentsDelta, err = v.text()
		}
		return err
	}, "index", "id", "argumentsDelta")
	return c, err
}

func decodeBlockEnd(v value) (Chunk, error) {
	var c BlockEnd
	err := v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "index":
			c.Index, err = intOf[int](v)
		case "block":
			c.Block, err = decodeBlock(v)
		}
		return err
	}, "index", "block")
	return c, err
}

func decodeUsageChunk(v value) (Chunk, error) {
	var u Usage
	err := v.members(func(key []byte, v value) (err error) {
		if string(key) == "usage" {
			u, err = decodeUsage(v)
		}
		return err
	}, "usage")
	return u, err
}

func decodeFinish(v value) (Chunk, error) {
	var c Finish
	err := v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "reason":
			c.Reason, err = decodeFinishReason(v)
		case "replayState":
			c.ReplayState = v.raw()
		}
		return err
	}, "reason")
	return c, err
}

func (r FinishReason) appendJSON(dst []byte) []byte {
	dst = appendText(dst, `{"kind":`, r.Kind)
	if r.Failure != nil {
		dst = r.Failure.appendJSON(append(dst, `,"failure":`...))
	}
	return append(dst, '}')
}

func decodeFinishReason(v value) (r FinishReason, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "kind":
			r.Kind, err = textOf[FinishKind](v)
		case "failure":
			r.Failure, err = decodePtr(v, decodeFailure)
		}
		return err
	}, "kind")
	return r, err
}

func (u *Usage) appendJSON(dst []byte) []byte {
	dst = appendInt(dst, `{"inputTokens":`, u.InputTokens)
	dst = appendInt(dst, `,"outputTokens":`, u.OutputTokens)
	dst = optIntPtr(dst, `,"cacheReadTokens":`, u.CacheReadTokens)
	dst = optIntPtr(dst, `,"cacheWriteTokens":`, u.CacheWriteTokens)
	return append(optIntPtr(dst, `,"reasoningTokens":`, u.ReasoningTokens), '}')
}

// MarshalJSON returns the counts, without the type that they have as a chunk.
func (u Usage) MarshalJSON() ([]byte, error) { return u.appendJSON(nil), nil }

// UnmarshalJSON reads the counts.
func (u *Usage) UnmarshalJSON(data []byte) error {
	return unmarshal(data, "usage", decodeUsage, u)
}

func decodeUsage(v value) (u Usage, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "inputTokens":
			u.InputTokens, err = v.integer()
		case "outputTokens":
			u.OutputTokens, err = v.integer()
		case "cacheReadTokens":
			u.CacheReadTokens, err = decodePtr(v, value.integer)
		case "cacheWriteTokens":
			u.CacheWriteTokens, err = decodePtr(v, value.integer)
		case "reasoningTokens":
			u.ReasoningTokens, err = decodePtr(v, value.integer)
		}
		return err
	}, "inputTokens", "outputTokens")
	return u, err
}

func (f *Failure) appendJSON(dst []byte) []byte {
	dst = appendText(dst, `{"message":`, f.Message)
	dst = appendText(dst, `,"code":`, f.Code)
	dst = optInt(dst, `,"status":`, f.Status)
	dst = optIntPtr(dst, `,"providerRetryAfterMs":`, f.ProviderRetryAfterMs)
	return append(optText(dst, `,"requestId":`, f.RequestID), '}')
}

// MarshalJSON returns the failure as the log holds it, without its cause.
func (f Failure) MarshalJSON() ([]byte, error) { return f.appendJSON(nil), nil }

// UnmarshalJSON reads a failure.
func (f *Failure) UnmarshalJSON(data []byte) error {
	return unmarshal(data, "failure", decodeFailure, f)
}

func decodeFailure(v value) (f Failure, err error) {
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "message":
			f.Message, err = v.text()
		case "code":
			f.Code, err = textOf[Code](v)
		case "status":
			f.Status, err = intOf[int](v)
		case "providerRetryAfterMs":
			f.ProviderRetryAfterMs, err = decodePtr(v, value.millis)
		case "requestId":
			f.RequestID, err = v.text()
		}
		return err
	}, "message", "code")
	return f, err
}
