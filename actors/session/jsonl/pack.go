package jsonl

import (
	"strconv"
	"sync"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Chunk rows: a run of deltas that differ in nothing but time and text is one
// line. Rows are a form of storage only and never reach a reader.

// The kinds of rows, by their tag.
const (
	textRow      = "text-chunks"
	reasoningRow = "reasoning-chunks"
	toolCallRow  = "tool-call-chunks"
)

// rowFrom is how many deltas make a row; fewer stay lines of their own.
const rowFrom = 3

// maxSafe is the largest integer that survives in every JSON reader.
const maxSafe = 1<<53 - 1

// sharedPart is what the deltas of a row have in common.
type sharedPart struct {
	kind              string
	turn, step, index int
	id                dsh.CallID
	name              string
	named             bool
}

// delta is one member of a row.
type delta struct {
	time int64
	text string
}

// packer turns a batch of events into lines.
//
// Invariant: run is the deltas of shared, numbered on from first.
type packer struct {
	dst    []byte
	shared sharedPart
	first  dsh.Seq
	run    []delta
}

// appendLines appends a batch as lines, each with its line break.
func appendLines(dst []byte, events []dsh.Event) []byte {
	p := packer{dst: dst}
	p.events(events)
	return p.dst
}

// packers keeps what lines were made in, for the next batch.
var packers = sync.Pool{New: func() any { return &packer{} }}

// maxKept is the largest buffer that is kept.
const maxKept = 1 << 20

// pack returns the unit of a batch.
func pack(b box, events []dsh.Event) []byte {
	p := packers.Get().(*packer)
	p.events(events)
	unit := b.wrap(nil, p.dst)
	if cap(p.dst) <= maxKept {
		p.dst = p.dst[:0]
		p.shared = sharedPart{}
		clear(p.run[:cap(p.run)]) // no text stays alive
		packers.Put(p)
	}
	return unit
}

func (p *packer) events(events []dsh.Event) {
	for i := range events {
		p.event(&events[i])
	}
	p.flush()
}

func (p *packer) event(ev *dsh.Event) {
	if ev.Sources == nil && ev.Surface.Kind() == dsh.SurfaceNone && !ev.Ignorable {
		switch d := ev.Data.(type) {
		case dsh.ChunkRun:
			for k, c := range d.Chunks {
				p.chunk(ev.Seq+dsh.Seq(k), ev.Time, dsh.AssistantChunk{Turn: d.Turn, Step: d.Step, Chunk: c})
			}
			return
		case dsh.AssistantChunk:
			p.chunk(ev.Seq, ev.Time, d)
			return
		default: // a line
		}
	}
	p.flush()
	if ev.Span() == 1 {
		if _, run := ev.Data.(dsh.ChunkRun); !run {
			p.line(ev)
			return
		}
	}
	for single := range dsh.Expand([]dsh.Event{*ev}) {
		p.line(&single)
	}
}

func (p *packer) chunk(seq dsh.Seq, time int64, d dsh.AssistantChunk) {
	shared, text, ok := deltaOf(d)
	if !ok || time < -maxSafe || time > maxSafe {
		p.flush()
		p.line(&dsh.Event{Seq: seq, Time: time, Data: d})
		return
	}
	if n := len(p.run); n > 0 {
		gap := time - p.run[n-1].time
		if shared != p.shared || seq != p.first+dsh.Seq(n) || gap < -maxSafe || gap > maxSafe {
			p.flush()
		}
	}
	if len(p.run) == 0 {
		p.shared, p.first = shared, seq
	}
	p.run = append(p.run, delta{time, text})
}

// deltaOf returns d as a member of a row; ok is false for what never packs.
func deltaOf(d dsh.AssistantChunk) (shared sharedPart, text string, ok bool) {
	shared.turn, shared.step = d.Turn, d.Step
	switch c := d.Chunk.(type) {
	case dsh.TextDelta:
		shared.kind, shared.index = textRow, c.Index
		return shared, c.Text, true
	case dsh.ReasoningDelta:
		shared.kind, shared.index = reasoningRow, c.Index
		return shared, c.Text, true
	case dsh.ToolCallDelta:
		shared.kind, shared.index, shared.id = toolCallRow, c.Index, c.ID
		if c.Name != nil {
			shared.name, shared.named = *c.Name, true
		}
		return shared, c.ArgumentsDelta, true
	default:
		return sharedPart{}, "", false
	}
}

// chunkOf reverses deltaOf.
func chunkOf(shared *sharedPart, text string) dsh.AssistantChunk {
	d := dsh.AssistantChunk{Turn: shared.turn, Step: shared.step}
	switch shared.kind {
	case textRow:
		d.Chunk = dsh.TextDelta{Index: shared.index, Text: text}
	case reasoningRow:
		d.Chunk = dsh.ReasoningDelta{Index: shared.index, Text: text}
	case toolCallRow:
		c := dsh.ToolCallDelta{Index: shared.index, ID: shared.id, ArgumentsDelta: text}
		if shared.named {
			c.Name = &shared.name
		}
		d.Chunk = c
	}
	return d
}

func (p *packer) line(ev *dsh.Event) {
	p.dst = append(ev.AppendJSON(p.dst), '\n')
}

// flush writes the run that was open.
func (p *packer) flush() {
	if len(p.run) >= rowFrom {
		p.row()
	} else {
		for i, d := range p.run {
			p.line(&dsh.Event{Seq: p.first + dsh.Seq(i), Time: d.time, Data: chunkOf(&p.shared, d.text)})
		}
	}
	p.run = p.run[:0]
}

func (p *packer) row() {
	dst := append(append(p.dst, `{"type":"`...), p.shared.kind...)
	dst = appendInt(dst, `","seq0":`, int64(p.first))
	dst = appendInt(dst, `,"time0":`, p.run[0].time)
	dst = appendInt(dst, `,"data":{"turn":`, int64(p.shared.turn))
	dst = appendInt(dst, `,"step":`, int64(p.shared.step))
	dst = appendInt(dst, `,"index":`, int64(p.shared.index))
	dst = append(dst, `,"dt":[`...)
	for i := 1; i < len(p.run); i++ {
		if i > 1 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, p.run[i].time-p.run[i-1].time, 10)
	}
	dst = append(dst, ']')
	members := `,"texts":[`
	if p.shared.kind == toolCallRow {
		members = `,"args":[`
		dst = dsh.AppendString(append(dst, `,"id":`...), p.shared.id)
		if p.shared.named {
			dst = dsh.AppendString(append(dst, `,"name":`...), p.shared.name)
		}
	}
	dst = append(dst, members...)
	for i, d := range p.run {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = dsh.AppendString(dst, d.text)
	}
	p.dst = append(dst, "]}}\n"...)
}

func appendInt(dst []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(dst, key...), n, 10)
}
