package script_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
)

var _ llm.Provider = (*script.Provider)(nil)

// play reads a whole stream as one line per chunk; an error is the last line.
func play(ctx context.Context, p llm.Provider) []string {
	var lines []string
	for chunk, err := range p.Stream(ctx, &dsh.Request{}) {
		lines = append(lines, line(chunk, err))
	}
	return lines
}

func line(chunk dsh.Chunk, err error) string {
	if err != nil {
		return "error " + err.Error()
	}
	switch c := chunk.(type) {
	case dsh.BlockStart:
		return fmt.Sprintf("%d start %s", c.Index, c.BlockType)
	case dsh.TextDelta:
		return fmt.Sprintf("%d text %q", c.Index, c.Text)
	case dsh.ReasoningDelta:
		return fmt.Sprintf("%d reasoning %q", c.Index, c.Text)
	case dsh.ToolCallDelta:
		return fmt.Sprintf("%d call %s %s %s", c.Index, c.ID, *c.Name, c.ArgumentsDelta)
	case dsh.BlockEnd:
		return fmt.Sprintf("%d end", c.Index)
	case dsh.Usage:
		return fmt.Sprintf("usage %d %d", c.InputTokens, c.OutputTokens)
	case dsh.Finish:
		return strings.TrimSpace(fmt.Sprintf("finish %s %s", c.Reason.Kind, c.ReplayState))
	}
	return fmt.Sprintf("%T", chunk)
}

func TestResponses(t *testing.T) {
	answer := script.Answer{
		Reasoning:   "hm",
		Text:        "ab",
		Calls:       []dsh.ToolCall{{ID: "c1", Name: "x", Arguments: "{}"}},
		Usage:       &dsh.Usage{InputTokens: 3, OutputTokens: 1},
		ReplayState: []byte(`{"k":1}`),
	}
	for _, c := range []struct {
		name string
		resp script.Response
		want []string
	}{
		{"text", script.Text("hi", 1), []string{"0 start text", `0 text "hi"`, "0 end", "finish stop"}},
		{"pieces", script.Text("one two three", 3), []string{
			"0 start text", `0 text "one t"`, `0 text "wo th"`, `0 text "ree"`, "0 end", "finish stop",
		}},
		{"more pieces than letters", script.Text("ab", 5), []string{
			"0 start text", `0 text "a"`, `0 text "b"`, "0 end", "finish stop",
		}},
		{"letters of two units", script.Text("a😀b😀", 3), []string{
			"0 start text", `0 text "a😀"`, `0 text "b😀"`, "0 end", "finish stop",
		}},
		{"no text", script.Text("", 1), []string{"finish stop"}},
		{"reasoning", script.Reasoning("r", "t"), []string{
			"0 start reasoning", `0 reasoning "r"`, "0 end", "1 start text", `1 text "t"`, "1 end", "finish stop",
		}},
		{"calls", script.Calls(dsh.ToolCall{ID: "a", Name: "x", Arguments: "{}"}, dsh.ToolCall{ID: "b", Name: "y"}), []string{
			"0 start tool-call", "0 call a x {}", "0 end", "1 start tool-call", "1 call b y ", "1 end", "finish tool-calls",
		}},
		{"max tokens", script.MaxTokens("cut"), []string{"0 start text", `0 text "cut"`, "0 end", "finish max-tokens"}},
		{"error", script.Error(&dsh.Failure{Code: dsh.CodeServer}, dsh.TextDelta{Text: "x"}), []string{
			`0 text "x"`, "finish error",
		}},
		{"everything", answer.Response(), []string{
			"0 start reasoning", `0 reasoning "hm"`, "0 end",
			"1 start text", `1 text "ab"`, "1 end",
			"2 start tool-call", "2 call c1 x {}", "2 end",
			"usage 3 1", `finish tool-calls {"k":1}`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := play(t.Context(), script.New(script.Options{}, c.resp))
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// Each response is served once; then requests fail.
func TestExhausted(t *testing.T) {
	p := script.New(script.Options{Record: true}, script.Text("a", 1))
	p.Add(script.Text("b", 1))
	seq := p.Stream(t.Context(), &dsh.Request{Session: "s"})
	if n := p.Left(); n != 2 {
		t.Errorf("a stream that is not iterated took a response: %d left", n)
	}
	for range seq {
		break // a consumer that stops early
	}
	play(t.Context(), p)
	if n := p.Left(); n != 0 {
		t.Errorf("%d left", n)
	}
	for _, err := range p.Stream(t.Context(), &dsh.Request{}) {
		if !errors.Is(err, script.ErrExhausted) || err.Error() != "model script exhausted" {
			t.Errorf("error %v", err)
		}
	}
	if reqs := p.Requests(); len(reqs) != 3 || reqs[0].Session != "s" {
		t.Errorf("requests %v", reqs)
	}
}

func TestRequestsAreNotKept(t *testing.T) {
	p := script.Repeat(script.Options{}, script.Text("a", 1))
	play(t.Context(), p)
	if n := len(p.Requests()); n != 0 {
		t.Errorf("%d requests kept", n)
	}
}

// A wait is deaf to an abort; a hang waits for it and may take its time.
func TestWaitAndHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := script.New(script.Options{}, script.Response{
			script.Emit{Chunk: dsh.TextDelta{Text: "a"}},
			script.Wait{Gate: "g"},
			script.Emit{Chunk: dsh.TextDelta{Text: "b"}},
			script.Hang{Gate: "h"},
			script.Emit{Chunk: dsh.TextDelta{Text: "never"}},
		})
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var lines []string
		go func() {
			for chunk, err := range p.Stream(ctx, &dsh.Request{}) {
				mu.Lock()
				lines = append(lines, line(chunk, err))
				mu.Unlock()
			}
		}()
		want := func(when string, n int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(lines) != n {
				t.Errorf("%s: %q", when, lines)
			}
		}
		want("behind the gate", 1)
		p.Gates().Open("g")
		want("hanging", 2)
		cancel()
		want("aborted", 2)
		p.Gates().Open("h")
		want("let go", 3)
		if got := lines[len(lines)-1]; got != "error context canceled" {
			t.Errorf("last %q", got)
		}
	})
}

func TestWaitIgnoresAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := script.New(script.Options{}, append(script.Response{script.Wait{Gate: "g"}}, script.Text("x", 1)...))
		ctx, cancel := context.WithCancel(t.Context())
		var done atomic.Bool
		go func() { play(ctx, p); done.Store(true) }()
		cancel()
		synctest.Wait()
		if done.Load() {
			t.Error("the wait ended with the context")
		}
		p.Gates().OpenAll()
		synctest.Wait()
		if !done.Load() {
			t.Error("the gate did not open")
		}
	})
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := append(script.Response{script.Delay{For: time.Hour}}, script.Text("x", 1)...)
		p := script.Repeat(script.Options{}, slow)
		start := time.Now()
		play(t.Context(), p)
		if d := time.Since(start); d != time.Hour {
			t.Errorf("took %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got := play(ctx, p); !slices.Equal(got, []string{"error context deadline exceeded"}) {
			t.Errorf("aborted: %q", got)
		}
	})
}

func TestDoAndFail(t *testing.T) {
	type key struct{}
	ran := false
	p := script.New(script.Options{}, script.Response{
		script.Do{Func: func(ctx context.Context) { ran = ctx.Value(key{}) == "value" }},
		script.Fail{Err: &dsh.Failure{Code: dsh.CodeTransport, Message: "socket"}},
	})
	ctx := context.WithValue(t.Context(), key{}, "value")
	for _, err := range p.Stream(ctx, &dsh.Request{}) {
		if !errors.Is(err, dsh.ErrTransport) {
			t.Errorf("error %v", err)
		}
	}
	if !ran {
		t.Error("the function did not run with the stream's context")
	}
}

func TestFunc(t *testing.T) {
	p := script.Func(script.Options{}, func(req *dsh.Request) script.Response {
		return script.Text(string(req.Session), 1)
	})
	for chunk, err := range p.Stream(t.Context(), &dsh.Request{Session: "s1"}) {
		if c, ok := chunk.(dsh.TextDelta); ok && c.Text != "s1" || err != nil {
			t.Errorf("%v %v", chunk, err)
		}
	}
}

func TestModels(t *testing.T) {
	p := script.New(script.Options{Models: map[string]llm.Model{"m": {ContextWindow: 100}}})
	if p.Model("m").ContextWindow != 100 || p.Model("other") != (llm.Model{}) {
		t.Error("wrong metadata")
	}
}

func TestGates(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var g script.Gates
	if g.Wait(ended, "a") {
		t.Error("a closed gate opened")
	}
	g.Open("a", "a")
	g.Open("a")
	if !g.Wait(ended, "a") {
		t.Error("an open gate lost to an ended context")
	}
	g.OpenAll()
	if !g.Wait(ended, "b") {
		t.Error("a gate named later is closed")
	}
	g.Open("b", "c")
}

// Many streams at once share the script; each response goes to one of them.
func TestConcurrent(t *testing.T) {
	const n = 64
	responses := make([]script.Response, n)
	for i := range responses {
		responses[i] = append(script.Response{script.Wait{Gate: "go"}}, script.Text(fmt.Sprint(i), 1)...)
	}
	p := script.New(script.Options{Record: true}, responses...)
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := make(map[string]bool)
	for range n {
		wg.Go(func() {
			text := play(t.Context(), p)[1]
			mu.Lock()
			seen[text] = true
			mu.Unlock()
		})
	}
	p.Gates().Open("go")
	wg.Wait()
	if len(seen) != n || p.Left() != 0 || len(p.Requests()) != n {
		t.Errorf("%d different answers, %d left, %d requests", len(seen), p.Left(), len(p.Requests()))
	}
}

// Chunks cost no allocation, however many there are.
func TestChunksDoNotAllocate(t *testing.T) {
	allocs := func(pieces int) float64 {
		p := script.Repeat(script.Options{}, script.Text(strings.Repeat("x", pieces), pieces))
		req := &dsh.Request{}
		return testing.AllocsPerRun(20, func() {
			for range p.Stream(t.Context(), req) {
			}
		})
	}
	if few, many := allocs(2), allocs(2000); many > few {
		t.Errorf("%v allocations for 2 chunks, %v for 2000", few, many)
	}
}
