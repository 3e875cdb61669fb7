package jsonl

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// gatherer collects events in the packed form of the runtime: chunks of one
// attempt with one time are one event.
//
// Invariant: run is what is not in events yet, and run's event is open.
type gatherer struct {
	events []dsh.Event
	open   dsh.Event
	run    []dsh.Chunk
	turn   int
	step   int
}

// add takes the next event.
func (g *gatherer) add(ev dsh.Event) {
	d, ok := ev.Data.(dsh.AssistantChunk)
	if !ok || ev.Sources != nil || ev.Surface.Kind() != dsh.SurfaceNone || ev.Ignorable {
		g.flush()
		g.events = append(g.events, ev)
		return
	}
	if n := len(g.run); n > 0 {
		_, finished := g.run[n-1].(dsh.Finish)
		if finished || ev.Time != g.open.Time || d.Turn != g.turn || d.Step != g.step {
			g.flush()
		}
	}
	if len(g.run) == 0 {
		g.open, g.turn, g.step = ev, d.Turn, d.Step
	}
	g.run = append(g.run, d.Chunk)
}

func (g *gatherer) flush() {
	switch len(g.run) {
	case 0:
		return
	case 1:
		g.run = g.run[:0]
	default:
		g.open.Data = dsh.ChunkRun{Turn: g.turn, Step: g.step, Chunks: slices.Clip(g.run)}
		g.run = nil
	}
	g.events = append(g.events, g.open)
}

// all returns what was collected.
func (g *gatherer) all() []dsh.Event {
	g.flush()
	return g.events
}

// suffix returns the events from seq on; a run that begins earlier is cut.
func suffix(events []dsh.Event, seq dsh.Seq) []dsh.Event {
	i, _ := slices.BinarySearchFunc(events, seq, func(ev dsh.Event, seq dsh.Seq) int {
		return int(ev.Last() - seq)
	})
	rest := slices.Clone(events[i:])
	if len(rest) > 0 && rest[0].Seq < seq {
		run := rest[0].Data.(dsh.ChunkRun) // nothing else spans more than one
		run.Chunks = slices.Clip(run.Chunks[seq-rest[0].Seq:])
		rest[0].Seq, rest[0].Data = seq, run
	}
	return rest
}

// decoder reads the lines of one log.
type decoder struct {
	id dsh.SessionID
	// inherited is the IDs of results from before messages had one, which
	// replace another that has. Almost every log has none.
	inherited map[dsh.Seq]dsh.MessageID
}

// line reads what one line holds and hands it to emit, event by event. Nothing
// is handed over if the line is not right as a whole.
func (d *decoder) line(line []byte, emit func(dsh.Event)) error {
	if isRow(line) {
		return d.row(line, emit)
	}
	var ev dsh.Event
	err := ev.UnmarshalJSON(line)
	if err == nil && !needsUpgrade(&ev) {
		emit(ev)
		return nil
	}
	if err != nil && !json.Valid(line) {
		return err
	}
	if rerr := d.row(line, emit); !errors.Is(rerr, errNoRow) {
		return rerr
	}
	upgraded, old, uerr := d.upgrade(line)
	switch {
	case !old && err != nil:
		return err
	case !old:
		emit(ev)
		return nil
	case uerr != nil:
		return uerr
	}
	emit(upgraded)
	return nil
}

var errNoRow = errors.New("not a chunk row")

func (d *decoder) row(line []byte, emit func(dsh.Event)) error {
	r, ok, err := decodeRow(line)
	if !ok {
		return errNoRow
	}
	if err != nil {
		return err
	}
	for k, text := range r.texts {
		emit(dsh.Event{Seq: r.first + dsh.Seq(k), Time: r.times[k], Data: chunkOf(&r.sharedPart, text)})
	}
	return nil
}

// endsTurn reports whether a line is the end of a turn, right or not. Its
// number and what it holds do not matter: something was committed there.
func endsTurn(line []byte) bool {
	var m members
	if json.Unmarshal(line, &m) != nil {
		return false
	}
	kind, err := text(m["type"])
	return err == nil && kind == dsh.TypeTurnEnd
}
