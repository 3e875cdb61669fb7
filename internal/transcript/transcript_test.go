package transcript_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/transcript"
)

const sampleID = "main-session-00000000-0000-4000-8000-000000000001"

// sample reads a sample of the session format.
func sample(t testing.TB, name string) (dsh.SessionHeader, []dsh.Event) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "actors", "session", "jsonl", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	dir := filepath.Join(root, "--srv-demo--", sampleID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "session.jsonl"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := jsonl.Open(root, jsonl.Options{Encoding: jsonl.Raw})
	if err != nil {
		t.Fatal(err)
	}
	look := store.Look(dsh.SessionHeader{ID: sampleID})
	if look.Err != nil {
		t.Fatal(look.Err)
	}
	return look.Header, look.Events
}

func write(t testing.TB, h dsh.SessionHeader, events []dsh.Event, opts transcript.Options) string {
	t.Helper()
	var out bytes.Buffer
	p := transcript.NewPrinter(&out, &h, opts)
	if err := p.Session(&h); err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if err := p.Event(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// golden compares text with a file, or writes it with UPDATE=1.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs (UPDATE=1 rewrites it):\n%s\nwant:\n%s", path, text, want)
	}
}

// The samples of the session format as people read them.
func TestSamples(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		h, events := sample(t, name+".jsonl")
		text := write(t, h, events, transcript.Options{})
		golden(t, name+".txt", text)
		var single []dsh.Event
		for ev := range dsh.Expand(events) {
			single = append(single, ev)
		}
		if got := write(t, h, single, transcript.Options{}); got != text {
			t.Errorf("%s: single events are told as\n%s", name, got)
		}
	}
}

// A story with everything that a transcript tells of.
func story() (dsh.SessionHeader, []dsh.Event) {
	h := dsh.SessionHeader{
		ID: "child", CreatedAt: 1_790_000_000_000, CWD: "/srv/demo", ParentSession: "main", SeedLength: 4, HasSeed: true,
		Origin: "subagent", DelegationDepth: 1, AgentPreset: "scout",
	}
	heat, three, seed := 0.5, 3, int64(7)
	user := func(id dsh.MessageID, text string, s dsh.Source) *dsh.Message {
		return &dsh.Message{ID: id, Role: dsh.RoleUser, Content: []dsh.Block{dsh.Text{Text: text}}, Source: s}
	}
	result := func(id dsh.CallID, text string, failed bool) *dsh.Message {
		return &dsh.Message{Role: dsh.RoleUser, Source: dsh.ToolSource{CallID: id}, Content: []dsh.Block{
			dsh.ToolResult{CallID: id, Content: []dsh.Block{dsh.Text{Text: text}}, IsError: failed},
		}}
	}
	spend := func(text string) dsh.Fact {
		return dsh.ChunkRun{Turn: 2, Step: 1, Chunks: []dsh.Chunk{
			dsh.TextDelta{Text: text}, dsh.Usage{InputTokens: 100, OutputTokens: 10}, dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}},
		}}
	}
	first := &dsh.Header{
		Config: dsh.CallConfig{Provider: "deepseek", Model: "v4", Temperature: &heat, MaxTokens: 1000, Stop: []string{"END"}, ReasoningEffort: "high"},
		System: "Be brief.\nBe kind.", Tools: []dsh.ToolSchema{{Name: "shell"}, {Name: "read_file"}},
	}
	second := &dsh.Header{Config: dsh.CallConfig{Provider: "deepseek", Model: "v5"}, System: first.System, Tools: first.Tools}
	pending := user("p", "and then\nsomething else", dsh.UserSource{})
	lines := strings.Repeat("line\n", 12)
	words := "A long sentence is broken where the terminal ends, if it has spaces, and "
	facts := []dsh.Event{
		{Data: dsh.TurnStart{Turn: 1}},
		{Data: dsh.StepStart{Turn: 1, Step: 1}},
		{Data: dsh.StepEnd{Turn: 1, Step: 1}},
		{Data: dsh.TurnEnd{Turn: 1, Reason: dsh.Ending{Kind: dsh.EndCompleted}}},
		{Data: dsh.EndSeed{}},
		{Data: delegation.Descriptor{Mode: delegation.OneShot, Transport: delegation.ByFork, Label: "look around"}.Fact()},
		{Data: dsh.Opaque{Name: "session/title", Raw: []byte(`{"title":"Around \u001b[2J the house"}`)}},
		{Data: dsh.TurnStart{Turn: 2}},
		{Data: dsh.StepStart{Turn: 2, Step: 1}},
		{Data: dsh.UserMessage{Message: user("u", words+words, dsh.UserSource{})}, Surface: dsh.Append},
		{Data: dsh.UserMessage{Message: user("c", "context\tof\x1b]0;the\a plugin", dsh.PluginSource{Plugin: "context"})}, Surface: dsh.Append},
		{Data: dsh.UserMessage{Message: delegation.Report("kid", "found it")}, Surface: dsh.Append},
		{Data: dsh.RequestParameters{Parameters: dsh.Parameters{Seed: &seed}}},
		{Data: dsh.RequestHeader{Header: first, Reason: dsh.HeaderInitial}},
		{Data: spend("a false start")},
		{Data: dsh.RetryScheduled{
			RetryID: "r", Turn: 2, Step: 1, Retry: 1, MaxRetries: &three, DelayMs: 1500,
			Failure: &dsh.Failure{Code: dsh.CodeRateLimit, Status: 429, Message: "slow\ndown"},
		}},
		{Data: dsh.RetryStarted{RetryID: "r", Turn: 2, Step: 1, Retry: 1}},
		{Data: spend("Let me see.")},
		{Data: dsh.AssistantMessage{Turn: 2, Step: 1, Message: &dsh.Message{Role: dsh.RoleAssistant, Content: []dsh.Block{
			dsh.Reasoning{Text: lines}, dsh.Text{Text: lines + "Let me see."},
			dsh.ToolCall{ID: "1", Name: "shell", Arguments: `{"command":"make"}`}, dsh.ToolCall{ID: "2", Name: "read_file", Arguments: `{"path":`},
			dsh.ToolCall{ID: "3", Name: "shell", Arguments: `{}`},
		}}}, Surface: dsh.Append},
		{Data: dsh.ToolStarted{Turn: 2, Step: 1, CallID: "1", Name: "shell", Arguments: `{"command":"make"}`}},
		{Data: dsh.ToolStarted{Turn: 2, Step: 1, CallID: "2", Name: "read_file", Arguments: `{"path":`}},
		{Data: dsh.ToolFinished{Turn: 2, Step: 1, Message: result("1", lines+"[exit status 2]", false)}, Surface: dsh.Append},
		{Data: dsh.ToolFinished{Turn: 2, Step: 1, Message: result("2", "Error: no JSON", true), Error: &dsh.ToolInvalidArgs}, Surface: dsh.Append},
		{Data: dsh.ToolFinished{Turn: 2, Step: 1, Message: result("3", "never ran", true), Error: &dsh.ToolNotStarted}, Surface: dsh.Append},
		{Data: dsh.StepEnd{Turn: 2, Step: 1}},
		{Data: dsh.TurnEnd{Turn: 2, Reason: dsh.Ending{Kind: dsh.EndError, Failure: &dsh.Failure{Code: dsh.CodeQuota, Message: "no credit"}}}},
		{Data: dsh.Opaque{Name: "compaction/start", Raw: []byte(`{"reason":"pressure"}`)}},
		{Data: dsh.UserMessage{Message: user("s", "What happened so far.", dsh.OpaqueSource{Name: "compaction"})},
			Surface: dsh.Replace(9, 18), Sources: dsh.Cite(9, 10, 11, 18)},
		{Data: dsh.Opaque{Name: "compaction/end", Raw: []byte(`{}`)}},
		{Data: dsh.Opaque{Name: "todo/write", Raw: []byte(`{"todos":[]}`)}},
		{Data: dsh.InboxSpliced{Target: dsh.NextTurn, Inserted: []*dsh.Message{user("w", "never mind", dsh.UserSource{})}}},
		{Data: dsh.InboxSpliced{Target: dsh.NextTurn, Removed: 1, Outcome: dsh.OutcomeCanceled}},
		{Data: dsh.TurnStart{Turn: 3}},
		{Data: dsh.TurnEnd{Turn: 3, Reason: dsh.Ending{Kind: dsh.EndAborted, Cause: dsh.Cause{Kind: dsh.CauseHook, Reason: "--timeout 1s is over"}}}},
		{Data: dsh.TurnStart{Turn: 4}},
		{Data: dsh.StepStart{Turn: 4, Step: 1}},
		{Data: dsh.RequestHeader{Header: second, Reason: dsh.HeaderChange}},
		{Data: dsh.InboxSpliced{Target: dsh.NextTurn, Inserted: []*dsh.Message{pending}}},
		{Data: dsh.ChunkRun{Turn: 4, Step: 1, Chunks: []dsh.Chunk{
			dsh.ReasoningDelta{Text: "Hm"}, dsh.TextDelta{Index: 1, Text: "It is "}, dsh.ToolCallDelta{Index: 2, ID: "4", ArgumentsDelta: `{"pa`},
		}}},
	}
	var seq dsh.Seq
	for i := range facts {
		facts[i].Seq, facts[i].Time = seq, h.CreatedAt+int64(i)*500
		seq += facts[i].Span()
	}
	return h, facts
}

func TestStory(t *testing.T) {
	h, events := story()
	golden(t, "story.txt", write(t, h, events, transcript.Options{Width: 60}))
	golden(t, "story.full.txt", write(t, h, events, transcript.Options{Full: true}))
	golden(t, "story.turn.txt", write(t, h, events, transcript.Options{Turn: 3}))
	end := slices.IndexFunc(events, func(ev dsh.Event) bool { d, ok := ev.Data.(dsh.TurnEnd); return ok && d.Turn == 2 })
	if from := write(t, h, events, transcript.Options{From: events[end].Seq}); strings.Contains(from, "turn 2 ·") || strings.Contains(from, "step 1 ended") || !strings.Contains(from, "turn 2 failed") {
		t.Errorf("from the end of turn 2:\n%s", from)
	}
	plain := write(t, h, events, transcript.Options{})
	coloured := write(t, h, events, transcript.Options{Colour: true})
	if got := escape.ReplaceAllString(coloured, ""); got != plain || !strings.Contains(coloured, "\x1b[31m") {
		t.Errorf("with colours:\n%s", coloured)
	}
}

// What there is can be told of a log that goes on.
func TestEndIsNotFinal(t *testing.T) {
	h, events := story()
	f := transcript.NewFold(&h)
	for i := range events {
		f.Add(&events[i])
		if i%3 == 0 {
			f.End()
		}
	}
	end := f.End()
	answer, ok := end[0].(transcript.Answer)
	if !ok || !answer.Unfinished || len(answer.Content) != 3 {
		t.Fatalf("end is %+v", end[0])
	}
	last := end[1].(transcript.End)
	if last.Turn != 4 || last.Step != 1 || last.Turns != 4 || len(last.Pending) != 1 || last.Sum.Requests != 2 || last.Sum.Calls != 3 ||
		last.Sum.CallsFailed != 2 || last.Sum.Retries != 1 || last.Sum.Usage.InputTokens != 200 || last.Sum.Steps != 2 {
		t.Errorf("end is %+v", last)
	}
	if last.Events != events[len(events)-1].Last()+1 || f.Events() != last.Events || f.Turns() != 4 {
		t.Errorf("%d events, %d turns", f.Events(), f.Turns())
	}
}
