package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of a test that should be short.
const patience = 20 * time.Second

func newProvider(t testing.TB, o Options) *Provider {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.CloseIdleConnections)
	return p
}

// request is one user message to a model with a tool.
func request(messages ...*dsh.Message) *dsh.Request {
	if messages == nil {
		messages = []*dsh.Message{dsh.UserText("hello")}
	}
	return &dsh.Request{
		Header: &dsh.Header{
			Config: dsh.CallConfig{Provider: "test", Model: "test-model"},
			System: "be brief",
			Tools: []dsh.ToolSchema{{
				Name: "read", Description: "reads a <file> & more", Parameters: json.RawMessage(`{"type":"object"}`),
			}},
		},
		Messages: messages,
	}
}

// outcome is what a stream came to.
type outcome struct {
	chunks []dsh.Chunk
	blocks []dsh.Block
	usage  *dsh.Usage
	finish dsh.FinishKind
	err    error
}

// collect iterates a whole stream and checks the promises that every stream
// makes.
func collect(t testing.TB, stream iter.Seq2[dsh.Chunk, error]) outcome {
	t.Helper()
	var out outcome
	var asm dsh.Assembler
	for c, err := range stream {
		if out.err != nil || asm.Finish() != nil {
			t.Fatalf("something follows the end: %v, %v", c, err)
		}
		if err != nil {
			out.err = err
			continue
		}
		out.chunks = append(out.chunks, c)
		asm.Add(c)
	}
	out.blocks, out.usage = asm.Blocks(), asm.Usage()
	if f := asm.Finish(); f != nil {
		out.finish = f.Reason.Kind
		checkShape(t, out.chunks)
	} else if out.err == nil {
		t.Fatal("the stream ended with neither a finish nor an error")
	}
	return out
}

// checkShape checks a successful stream: blocks are numbered in the order in
// which they start, deltas lie within their block, each block ends with what
// its deltas said, and ends, usage and finish come in this order.
func checkShape(t testing.TB, chunks []dsh.Chunk) {
	t.Helper()
	var fromDeltas dsh.Assembler
	var ended []dsh.Block
	started, stage := 0, 0
	for _, c := range chunks {
		at := 0
		switch c := c.(type) {
		case dsh.BlockStart:
			if c.Index != started {
				t.Errorf("block %d starts as number %d", c.Index, started)
			}
			started++
		case dsh.BlockEnd:
			at = 1
			if c.Index != len(ended) {
				t.Errorf("block %d ends as number %d", c.Index, len(ended))
			}
			ended = append(ended, c.Block)
		case dsh.Usage:
			at = 2
		case dsh.Finish:
			at = 3
		}
		if at < stage {
			t.Errorf("%T comes too late", c)
		}
		if stage = at; at == 0 {
			fromDeltas.Add(c)
		}
	}
	if len(ended) != started || stage != 3 {
		t.Errorf("%d blocks started, %d ended, stage %d", started, len(ended), stage)
	}
	got := fromDeltas.Blocks()
	for i := range got {
		if a, ok := got[i].(dsh.ToolCall); ok && i < len(ended) {
			b, _ := ended[i].(dsh.ToolCall)
			if strings.HasPrefix(b.Name, a.Name) {
				a.Name = b.Name // it came in pieces, of which the first counts
				got[i] = a
			}
		}
	}
	if len(ended) > 0 && !reflect.DeepEqual(got, ended) {
		t.Errorf("deltas give\n%v, ends\n%v", got, ended)
	}
}

// ask sends one request to a server that answers with the script.
func ask(t *testing.T, o Options, req *dsh.Request, script ...llmtest.Response) outcome {
	t.Helper()
	o.BaseURL = llmtest.NewServer(t, script...).URL
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return collect(t, newProvider(t, o).Stream(ctx, req))
}

func (o outcome) calls() []dsh.ToolCall { return dsh.CallsOf(o.blocks) }

func (o outcome) failure(t testing.TB) *dsh.Failure {
	t.Helper()
	if o.err == nil {
		t.Fatalf("no failure but %s with %v", o.finish, o.blocks)
	}
	return dsh.AsFailure(o.err)
}

func (o outcome) wantFailure(t testing.TB, code dsh.Code) {
	t.Helper()
	if f := o.failure(t); f.Code != code {
		t.Errorf("failure = %s (%s), want %s", f.Code, f.Message, code)
	}
}

func (o outcome) want(t testing.TB, finish dsh.FinishKind, blocks ...dsh.Block) {
	t.Helper()
	if o.err != nil {
		t.Fatalf("failed: %v", o.err)
	}
	if o.finish != finish {
		t.Errorf("finish = %s, want %s", o.finish, finish)
	}
	if fmt.Sprintf("%#v", o.blocks) != fmt.Sprintf("%#v", append([]dsh.Block{}, blocks...)) {
		t.Errorf("blocks =\n%#v, want\n%#v", o.blocks, blocks)
	}
}

func ptr[T any](v T) *T { return &v }

// data makes events of chunks in short form and ends them with [DONE].
func data(chunks ...string) llmtest.Response {
	return llmtest.Raw(append(events(chunks...), "data: [DONE]")...)
}

func events(chunks ...string) []string {
	out := make([]string, len(chunks))
	for i, c := range chunks {
		out[i] = "data: " + c
	}
	return out
}

// delta is a chunk with one delta.
func delta(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }

// callDelta is a chunk with tool call deltas.
func callDelta(calls string) string { return delta(`{"tool_calls":[` + calls + `]}`) }

// finished is a chunk with a finish reason.
func finished(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}
