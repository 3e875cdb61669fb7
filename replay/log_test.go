package replay_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/replay"
)

// writer writes a log as a sound and audited agent would.
type writer struct {
	events  []dsh.Event
	history dsh.History
	header  dsh.HeaderFold
}

func (w *writer) add(ev dsh.Event) dsh.Seq {
	ev.Seq, ev.Ignorable = dsh.Seq(len(w.events)), dsh.Ours(ev.Type())
	if err := w.history.Apply(&ev); err != nil {
		panic(err)
	}
	w.header.Apply(&ev)
	w.events = append(w.events, ev)
	return ev.Seq
}

func (w *writer) log(facts ...dsh.Fact) {
	for _, f := range facts {
		ev := dsh.Event{Data: f}
		if dsh.OnSurface(f.Type()) {
			ev.Surface = dsh.Append
		}
		w.add(ev)
	}
}

// sent logs what the request of the history so far is.
func (w *writer) sent(turn, step, attempt int) {
	req := dsh.Request{Header: w.header.Header, Messages: w.history.Messages()}
	w.log(dsh.RequestSent{
		Turn: turn, Step: step, Attempt: attempt, Through: dsh.Seq(len(w.events) - 1),
		Messages: len(req.Messages), Digest: req.Digest(),
	})
}

// stream logs chunks and, unless the attempt failed, the answer that they make.
func (w *writer) stream(turn, step int, interrupted bool, chunks ...dsh.Chunk) {
	var asm dsh.Assembler
	var cited *dsh.Sources
	for _, c := range chunks {
		asm.Add(c)
		seq := w.add(dsh.Event{Data: dsh.AssistantChunk{Turn: turn, Step: step, Chunk: c}})
		cited = cited.With(seq, seq)
	}
	content := asm.Blocks()
	if interrupted {
		content, _ = asm.Prefix()
	} else if asm.Finish().Reason.Failure != nil {
		return
	}
	config := w.header.Header.Config
	w.add(dsh.Event{Surface: dsh.Append, Sources: cited, Data: dsh.AssistantMessage{
		Turn: turn, Step: step, Usage: asm.Usage(), Interrupted: interrupted,
		Message: &dsh.Message{
			ID: "answer", Role: dsh.RoleAssistant, Content: content,
			Source: dsh.ModelSource{Provider: config.Provider, Model: config.Model, ReplayState: asm.ReplayState()},
		},
	}})
}

func user(id dsh.MessageID, text string) *dsh.Message {
	m := dsh.UserText(text)
	m.ID = id
	return m
}

func result(id dsh.CallID, text string) *dsh.Message {
	return &dsh.Message{
		ID: dsh.MessageID("result-" + id), Role: dsh.RoleUser, Source: dsh.ToolSource{CallID: id},
		Content: []dsh.Block{dsh.ToolResult{CallID: id, Content: []dsh.Block{dsh.Text{Text: text}}}},
	}
}

// claimed logs a message that is queued and begins a turn and its first step.
func (w *writer) claimed(turn int, m *dsh.Message) {
	w.log(
		dsh.InboxSpliced{Target: dsh.NextTurn, Inserted: []*dsh.Message{m}},
		dsh.TurnStart{Turn: turn},
		dsh.InboxSpliced{Target: dsh.NextTurn, Removed: 1, Inserted: []*dsh.Message{}},
		dsh.StepStart{Turn: turn, Step: 1},
		dsh.UserMessage{Message: m},
	)
}

// Events of the sound log that the tests change.
const (
	atInsert     = 0
	atTurnStart  = 1
	atClaim      = 2
	atStep       = 3
	atUser       = 4
	atParameters = 5
	atHeader     = 6
	atContext    = 7
	atSent       = 8
	atFailed     = 9 // two chunks
	atRetry      = 11
	atStarted    = 12
	atAgain      = 13
	atChunks     = 14 // six
	atFinish     = 19
	atAnswer     = 20
	atCall       = 21 // two
	atResult     = 23 // two
	atStepEnd    = 25
	atStep2      = 26
	atSent2      = 27
	atAnswer2    = 30
	atStepEnd2   = 31
	atTurnEnd    = 32
	atSummary    = 33
	atSeedEnd    = 34
	atTurn2      = 36
	atResume     = 40
	atPrefix     = 42 // one chunk
	atCut        = 43
	atAborted    = 45
)

// sound returns a log with a failed attempt, tools, a compaction and a turn
// that was cancelled after a resume.
func sound() []dsh.Event {
	w := &writer{}
	seed := int64(7)
	failure := &dsh.Failure{Code: dsh.CodeServer, Message: "busy"}
	config := dsh.CallConfig{Provider: "p", Model: "m"}
	calls := []dsh.ToolCall{
		{ID: "c1", Name: "count", Arguments: `{"n":1}`}, {ID: "c2", Name: "count", Arguments: `{"n":2}`},
	}
	w.claimed(1, user("m1", "hello"))
	w.log(
		dsh.RequestParameters{Parameters: dsh.Parameters{Seed: &seed}},
		dsh.RequestHeader{Reason: dsh.HeaderInitial, Header: &dsh.Header{
			Config: config, System: "Be brief.", Tools: []dsh.ToolSchema{{Name: "count", Parameters: json.RawMessage(`{}`)}},
		}},
		dsh.RequestContext{Provider: "p", Model: "m", ContextWindow: 1000},
	)
	w.sent(1, 1, 0)
	w.stream(1, 1, false, dsh.TextDelta{Text: "I"}, dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishError, Failure: failure}})
	w.log(
		dsh.RetryScheduled{RetryID: "r", Turn: 1, Step: 1, Provider: "p", Mode: "normal", Retry: 1, Failure: failure},
		dsh.RetryStarted{RetryID: "r", Turn: 1, Step: 1, Retry: 1},
	)
	w.sent(1, 1, 1)
	w.stream(
		1, 1, false, dsh.ReasoningDelta{Text: "count, "}, dsh.ReasoningDelta{Text: "twice"},
		dsh.BlockEnd{Index: 1, Block: calls[0]}, dsh.BlockEnd{Index: 2, Block: calls[1]},
		dsh.Usage{InputTokens: 10, OutputTokens: 5},
		dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishToolCalls}, ReplayState: json.RawMessage(`{"id":"x"}`)},
	)
	for _, c := range calls {
		w.log(dsh.ToolStarted{Turn: 1, Step: 1, CallID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	for i, c := range calls {
		w.add(dsh.Event{Surface: dsh.Append, Sources: dsh.Cite(dsh.Seq(atCall + i)), Data: dsh.ToolFinished{
			Turn: 1, Step: 1, Message: result(c.ID, "3"),
		}})
	}
	w.log(dsh.StepEnd{Turn: 1, Step: 1}, dsh.StepStart{Turn: 1, Step: 2})
	w.sent(1, 2, 0)
	w.stream(1, 2, false, dsh.TextDelta{Text: "done"}, dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}})
	w.log(dsh.StepEnd{Turn: 1, Step: 2}, dsh.TurnEnd{Turn: 1, Reason: dsh.Ending{Kind: dsh.EndCompleted}})
	surface := w.history.Surface()
	w.add(dsh.Event{
		Data: dsh.UserMessage{Message: user("summary", "we counted")}, Sources: dsh.Cite(surface...),
		Surface: dsh.Replace(surface[0], surface[len(surface)-1]),
	})
	w.log(dsh.EndSeed{})
	w.claimed(2, user("m2", "more"))
	w.log(dsh.RequestHeader{Reason: dsh.HeaderResume, Header: &dsh.Header{Config: config}})
	w.sent(2, 1, 0)
	w.stream(2, 1, true, dsh.TextDelta{Text: "Hal"})
	w.log(
		dsh.StepEnd{Turn: 2, Step: 1},
		dsh.TurnEnd{Turn: 2, Reason: dsh.Ending{Kind: dsh.EndAborted, Cause: dsh.Cause{Kind: dsh.CauseUser}}},
	)
	return w.events
}

// without returns the log without one event, the rest renumbered.
func without(events []dsh.Event, gone dsh.Seq) []dsh.Event {
	return renumber(slices.Delete(slices.Clone(events), int(gone), int(gone)+1), func(seq dsh.Seq) dsh.Seq {
		if seq > gone {
			return seq - 1
		}
		return seq
	})
}

// with returns the log with one event more, the rest renumbered.
func with(events []dsh.Event, at dsh.Seq, ev dsh.Event) []dsh.Event {
	out := renumber(slices.Clone(events), func(seq dsh.Seq) dsh.Seq {
		if seq >= at {
			return seq + 1
		}
		return seq
	})
	ev.Seq = at
	return slices.Insert(out, int(at), ev)
}

func renumber(events []dsh.Event, number func(dsh.Seq) dsh.Seq) []dsh.Event {
	for i := range events {
		ev := &events[i]
		ev.Seq = number(ev.Seq)
		if ev.Sources != nil {
			sources := dsh.Cite()
			for seq := range ev.Sources.All() {
				sources = sources.With(number(seq), number(seq))
			}
			ev.Sources = sources
		}
		if ev.Surface.Kind() == dsh.SurfaceReplace {
			start, end := ev.Surface.Range()
			ev.Surface = dsh.Replace(number(start), number(end))
		}
		if d, ok := ev.Data.(dsh.RequestSent); ok {
			d.Through = number(d.Through)
			ev.Data = d
		}
	}
	return events
}

func TestSoundLog(t *testing.T) {
	report := replay.Run(dsh.SessionHeader{}, sound())
	if len(report.Findings) > 0 {
		t.Fatal(report.Findings)
	}
	type row struct {
		pos      string
		through  dsh.Seq
		messages int
		outcome  replay.Outcome
		answer   dsh.Seq
	}
	var got []row
	for _, r := range report.Requests {
		got = append(got, row{r.Pos.String(), r.Through, len(r.Messages), r.Outcome, r.AnswerSeq})
		if r.Digest != replay.Same || (r.Failure != nil) != (r.Outcome == replay.Failed) || (r.Answer != nil) != (r.AnswerSeq > 0) {
			t.Errorf("request %+v", r)
		}
	}
	want := []row{
		{"1.1.0", atSent - 1, 1, replay.Failed, 0},
		{"1.1.1", atAgain - 1, 1, replay.Answered, atAnswer},
		{"1.2.0", atSent2 - 1, 4, replay.Answered, atAnswer2},
		{"2.1.0", atResume, 2, replay.Interrupted, atCut},
	}
	if !slices.Equal(got, want) {
		t.Errorf("requests %+v, want %+v", got, want)
	}
	if u := report.Requests[1].Usage; u == nil || u.InputTokens != 10 {
		t.Errorf("usage %+v", u)
	}
	if asLogged, byDigest := report.Matching(); asLogged != 4 || byDigest != 4 || report.Open || report.Events != atAborted+1 {
		t.Errorf("%d as logged, %d by digest; %+v", asLogged, byDigest, report)
	}
}

// A log that ends anywhere has no finding, and says what is open.
func TestLogThatGoesOn(t *testing.T) {
	events := sound()
	for n := range events {
		report := replay.Run(dsh.SessionHeader{}, events[:n])
		if len(report.Findings) > 0 {
			t.Errorf("the first %d events: %v", n, report.Findings)
		}
		if open := n > atTurnStart && n <= atTurnEnd || n > atTurn2; open != report.Open {
			t.Errorf("the first %d events are open: %t", n, report.Open)
		}
		for i, r := range report.Requests {
			if pending := i == len(report.Requests)-1 && r.AnswerSeq == 0 && r.Failure == nil; pending != (r.Outcome == replay.Pending) {
				t.Errorf("the first %d events: request %v is %s", n, r.Pos, r.Outcome)
			}
		}
	}
}

// A log that is read in parts is the same log.
func TestParts(t *testing.T) {
	events := sound()
	events[atAnswer].Sources = nil // one finding
	whole := replay.Run(dsh.SessionHeader{}, events)
	r := replay.New(dsh.SessionHeader{})
	for i := range events {
		if r.Next() != dsh.Seq(i) {
			t.Fatalf("event %d is next, want %d", r.Next(), i)
		}
		r.Add(events[i : i+1])
	}
	if parts := r.Report(); !reflect.DeepEqual(parts, whole) {
		t.Errorf("in parts %+v, whole %+v", parts, whole)
	}
	if got, want := whole.Findings[0].String(), "event 20, 1.1.1: citation: an answer that cites nothing, not even an empty list"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	outside := replay.Finding{Kind: replay.KindInbox, Seq: 3, Text: "so it is"}
	if got, want := outside.String(), "event 3: inbox: so it is"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Attempts are known by whatever is left of them.
func TestTraces(t *testing.T) {
	config := dsh.CallConfig{Provider: "p", Model: "m"}
	failure := &dsh.Failure{Code: dsh.CodeTimeout, Message: "silence"}
	begun := func() *writer {
		w := &writer{}
		w.claimed(1, user("m1", "hello"))
		w.log(
			dsh.RequestHeader{Reason: dsh.HeaderInitial, Header: &dsh.Header{Config: config}},
			dsh.RequestContext{Provider: "p", Model: "m"},
		)
		return w
	}
	empty := dsh.AssistantMessage{Turn: 1, Step: 1, Message: &dsh.Message{
		ID: "a", Role: dsh.RoleAssistant, Content: []dsh.Block{}, Source: dsh.ModelSource{Provider: "p", Model: "m"},
	}}
	retry := dsh.RetryScheduled{Turn: 1, Step: 1, Failure: failure}
	end := []dsh.Fact{dsh.StepEnd{Turn: 1, Step: 1}, dsh.TurnEnd{Turn: 1, Reason: dsh.Ending{Kind: dsh.EndCompleted}}}
	for _, tc := range []struct {
		name  string
		write func(*writer)
		want  []replay.Outcome
	}{
		{"none", func(*writer) {}, nil},
		{"a retry", func(w *writer) { w.log(retry, dsh.RetryStarted{Turn: 1, Step: 1}) }, []replay.Outcome{replay.Failed}},
		{"an empty answer", func(w *writer) {
			w.add(dsh.Event{Data: empty, Surface: dsh.Append, Sources: dsh.Cite()})
		}, []replay.Outcome{replay.Answered}},
		{"an empty answer behind one that was given up", func(w *writer) {
			w.log(dsh.AssistantChunk{Turn: 1, Step: 1, Chunk: dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}}})
			w.add(dsh.Event{Data: empty, Surface: dsh.Append, Sources: dsh.Cite()})
		}, []replay.Outcome{replay.Dropped, replay.Answered}},
		{"chunks without an end", func(w *writer) {
			w.log(dsh.AssistantChunk{Turn: 1, Step: 1, Chunk: dsh.TextDelta{Text: " "}})
		}, []replay.Outcome{replay.Dropped}},
		{"a record", func(w *writer) { w.sent(1, 1, 0) }, []replay.Outcome{replay.Dropped}},
		{"a record of a second attempt", func(w *writer) { w.sent(1, 1, 1) }, []replay.Outcome{replay.Dropped}},
		{"two records of one attempt", func(w *writer) { w.sent(1, 1, 0); w.sent(1, 1, 0) }, []replay.Outcome{replay.Dropped}},
		{"a header between two", func(w *writer) {
			w.log(
				dsh.AssistantChunk{Turn: 1, Step: 1, Chunk: dsh.TextDelta{Text: "x"}},
				dsh.RequestHeader{Reason: dsh.HeaderChange, Header: &dsh.Header{Config: config, System: "new"}},
			)
			w.stream(1, 1, false, dsh.TextDelta{Text: "y"}, dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}})
		}, []replay.Outcome{replay.Dropped, replay.Answered}},
		{"an answer that was replaced", func(w *writer) {
			w.stream(1, 1, false, dsh.TextDelta{Text: "y"}, dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}})
			at := dsh.Seq(len(w.events) - 1)
			w.add(dsh.Event{Data: empty, Sources: dsh.Cite(at), Surface: dsh.Replace(at, at)})
		}, []replay.Outcome{replay.Answered}},
	} {
		w := begun()
		tc.write(w)
		w.log(end...)
		report := replay.Run(dsh.SessionHeader{}, w.events)
		var got []replay.Outcome
		for _, r := range report.Requests {
			got = append(got, r.Outcome)
			if r.Outcome == replay.Failed && r.Failure != failure {
				t.Errorf("%s: failure %v", tc.name, r.Failure)
			}
		}
		if !slices.Equal(got, tc.want) || len(report.Findings) > 0 {
			t.Errorf("%s: %v, want %v; %v", tc.name, got, tc.want, report.Findings)
		}
	}
}
