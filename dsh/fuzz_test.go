package dsh_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// oddities are values where readers tend to differ.
var oddities = []string{
	`{"content":[{"type":"image","b":1,"a":{"z":null}}],"source":{"kind":"plugin","plugin":"p","k\u0069nd2":-0.0,"x":"\ud800"},"role":"user"}`,
	`{"content":[{"type":"tool-result","toolCallId":"","content":[{"type":"reasoning","text":"` + "\xff" + `"}]}],"source":{"kind":"tool","callId":"c"},"role":"user","id":"\u0000"}`,
	`{"role":"assistant","content":[],"source":{"kind":"x` + "\xff" + `","x":1},"id":"i"}`,
	`{"role":"assistant","role":"user","content":[],"source":{"kind":"plugin","plugin":"","a":1,"a":[ ]}}`,
	`{"type":"tool-call-delta","index":-1e3,"id":"","name":"","argumentsDelta":"\"\\"}`,
	`{"type":"finish","reason":{"kind":"aborted","failure":{"message":"","code":"","providerRetryAfterMs":0.1}},"replayState":-0}`,
	`{"type":"usage","usage":{"inputTokens":9007199254740991,"outputTokens":-1,"cacheReadTokens":0}}`,
	` {"type" : "block-end" , "index" : 0 , "block" : { "type" : "image" , "x" : 1e999 } } `,
}

// stable checks the law of every codec here: what was read is written so that
// reading and writing it again changes nothing.
func stable[T any](t *testing.T, data []byte, read func([]byte) (T, error), write func(T) []byte) {
	t.Helper()
	v, err := read(data)
	if err != nil {
		return
	}
	once := write(v)
	if !json.Valid(once) || bytes.ContainsAny(once, "\n\r") {
		t.Fatalf("%q is written as %q", data, once)
	}
	again, err := read(once)
	if err != nil {
		t.Fatalf("%q is written as %q: %v", data, once, err)
	}
	if twice := write(again); !bytes.Equal(once, twice) {
		t.Fatalf("%q is written as\n     %q\nthen %q", data, once, twice)
	}
}

func FuzzEvent(f *testing.F) {
	for _, name := range []string{"turn.jsonl", "closers.jsonl"} {
		for _, line := range readLines(f, name) {
			f.Add(line)
		}
	}
	for _, odd := range oddities {
		f.Add([]byte(`{"type":"user/message","seq":0,"time":0,"data":` + odd + `,"surfaceOp":{"op":"replace","start":0,"end":0},"sourceEventSeqs":[]}`))
		f.Add([]byte(`{"type":"assistant/chunk","seq":0,"time":0,"data":{"turn":1,"step":1,"chunk":` + odd + `}}`))
		f.Add([]byte(`{"type":"todo/write","seq":0,"time":-1,"data":` + odd + `,"ignorable":true}`))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		stable(t, line, func(line []byte) (ev dsh.Event, err error) {
			return ev, ev.UnmarshalJSON(line)
		}, func(ev dsh.Event) []byte { return ev.AppendJSON(nil) })
		var h dsh.SessionHeader
		if h.UnmarshalJSON(line) == nil && h.Version != dsh.FormatVersion {
			t.Errorf("accepted version %d", h.Version)
		}
	})
}

func FuzzMessage(f *testing.F) {
	for _, odd := range oddities {
		f.Add([]byte(odd))
	}
	for _, ev := range readTurn(f) {
		switch d := ev.Data.(type) {
		case dsh.UserMessage:
			f.Add(d.Message.AppendJSON(nil))
		case dsh.AssistantMessage:
			f.Add(d.Message.AppendJSON(nil))
		case dsh.ToolFinished:
			f.Add(d.Message.AppendJSON(nil))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		stable(t, data, func(data []byte) (m dsh.Message, err error) {
			return m, m.UnmarshalJSON(data)
		}, func(m dsh.Message) []byte { return m.AppendJSON(nil) })
	})
}

func FuzzChunk(f *testing.F) {
	for _, odd := range oddities {
		f.Add([]byte(odd))
	}
	for _, ev := range readTurn(f) {
		if d, ok := ev.Data.(dsh.AssistantChunk); ok {
			f.Add(dsh.AppendChunk(nil, d.Chunk))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		stable(t, data, func(data []byte) (dsh.Chunk, error) { return dsh.DecodeChunk(data) },
			func(c dsh.Chunk) []byte { return dsh.AppendChunk(nil, c) })
	})
}
