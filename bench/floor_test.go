package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// The floors are the work in plain Go, as one would write it by hand:
//
//   - call: function calls; nothing is logged and nothing runs beside them.
//   - log+chunks: a goroutine with a channel per agent, a goroutine per tool
//     call, a context per turn, and a log in memory that others may read while
//     it grows: one event per chunk, one append per event. It is what the
//     runtime's promises cost without actors, and what ratios refer to.
//   - jsonl: the same with each event encoded as a line of JSON.
//
// What they leave out is what a runtime is for: hooks, inbox and steering,
// retries, schemas, order and results under aborts, isolation of panics,
// readers with cursors, resuming.
type floor string

const (
	call      floor = "call"
	logChunks floor = "log+chunks"
	jsonl     floor = "jsonl"
)

var floors = []floor{logChunks, call, jsonl}

// record is one event of a floor's log.
type record struct {
	Seq     int          `json:"seq"`
	Time    int64        `json:"time"`
	Type    string       `json:"type"`
	Turn    int          `json:"turn"`
	Step    int          `json:"step"`
	Chunk   dsh.Chunk    `json:"chunk,omitempty"`
	Message *dsh.Message `json:"message,omitempty"`
	Call    dsh.CallID   `json:"call,omitempty"`
}

func onFloor(kind floor, w work) place { return floorPlace{kind, w} }

type floorPlace struct {
	kind floor
	work work
}

func (p floorPlace) close(testing.TB) {}

func (p floorPlace) open(testing.TB) talk {
	a := &floorAgent{
		kind: p.kind, model: p.work.model, tools: map[string]function{p.work.tool.name: p.work.tool},
		header: &dsh.Header{Config: dsh.CallConfig{Provider: "main", Model: "m"}},
	}
	switch p.kind {
	case call:
		return a
	case jsonl:
		a.lines = json.NewEncoder(&a.file)
	}
	a.inbox, a.gone = make(chan question, 16), make(chan struct{})
	go a.serve()
	return a
}

// floorAgent is an agent of a floor; its own goroutine, if it has one, is the
// only one that touches more than inbox and log.
type floorAgent struct {
	kind    floor
	model   llm.Provider
	tools   map[string]function
	header  *dsh.Header
	inbox   chan question
	gone    chan struct{}
	history []*dsh.Message
	text    []byte // of the answer that streams
	turns   int

	mu    sync.Mutex // for readers of the log
	log   []record
	seq   int
	file  bytes.Buffer
	lines *json.Encoder
}

type question struct {
	message *dsh.Message
	reply   chan<- *dsh.Message
}

func (a *floorAgent) turn(tb testing.TB) {
	message := dsh.UserText(prompt)
	var reply *dsh.Message
	if a.kind == call {
		reply = a.answer(message)
	} else {
		c := make(chan *dsh.Message, 1)
		a.inbox <- question{message, c}
		reply = <-c
	}
	if reply == nil || dsh.TextOf(reply.Content) == "" {
		tb.Fatal("no answer")
	}
}

func (a *floorAgent) end(testing.TB) {
	if a.kind != call {
		close(a.inbox)
		<-a.gone
	}
}

func (a *floorAgent) serve() {
	defer close(a.gone)
	for q := range a.inbox {
		q.reply <- a.answer(q.message)
	}
}

// append logs one event.
func (a *floorAgent) append(r record) {
	if a.kind == call {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r.Seq, r.Time, r.Turn = a.seq, time.Now().UnixMilli(), a.turns
	a.seq++
	if a.kind == jsonl {
		_ = a.lines.Encode(r)
		return
	}
	a.log = append(a.log, r)
}

// say logs a message and adds it to the history.
func (a *floorAgent) say(kind string, step int, m *dsh.Message) {
	a.append(record{Type: kind, Step: step, Message: m})
	a.history = append(a.history, m)
}

// answer is one turn.
func (a *floorAgent) answer(m *dsh.Message) *dsh.Message {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a.turns++
	a.append(record{Type: dsh.TypeTurnStart})
	for step := 1; ; step++ {
		a.append(record{Type: dsh.TypeStepStart, Step: step})
		if step == 1 {
			a.say(dsh.TypeUserMessage, step, m)
		}
		reply, err := a.ask(ctx, step)
		if err != nil {
			a.append(record{Type: dsh.TypeTurnEnd})
			return nil
		}
		a.say(dsh.TypeAssistantMessage, step, reply)
		calls := dsh.CallsOf(reply.Content)
		a.run(step, calls)
		a.append(record{Type: dsh.TypeStepEnd, Step: step})
		if len(calls) == 0 {
			a.append(record{Type: dsh.TypeTurnEnd})
			return reply
		}
	}
}

// ask sends the history to the model and folds the answer.
func (a *floorAgent) ask(ctx context.Context, step int) (*dsh.Message, error) {
	request := &dsh.Request{Header: a.header, Messages: a.history[:len(a.history):len(a.history)]}
	reply := &dsh.Message{Role: dsh.RoleAssistant}
	a.text = a.text[:0]
	for chunk, err := range a.model.Stream(ctx, request) {
		if err != nil {
			return nil, err
		}
		a.append(record{Type: dsh.TypeAssistantChunk, Step: step, Chunk: chunk})
		switch c := chunk.(type) {
		case dsh.TextDelta:
			a.text = append(a.text, c.Text...)
		case dsh.BlockEnd:
			if _, ok := c.Block.(dsh.ToolCall); ok {
				reply.Content = append(reply.Content, c.Block)
			}
		}
	}
	if len(a.text) > 0 {
		reply.Content = append(reply.Content, dsh.Text{Text: string(a.text)})
	}
	return reply, nil
}

// run runs the calls side by side and logs their results in model order.
func (a *floorAgent) run(step int, calls []dsh.ToolCall) {
	if len(calls) == 0 {
		return
	}
	results := make([]*dsh.Message, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		a.append(record{Type: dsh.TypeToolStarted, Step: step, Call: c.ID})
		if a.kind == call && len(calls) == 1 {
			results[i] = a.result(c)
			continue
		}
		all.Go(func() { results[i] = a.result(c) })
	}
	all.Wait()
	for _, r := range results {
		a.say(dsh.TypeToolFinished, step, r)
	}
}

func (a *floorAgent) result(c dsh.ToolCall) *dsh.Message {
	text, err := a.tools[c.Name].run(json.RawMessage(c.Arguments))
	if err != nil {
		text = err.Error()
	}
	return &dsh.Message{Role: dsh.RoleUser, Content: []dsh.Block{dsh.ToolResult{
		CallID: c.ID, IsError: err != nil, Content: []dsh.Block{dsh.Text{Text: text}},
	}}}
}

func benchFloors(b *testing.B, run func(b *testing.B, p place), w work) {
	for _, kind := range floors {
		b.Run(string(kind), func(b *testing.B) { run(b, onFloor(kind, w)) })
	}
}

func BenchmarkFloorW1(b *testing.B) { benchFloors(b, benchTurns, textTurn(pieces)) }

func BenchmarkFloorW2(b *testing.B) { benchFloors(b, benchTurns, toolTurn(1, trivial)) }

func BenchmarkFloorW2x10(b *testing.B) { benchFloors(b, benchConversations, toolTurn(1, trivial)) }

func BenchmarkFloorW3(b *testing.B) { benchFloors(b, benchSlowTurns, toolTurn(8, slow)) }

func BenchmarkFloorW4(b *testing.B) {
	for _, kind := range floors {
		b.Run(string(kind), func(b *testing.B) { benchCrowd(b, string(kind)) })
	}
}

func BenchmarkFloorW5(b *testing.B) {
	for _, kind := range floors {
		b.Run(string(kind), func(b *testing.B) { benchIdle(b, string(kind), 10_000) })
	}
}
