package sessiontest

import (
	"fmt"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Header returns a header with everything that a log keeps about its session.
func Header(id dsh.SessionID) dsh.SessionHeader {
	return dsh.SessionHeader{
		Version: dsh.FormatVersion, ID: id, CreatedAt: 1_790_000_000_000, CWD: "/srv/demo", ParentSession: "p",
		SeedLength: 0, HasSeed: true, Origin: "subagent", DelegationDepth: 1, AgentPreset: "preset",
	}
}

// Turn returns the events of a whole turn, packed, numbered on from seq.
func Turn(turn int, seq dsh.Seq) []dsh.Event {
	at := 1_790_000_000_000 + int64(turn)*1000
	name := "tool"
	chunks := []dsh.Chunk{dsh.BlockStart{BlockType: dsh.TextBlock}}
	for i := range 5 {
		chunks = append(chunks, dsh.TextDelta{Text: fmt.Sprintf("word %d ", i)})
	}
	chunks = append(chunks, dsh.BlockEnd{Block: dsh.Text{Text: "all of it"}},
		dsh.ToolCallDelta{Index: 1, ID: "c", Name: &name}, dsh.ToolCallDelta{Index: 1, ID: "c", ArgumentsDelta: "{}"},
		dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}})
	first := seq + 3
	return number(seq, at,
		dsh.Event{Data: dsh.TurnStart{Turn: turn}},
		dsh.Event{Data: dsh.StepStart{Turn: turn, Step: 1}},
		dsh.Event{Surface: dsh.Append, Data: dsh.UserMessage{Message: message(turn, dsh.RoleUser, dsh.UserSource{}, "<&> \u2028 π")}},
		dsh.Event{Data: dsh.ChunkRun{Turn: turn, Step: 1, Chunks: chunks}},
		dsh.Event{
			Surface: dsh.Append, Sources: dsh.Cite().With(first, first+dsh.Seq(len(chunks))-1),
			Data: dsh.AssistantMessage{Turn: turn, Step: 1, Message: message(turn, dsh.RoleAssistant, dsh.ModelSource{Provider: "p", Model: "m"}, "all of it")},
		},
		dsh.Event{Ignorable: true, Data: dsh.Opaque{Name: "custom/note", Raw: []byte(`{"b":1,"a":[2]}`)}},
		dsh.Event{Data: dsh.StepEnd{Turn: turn, Step: 1}},
		dsh.Event{Data: dsh.TurnEnd{Turn: turn, Reason: dsh.Ending{Kind: dsh.EndCompleted}}},
	)
}

func message(turn int, role dsh.Role, source dsh.Source, text string) *dsh.Message {
	return &dsh.Message{
		ID: dsh.MessageID(fmt.Sprintf("%s-%d", role, turn)), Role: role, Source: source,
		Content: []dsh.Block{dsh.Text{Text: text}},
	}
}

func number(seq dsh.Seq, at int64, events ...dsh.Event) []dsh.Event {
	for i := range events {
		events[i].Seq, events[i].Time = seq, at
		seq += events[i].Span()
	}
	return events
}

// after returns the sequence number behind events.
func after(events []dsh.Event) dsh.Seq { return events[len(events)-1].Last() + 1 }

// lines returns events one by one as JSON, which is what equality means here.
func lines(events []dsh.Event) []string {
	list := []string{}
	for ev := range dsh.Expand(events) {
		list = append(list, string(ev.AppendJSON(nil)))
	}
	return list
}

// same fails the test if events differ, however they are packed.
func same(t *testing.T, got, want []dsh.Event) {
	t.Helper()
	g, w := lines(got), lines(want)
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("event %d\n got %s\nwant %s", i, g[i], w[i])
		}
	}
	if len(g) != len(w) {
		t.Fatalf("got %d events, want %d", len(g), len(w))
	}
}

func create(t *testing.T, s session.Store, id dsh.SessionID) session.Log {
	t.Helper()
	log, err := s.Create(t.Context(), Header(id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}

func open(t *testing.T, s session.Store, id dsh.SessionID) session.Log {
	t.Helper()
	log, err := s.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}

func add(t *testing.T, log session.Log, events []dsh.Event) {
	t.Helper()
	if err := session.Extend(t.Context(), log, events); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, log session.Log, from dsh.Seq, limit int) []dsh.Event {
	t.Helper()
	events, err := log.Read(t.Context(), from, limit)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func closeLog(t *testing.T, log session.Log) {
	t.Helper()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// headers returns the IDs that a store lists.
func headers(t *testing.T, s session.Store) (ids []dsh.SessionID) {
	t.Helper()
	for h, err := range s.List(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		ids = append(ids, h.ID)
	}
	return ids
}
