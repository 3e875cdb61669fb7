package jsonl

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// drawStream draws events of which many are deltas that could share a row.
func drawStream(t *rapid.T) []dsh.Event {
	var events []dsh.Event
	var seq dsh.Seq
	time := rapid.Int64Range(-1<<52, 1<<52).Draw(t, "time")
	names := []*string{nil, new(string), new(string)}
	*names[2] = "name"
	for range rapid.IntRange(1, 30).Draw(t, "events") {
		var chunk dsh.Chunk
		index, text := rapid.IntRange(0, 1).Draw(t, "index"), rapid.StringN(0, 3, -1).Draw(t, "text")
		switch rapid.IntRange(0, 7).Draw(t, "chunk") {
		case 0, 1, 2:
			chunk = dsh.TextDelta{Index: index, Text: text}
		case 3:
			chunk = dsh.ReasoningDelta{Index: index, Text: text}
		case 4, 5:
			chunk = dsh.ToolCallDelta{Index: index, ID: "c", Name: rapid.SampledFrom(names).Draw(t, "name"), ArgumentsDelta: text}
		case 6:
			chunk = dsh.BlockStart{Index: index, BlockType: text}
		case 7:
			chunk = dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}}
		}
		for range rapid.IntRange(1, 5).Draw(t, "times") {
			ev := dsh.Event{Seq: seq, Time: time, Data: dsh.AssistantChunk{Turn: 1, Step: rapid.IntRange(1, 9).Draw(t, "step") / 9, Chunk: chunk}}
			ev.Ignorable = rapid.IntRange(0, 20).Draw(t, "ignorable") == 20
			events = append(events, ev)
			seq++
		}
		time += rapid.Int64Range(-3, 3).Draw(t, "later")
	}
	return events
}

// gathered packs events as the runtime does.
func gathered(events []dsh.Event) []dsh.Event {
	var g gatherer
	for _, ev := range events {
		g.add(ev)
	}
	return g.all()
}

// However a stream is packed, cut into batches and written, its events come
// back; no run that could be a row is left as lines.
func TestPackProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawStream(t)
		var data []byte
		for rest := events; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "batch")
			batch := rest[:n]
			if rapid.Bool().Draw(t, "packed") {
				batch = gathered(batch)
			}
			lines := appendLines(nil, batch)
			if again := appendLines(nil, rest[:n]); !bytes.Equal(lines, again) {
				t.Fatalf("packed\n%snot\n%s", lines, again)
			}
			data, rest = append(data, lines...), rest[n:]
		}
		d := decoder{}
		var got gatherer
		for rest := data; len(rest) > 0; {
			var line []byte
			line, rest = cutLine(rest)
			if err := d.line(line, got.add); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
		}
		if g, w := jsonOf(got.all()), jsonOf(events); !slices.Equal(g, w) {
			t.Fatalf("\n got %s\nwant %s", g, w)
		}
		from := dsh.Seq(rapid.IntRange(0, len(events)).Draw(t, "from"))
		if g, w := jsonOf(suffix(got.all(), from)), jsonOf(events[from:]); !slices.Equal(g, w) {
			t.Fatalf("from %d\n got %s\nwant %s", from, g, w)
		}
	})
}

func TestRowRefusals(t *testing.T) {
	const good = `{"type":"tool-call-chunks","seq0":13,"time0":26,"data":{"turn":1,"step":1,"index":1,"dt":[7,-7],"id":"c","name":"n","args":["a","","b"]}}`
	if _, ok, err := decodeRow([]byte(good)); !ok || err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"seq0":13`, `"seq0":-1`}, {`"seq0":13`, `"seq0":-0`}, {`"seq0":13`, `"seq0":"13"`}, {`"seq0":13`, `"seq0":9007199254740990`},
		{`"seq0":13`, `"seq":13`}, {`"seq0":13`, `"seq0":13,"x":1`}, {`"seq0":13,`, ``}, {`"seq0":13`, `"seq0":1.5`}, {`"seq0":13`, `"Seq0":13`},
		{`"time0":26`, `"time0":null`}, {`"time0":26`, `"time0":9007199254740990`}, {`"time0":26`, `"time0":1e300`},
		{`"turn":1`, `"turn":"1"`}, {`"turn":1,`, ``}, {`"index":1`, `"index":[]`}, {`"turn":1`, `"turn":1,"extra":1`},
		{`[7,-7]`, `[7]`}, {`[7,-7]`, `[7,-7,1]`}, {`[7,-7]`, `[7,null]`}, {`[7,-7]`, `null`}, {`[7,-7]`, `[7,0.5]`}, {`[7,-7]`, `{}`},
		{`"id":"c"`, `"id":1`}, {`"id":"c",`, ``}, {`"name":"n"`, `"name":null`}, {`"args"`, `"texts"`},
		{`["a","","b"]`, `[]`}, {`["a","","b"]`, `["a",null,"b"]`}, {`["a","","b"]`, `"abc"`}, {`"data":{`, `"data":[{`},
		{`tool-call-chunks`, `text-chunks`},
	} {
		line := strings.Replace(good, change[0], change[1], 1)
		if strings.Contains(line, `"data":[{`) {
			line = strings.TrimSuffix(line, "}}") + "}]}"
		}
		d := decoder{}
		if err := d.line([]byte(line), func(dsh.Event) { t.Errorf("%s gives events", line) }); err == nil {
			t.Errorf("%s is accepted", line)
		}
	}
	for _, odd := range []string{ // as other writers may put it
		strings.Replace(good, `"seq0":13`, ` "seq0" : 1.3e1`, 1),
		`{"data":{"args":["a"],"id":"","index":1,"step":1,"turn":1,"dt":[]},"time0":-5,"seq0":0,"type":"tool-call-chunks"}`,
	} {
		d, n := decoder{}, 0
		if err := d.line([]byte(odd), func(dsh.Event) { n++ }); err != nil || n == 0 {
			t.Errorf("%s: %v", odd, err)
		}
	}
}

// A line is read and written so that reading and writing it again changes
// nothing.
func FuzzLine(f *testing.F) {
	for _, line := range bytes.Split(sample(f, sampleA), []byte{'\n'}) {
		f.Add(line)
	}
	f.Add([]byte(`{"type":"tool-call-chunks","seq0":0,"time0":-1,"data":{"turn":1,"step":1,"index":1,"dt":[],"id":"","args":[""]}}`))
	f.Add([]byte(`{"type":"tool/result","seq":1,"time":1,"data":{"turn":1,"step":1,"callId":"c","content":[],"isError":false},"surfaceOp":{"op":"replace","start":0,"end":0}}`))
	f.Add([]byte(`{"type":"steering/message","seq":1,"time":1,"data":{"turn":1,"content":[],"source":{"kind":"user"}}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		read := func(lines []byte) (events []dsh.Event, err error) {
			d := decoder{id: "s"}
			for len(lines) > 0 {
				var line []byte
				line, lines = cutLine(lines)
				if err := d.line(line, func(ev dsh.Event) { events = append(events, ev) }); err != nil {
					return nil, err
				}
			}
			return events, nil
		}
		events, err := read(bytes.ReplaceAll(line, []byte{'\n'}, []byte{' '}))
		if err != nil || len(events) == 0 {
			return
		}
		once := appendLines(nil, events)
		for _, l := range bytes.Split(bytes.TrimSuffix(once, []byte{'\n'}), []byte{'\n'}) {
			if !json.Valid(l) {
				t.Fatalf("%q is written as %q", line, once)
			}
		}
		again, err := read(once)
		if err != nil {
			t.Fatalf("%q is written as %q: %v", line, once, err)
		}
		if twice := appendLines(nil, again); !bytes.Equal(once, twice) {
			t.Fatalf("%q is written as\n     %q\nthen %q", line, once, twice)
		}
	})
}

// No file makes the loader panic or give events that are not numbered.
func FuzzLoad(f *testing.F) {
	// The seeds are short: long ones keep the fuzzer busy making them shorter.
	const small = `{"type":"session","version":0,"id":"s","createdAt":1,"delegationDepth":0}` + "\n" +
		`{"type":"text-chunks","seq0":0,"time0":1,"data":{"turn":1,"step":1,"index":0,"dt":[],"texts":["a"]}}` + "\n" +
		`{"type":"turn/end","seq":1,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}` + "\n"
	for _, log := range []string{small, small + "{", small + `{"type":"turn/start","seq":1,"time":1,"data":{"turn":1}}` + "\n"} {
		f.Add([]byte(log), false)
		f.Add(boxed([]byte(log)), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, compressed bool) {
		var b box = rawBox{}
		if compressed {
			b = zstdBox{}
		}
		_, scan, err := load("f", b, data)
		if err != nil {
			return
		}
		next := dsh.Seq(0)
		for _, ev := range scan.out.all() {
			if ev.Seq != next {
				t.Fatalf("event %d where %d is due", ev.Seq, next)
			}
			next += ev.Span()
		}
		if next != scan.next || scan.endNext > next || scan.end > int64(len(data)) {
			t.Fatalf("%d events, %d in %d bytes", next, scan.endNext, scan.end)
		}
		_, again, err := load("f", b, data[:scan.end])
		if err != nil || again.problem != nil || again.next != scan.endNext {
			t.Fatalf("repaired: %v, %v", err, again)
		}
	})
}
