package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/replay"
)

// lines writes a log as JSON, a line each.
func lines(events []dsh.Event) []byte {
	var out []byte
	for ev := range dsh.Expand(events) {
		out = append(ev.AppendJSON(out), '\n')
	}
	return out
}

// Whatever events there are in whatever order, a replay comes to its end, its
// sums are right, and the same log gives the same report.
func FuzzRun(f *testing.F) {
	log := lines(sound())
	for seed := range uint64(64) {
		f.Add(log, seed)
	}
	for _, kind := range []string{"null", "{}", `{"content":null}`, `{"turn":1,"step":1,"message":null}`} {
		for _, name := range []string{
			dsh.TypeUserMessage, dsh.TypeAssistantMessage, dsh.TypeToolFinished, dsh.TypeRequestHeader,
			dsh.TypeInboxSpliced, dsh.TypeTurnEnd, dsh.TypeRequestSent, dsh.TypeAssistantChunk,
		} {
			f.Add(fmt.Appendf(nil, `{"type":%q,"seq":0,"time":0,"data":%s,"surfaceOp":"append"}`, name, kind), uint64(0))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		var events []dsh.Event
		for line := range bytes.Lines(data) {
			var ev dsh.Event
			if json.Unmarshal(line, &ev) == nil {
				events = append(events, ev)
			}
		}
		h := dsh.SessionHeader{SeedLength: dsh.Seq(seed % 7)}
		events = shuffled(events, seed)
		report := replay.Run(h, events)
		about := 0
		for _, r := range report.Requests {
			about += r.Findings
			if r.Outcome == "" || r.Outcome == replay.Answered && r.Answer == nil {
				t.Errorf("request %+v", r)
			}
		}
		if about > len(report.Findings) {
			t.Errorf("%d findings about requests of %d", about, len(report.Findings))
		}
		if again := replay.Run(h, events); len(again.Findings) != len(report.Findings) ||
			len(again.Requests) != len(report.Requests) {
			t.Errorf("%d findings, then %d", len(report.Findings), len(again.Findings))
		}
	})
}

// shuffled moves, doubles and drops some events; 0 leaves all as they are.
func shuffled(events []dsh.Event, seed uint64) []dsh.Event {
	rng := rand.New(rand.NewPCG(seed, 0))
	for range seed % 8 {
		if len(events) == 0 {
			return events
		}
		at := rng.IntN(len(events))
		ev := events[at]
		events = slices.Delete(events, at, at+1)
		for range rng.IntN(3) {
			events = slices.Insert(events, rng.IntN(len(events)+1), ev)
		}
	}
	if seed%2 > 0 { // else the numbers are not dense
		for i := range events {
			events[i].Seq = dsh.Seq(i)
		}
	}
	return events
}

// long returns a log of n turns, each of a dozen events, all audited.
func long(turns int) []dsh.Event {
	w := &writer{}
	config := dsh.CallConfig{Provider: "p", Model: "m"}
	for turn := 1; turn <= turns; turn++ {
		w.claimed(turn, user(dsh.MessageID(fmt.Sprint("m", turn)), strings.Repeat("tell me more ", 20)))
		if turn == 1 {
			w.log(
				dsh.RequestHeader{Reason: dsh.HeaderInitial, Header: &dsh.Header{Config: config}},
				dsh.RequestContext{Provider: "p", Model: "m"},
			)
		}
		w.log(dsh.RequestSent{Turn: turn, Step: 1, Through: dsh.Seq(len(w.events) - 1)})
		w.stream(
			turn, 1, false, dsh.TextDelta{Text: "well, "}, dsh.TextDelta{Text: strings.Repeat("so it is ", 30)},
			dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}},
		)
		w.log(dsh.StepEnd{Turn: turn, Step: 1}, dsh.TurnEnd{Turn: turn, Reason: dsh.Ending{Kind: dsh.EndCompleted}})
	}
	return w.events
}

// A replay takes time in proportion to the log, also where every request is
// compared and none is as recorded.
func BenchmarkRun(b *testing.B) {
	for _, turns := range []int{100, 1000, 10_000} {
		events := long(turns)
		b.Run(fmt.Sprintf("events=%d", len(events)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if report := replay.Run(dsh.SessionHeader{}, events); len(report.Requests) != turns {
					b.Fatal(len(report.Requests))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
		})
	}
}

// Requests share their messages: the whole report of a long log is small.
func TestLongLogsAreSmall(t *testing.T) {
	const turns = 1000
	events := long(turns)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	report := replay.Run(dsh.SessionHeader{}, events)
	runtime.ReadMemStats(&after)
	if n := len(report.Requests[turns-1].Messages); n != 2*turns-1 {
		t.Errorf("the last of %d requests has %d messages", turns, n)
	}
	if each := (after.TotalAlloc - before.TotalAlloc) / turns; each > 8<<10 {
		t.Errorf("%d bytes for each of %d requests: they do not share their histories", each, turns)
	}
}
