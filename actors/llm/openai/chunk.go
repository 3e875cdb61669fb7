package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// wireChunk is one chunk, decoded leniently: a member of a type that nobody
// expects is as good as absent, so that an odd field costs a field and not the
// stream.
type wireChunk struct {
	Choices []wireChoice `json:"choices"`
	Usage   *wireUsage   `json:"usage"`
}

type wireChoice struct {
	Index    count      `json:"index"`
	Delta    wireDelta  `json:"delta"`
	Message  wireDelta  `json:"message"` // of an answer that is no stream
	Finish   looseText  `json:"finish_reason"`
	Usage    *wireUsage `json:"usage"`
	Logprobs struct {
		Content rawList `json:"content"`
	} `json:"logprobs"`
}

type wireDelta struct {
	Content          looseText          `json:"content"`
	Refusal          looseText          `json:"refusal"`
	ReasoningContent looseText          `json:"reasoning_content"`
	Reasoning        looseText          `json:"reasoning"`
	ToolCalls        callList           `json:"tool_calls"`
	FunctionCall     *wireDeltaFunction `json:"function_call"`     // before there were tool calls
	ReasoningDetails rawList            `json:"reasoning_details"` // OpenRouter
	ExtraContent     rawObject          `json:"extra_content"`     // Gemini
}

type wireDeltaCall struct {
	Index        count             `json:"index"`
	ID           looseText         `json:"id"`
	Function     wireDeltaFunction `json:"function"`
	ExtraContent rawObject         `json:"extra_content"` // Gemini
}

type wireDeltaFunction struct {
	Name      looseText     `json:"name"`
	Arguments callArguments `json:"arguments"`
}

// decodeChunk decodes one chunk, which must be a JSON object.
func decodeChunk(raw []byte) (wireChunk, error) {
	var c wireChunk
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' || !decodeLoose(raw, &c) {
		return wireChunk{}, fmt.Errorf("%w: a chunk is no JSON object: %s", ErrMalformed, raw)
	}
	return c, nil
}

// decodeLoose decodes what fits into v and leaves the rest zero. It returns
// false for what is no JSON.
func decodeLoose(raw []byte, v any) bool {
	err := json.Unmarshal(raw, v)
	var mismatch *json.UnmarshalTypeError
	return err == nil || errors.As(err, &mismatch)
}

// reasoningText returns the reasoning under either name; servers that send
// both send the same. Parts of a content list may be reasoning too.
func (d *wireDelta) reasoningText() string {
	switch {
	case d.ReasoningContent.text != "":
		return d.ReasoningContent.text
	case d.Reasoning.text != "":
		return d.Reasoning.text
	}
	if d.Content.thinking == "" {
		return detailText(d.ReasoningDetails)
	}
	return d.Content.thinking
}

// calls returns the tool call deltas, an old function call among them.
func (d *wireDelta) calls() []wireDeltaCall {
	if f := d.FunctionCall; f != nil && len(d.ToolCalls) == 0 {
		return []wireDeltaCall{{Function: *f}}
	}
	return d.ToolCalls
}

// looseText is a string, a number as its digits, or a list of text parts.
// Everything else is empty.
type looseText struct {
	text     string
	thinking string // of parts that hold reasoning
}

// UnmarshalJSON implements json.Unmarshaler; it never fails.
func (t *looseText) UnmarshalJSON(b []byte) error {
	*t = looseText{}
	switch {
	case len(b) == 0:
	case b[0] == '"':
		_ = json.Unmarshal(b, &t.text)
	case b[0] == '[':
		t.takeParts(b)
	case b[0] == '-' || b[0] >= '0' && b[0] <= '9':
		t.text = string(b)
	}
	return nil
}

func (t *looseText) takeParts(b []byte) {
	var parts []json.RawMessage
	_ = json.Unmarshal(b, &parts)
	for _, raw := range parts {
		var s string
		var p textPart
		switch {
		case json.Unmarshal(raw, &s) == nil:
			t.text += s
		case raw[0] != '{' || !decodeLoose(raw, &p):
		case strings.Contains(p.Type, "thinking") || strings.Contains(p.Type, "reasoning"):
			t.thinking += p.Thinking.text + p.Text
		default:
			t.text += p.Text
		}
	}
}

// textPart is an element of a content list. Mistral's reasoning parts hold a
// list of text parts themselves.
type textPart struct {
	Type     string    `json:"type"`
	Text     string    `json:"text"`
	Thinking looseText `json:"thinking"`
}

// callArguments is a piece of a call's arguments: a string as it is, anything
// else as compact JSON.
type callArguments string

// UnmarshalJSON implements json.Unmarshaler; it never fails.
func (a *callArguments) UnmarshalJSON(b []byte) error {
	*a = ""
	var s string
	var compact bytes.Buffer
	switch {
	case bytes.Equal(b, []byte("null")):
	case json.Unmarshal(b, &s) == nil:
		*a = callArguments(s)
	case json.Compact(&compact, b) == nil:
		*a = callArguments(compact.String())
	}
	return nil
}

// callList is a list of call deltas or one alone.
type callList []wireDeltaCall

// UnmarshalJSON implements json.Unmarshaler; it never fails.
func (l *callList) UnmarshalJSON(b []byte) error {
	*l = nil
	var one wireDeltaCall
	var many []wireDeltaCall
	switch {
	case bytes.Equal(b, []byte("null")):
	case json.Unmarshal(b, &many) == nil:
		*l = many
	case json.Unmarshal(b, &one) == nil:
		*l = callList{one}
	}
	return nil
}
