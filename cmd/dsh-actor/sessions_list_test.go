package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/demo"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/toolset"
)

// A shelf is a directory of sessions for a test.
type shelf struct {
	testing.TB
	dir   string
	store *jsonl.Store
}

func newShelf(t testing.TB) *shelf {
	t.Helper()
	s := &shelf{TB: t, dir: t.TempDir()}
	store, err := jsonl.Open(s.dir, jsonl.Options{Encoding: jsonl.Raw})
	if err != nil {
		t.Fatal(err)
	}
	s.store = store
	return s
}

// create makes a log with events and leaves it open.
func (s *shelf) create(h dsh.SessionHeader, events ...dsh.Event) session.Log {
	s.Helper()
	log, err := s.store.Create(s.Context(), h)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = log.Close() })
	s.extend(log, events...)
	return log
}

// extend appends events and makes them durable.
func (s *shelf) extend(log session.Log, events ...dsh.Event) {
	s.Helper()
	if err := errors.Join(session.Extend(s.Context(), log, events), log.Sync(s.Context())); err != nil {
		s.Fatal(err)
	}
}

// put makes a log with events and closes it.
func (s *shelf) put(h dsh.SessionHeader, events ...dsh.Event) string {
	s.Helper()
	if err := s.create(h, events...).Close(); err != nil {
		s.Fatal(err)
	}
	r, err := s.store.OpenReader(s.Context(), h.ID)
	if err != nil {
		s.Fatal(err)
	}
	return r.Path()
}

// change rewrites a file.
func (s *shelf) change(path string, change func(string) string) {
	s.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(data))), 0o600); err != nil {
		s.Fatal(err)
	}
}

// at is when the sessions of the tests were used.
var at = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func head(id dsh.SessionID, cwd string) dsh.SessionHeader {
	return dsh.SessionHeader{ID: id, CWD: cwd, CreatedAt: at.UnixMilli()}
}

// chat returns the events of a turn in which a user says something.
func chat(turn int, next dsh.Seq, text string, end dsh.Ending) []dsh.Event {
	m := dsh.UserText(text)
	m.ID = dsh.MessageID(fmt.Sprintf("m%d", turn))
	facts := []dsh.Event{
		{Data: dsh.TurnStart{Turn: turn}},
		{Data: dsh.StepStart{Turn: turn, Step: 1}},
		{Data: dsh.UserMessage{Message: m}, Surface: dsh.Append},
		{Data: dsh.RequestHeader{Header: &dsh.Header{Config: dsh.CallConfig{Provider: "p", Model: "m-1"}}, Reason: dsh.HeaderInitial}},
		{Data: dsh.ChunkRun{Turn: turn, Step: 1, Chunks: []dsh.Chunk{
			dsh.TextDelta{Text: "So "}, dsh.TextDelta{Text: "be it."}, dsh.Usage{InputTokens: 10, OutputTokens: 2}, dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}},
		}}},
		{Data: dsh.AssistantMessage{Turn: turn, Step: 1, Message: &dsh.Message{
			ID: dsh.MessageID(fmt.Sprintf("a%d", turn)), Role: dsh.RoleAssistant, Content: []dsh.Block{dsh.Text{Text: "So be it."}}, Source: dsh.ModelSource{Provider: "p", Model: "m-1"},
		}}, Surface: dsh.Append},
		{Data: dsh.StepEnd{Turn: turn, Step: 1}},
		{Data: dsh.TurnEnd{Turn: turn, Reason: end}},
	}
	for i := range facts {
		facts[i].Seq, facts[i].Time = next, at.Add(time.Duration(turn)*time.Minute).UnixMilli()
		next += facts[i].Span()
	}
	return facts
}

var completed = dsh.Ending{Kind: dsh.EndCompleted}

// ofDemo runs the demo with sub-agents on the shelf.
func (s *shelf) ofDemo(cwd, prompt string) dsh.SessionID {
	s.Helper()
	tools, err := toolset.New(toolset.Options{Root: cwd})
	if err != nil {
		s.Fatal(err)
	}
	more, err := delegating(nil)
	if err != nil {
		s.Fatal(err)
	}
	rt, err := runtime.New(runtime.Options{
		Providers: map[string]llm.Provider{"demo": demo.New(demo.Options{})}, Tools: append(tools, more...), Store: s.store,
		Delegation: runtime.Delegation{MaxDepth: 1},
	})
	if err != nil {
		s.Fatal(err)
	}
	agent, err := rt.Create(s.Context(), runtime.Spec{Provider: "demo", Model: demo.Model, CWD: cwd, System: "Help."})
	if err != nil {
		s.Fatal(err)
	}
	err = errors.Join(agent.Followup(s.Context(), dsh.UserText(prompt)), agent.WaitIdle(s.Context()), rt.Close(s.Context()))
	if err != nil {
		s.Fatal(err)
	}
	return agent.Session()
}

// entries returns what sessions list --json says.
func entries(t *testing.T, args ...string) map[string]sessionEntry {
	t.Helper()
	s := newShot(t).want(exitOK, append([]string{"sessions", "list", "--json"}, args...)...)
	var list struct {
		Version  int
		Dir      string
		Sessions []sessionEntry
	}
	if err := json.Unmarshal([]byte(s.out.String()), &list); err != nil || list.Version != 1 || list.Dir == "" {
		t.Fatalf("%v: %s", err, s.out.String())
	}
	if s.err.String() != "" {
		t.Errorf("stderr: %s", s.err.String())
	}
	byID := map[string]sessionEntry{}
	for _, e := range list.Sessions {
		byID[string(e.ID)] = e
	}
	if len(byID) != len(list.Sessions) {
		t.Errorf("sessions told twice: %s", s.out.String())
	}
	return byID
}

// wreck fills a shelf with everything that can be wrong with a log.
func wreck(t *testing.T) *shelf {
	s := newShelf(t)
	s.put(head("good", "/w"), append(chat(1, 0, "first line\nsecond", completed), chat(2, 11, "more", completed)...)...)
	s.put(head("failed", "/w"), chat(1, 0, "fail", dsh.Ending{Kind: dsh.EndError, Failure: &dsh.Failure{Code: dsh.CodeQuota, Message: "no credit"}})...)
	s.put(head("new", "/w"), dsh.Event{Data: dsh.InboxSpliced{Target: dsh.NextTurn, Inserted: []*dsh.Message{dsh.UserText("later")}}})
	s.create(head("locked", "/w"), chat(1, 0, "busy", completed)[:4]...)
	s.put(head("elsewhere", "/other"), chat(1, 0, "there", completed)...)

	cutOff := func(text string) string { return text[:len(text)-10] }
	s.change(s.put(head("torn", "/w"), chat(1, 0, "torn", completed)...), cutOff)
	s.change(s.put(head("corrupt", "/w"), chat(1, 0, "corrupt", completed)...), func(text string) string {
		return strings.Replace(text, `"seq":3`, `"seq":30`, 1)
	})
	s.change(s.put(head("unknown", "/w"), chat(1, 0, "unknown", completed)...), func(text string) string {
		return strings.Replace(text, `"type":"step/end"`, `"type":"x/y\u009b2J"`, 1)
	})
	s.change(s.put(head("newer", "/w"), chat(1, 0, "newer", completed)...), func(text string) string {
		return strings.Replace(text, `"version":0`, `"version":7`, 1)
	})
	foreign := s.put(head("foreign", "/w"), chat(1, 0, "foreign", completed)...)
	if err := os.Rename(foreign, foreign+".zstd"); err != nil {
		t.Fatal(err)
	}
	s.change(s.put(head("empty", "/w"), chat(1, 0, "empty", completed)...), func(string) string { return "" })
	return s
}

// A log that cannot be read is listed with its reason and hides no other.
func TestSessionsListOfWrecks(t *testing.T) {
	s := wreck(t)
	list := entries(t, "--dir", s.dir, "--cwd", "/w")
	for _, tt := range []struct {
		id, state, problem, title string
		turns                     int
	}{
		{"good", "completed", "", "first line", 2},
		{"failed", "error", "", "fail", 1},
		{"new", "new", "", "", 0},
		{"locked", "open", "", "busy", 1},
		{"torn", "open", "TORN", "torn", 1},
		{"corrupt", "open", "CORRUPT", "corrupt", 1},
		{"unknown", "open", "UNKNOWN_EVENT", "unknown", 1},
		{"newer", "", "NEWER", "", 0},
		{"foreign", "", "OTHER_ENCODING", "", 0},
	} {
		e, ok := list[tt.id]
		delete(list, tt.id)
		code := ""
		if e.Problem != nil {
			code = e.Problem.Code
		}
		if !ok || e.State != tt.state || code != tt.problem || e.Title != tt.title || e.Turns != tt.turns {
			t.Errorf("%s is told as %+v, problem %+v", tt.id, e, e.Problem)
		}
		if (e.InUse != nil) != (tt.id == "locked") || e.InUse != nil && e.InUse.PID != os.Getpid() {
			t.Errorf("%s is in use by %+v", tt.id, e.InUse)
		}
		switch tt.id {
		case "good":
			if e.Requests != 2 || e.Usage.Input != 20 || e.Usage.Output != 4 || e.Events != 22 || e.Model != "m-1" || e.CWD != "/w" ||
				!e.CreatedAt.Equal(at) || !e.UpdatedAt.Equal(at.Add(2*time.Minute)) {
				t.Errorf("good is told as %+v", e)
			}
		case "failed":
			if e.Failure == nil || e.Failure.Code != string(dsh.CodeQuota) {
				t.Errorf("failed is told as %+v", e)
			}
		case "new":
			if e.Pending != 1 {
				t.Errorf("new is told as %+v", e)
			}
		}
	}
	if len(list) != 0 {
		t.Errorf("also listed: %v", list)
	}

	text := newShot(t).want(exitOK, "sessions", "list", "--dir", s.dir, "--cwd", "/w")
	text.says(&text.err, "dsh-actor: torn: its last write was torn by a crash", "dsh-actor: corrupt: ", "event 30 where 3 is due",
		"dsh-actor: newer: ", "dsh-actor: foreign: ", "dsh-actor: unknown: ")
	out := text.out.String()
	if strings.Contains(out+text.err.String(), "\u009b") {
		t.Error("there are control characters")
	}
	for _, want := range []string{
		`good .* completed +2 +m-1 +first line`, `locked .* open, in use by process \d+ +1 +m-1 +busy`, `torn .* open, torn +1`, `corrupt .* corrupt +1`,
		`newer +- +newer +- +-`, `foreign +- +other encoding`, `unknown .* unknown event`, `new .* new, 1 pending +0`,
	} {
		matches(t, out, "(?m)^"+want)
	}
	if strings.Contains(out, "elsewhere") || strings.Contains(out, "empty") || strings.Index(out, "good") > strings.Index(out, "failed") {
		t.Errorf("list:\n%s", out)
	}
}

func TestSessionsListWhere(t *testing.T) {
	s := newShelf(t)
	dir := project(t)
	list := func(args ...string) string {
		return newShot(t).want(exitOK, append([]string{"sessions", "list", "--dir", s.dir}, args...)...).out.String()
	}
	if out := list("--cwd", dir); out != "There are no sessions of "+dir+", nor of any other directory, in "+s.dir+".\n" {
		t.Error(out)
	}
	if out := list("--all"); out != "There are no sessions in "+s.dir+".\n" {
		t.Error(out)
	}
	s.put(head("one", "/other"), chat(1, 0, "hello", completed)...)
	if out := list("--cwd", dir); out != "There are no sessions of "+dir+"; 1 session of other directories: 'dsh-actor sessions list --all' lists them.\n" {
		t.Error(out)
	}
	matches(t, list("--all"), `(?m)^one +\S+ +completed +1 +m-1 +/other +hello$`)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	s.put(head("two", dir), chat(1, 0, "here", completed)...)
	matches(t, list("--cwd", link), `(?m)^two .* here$`)
	shot := newShot(t).want(exitUsage, "sessions", "list", "--all", "--cwd", dir)
	shot.says(&shot.err, "--all is the sessions of all directories")
	shot = newShot(t).want(exitUsage, "sessions", "show", "--dir", s.dir, "three")
	shot.says(&shot.err, "there is no session three; 'dsh-actor sessions list --all' shows")
}

// Sub-agents are shown below their parents, and only if they are asked for.
func TestSessionsListTree(t *testing.T) {
	s := newShelf(t)
	dir := project(t)
	id := s.ofDemo(dir, "List the files with two helpers")
	orphan := head("orphan", dir)
	orphan.Origin, orphan.ParentSession, orphan.DelegationDepth = "subagent", "gone", 1
	s.put(orphan, chat(1, 0, "alone", completed)...)
	ring := func(id, parent dsh.SessionID) {
		h := head(id, dir)
		h.Origin, h.ParentSession, h.DelegationDepth = "subagent", parent, 1
		s.put(h, chat(1, 0, "round and round", completed)...)
	}
	ring("ring-a", "ring-b")
	ring("ring-b", "ring-a")

	out := newShot(t).want(exitOK, "sessions", "list", "--dir", s.dir, "--cwd", dir).out.String()
	if strings.Count(out, "\n") != 2 || !strings.Contains(out, "List the files with two helpers") {
		t.Errorf("list:\n%s", out)
	}
	out = newShot(t).want(exitOK, "sessions", "list", "--dir", s.dir, "--cwd", dir, "--tree").out.String()
	matches(t, out, `(?m)^`+string(id[:len("agent-")+8])+` .*two helpers\n(⤷ \S{8} .* completed +1 +demo +\S.*\n){2}`)
	matches(t, out, `(?m)^⤷ \S{8} .* completed +1 +demo +list the files$`)
	matches(t, out, `(?m)^orphan .* alone$`)
	for _, id := range []string{"ring-a", "ring-b"} {
		if strings.Count(out, id) != 1 {
			t.Errorf("%s in:\n%s", id, out)
		}
	}
	children := 0
	for _, e := range entries(t, "--dir", s.dir, "--cwd", dir) {
		if e.Parent == id {
			children++
			if e.Origin != "subagent" || e.Depth != 1 || e.Outcome != "completed" || e.Label == "" || e.State != "completed" {
				t.Errorf("child %+v", e)
			}
		}
	}
	if children != 2 {
		t.Errorf("%d children", children)
	}
}

// What is shown of an ID finds its session, and no other.
func TestShortIDs(t *testing.T) {
	const u = "-0000-4000-8000-00000000000"
	ids := []dsh.SessionID{
		"agent-11111111" + u + "1-session-11111111" + u + "1", "agent-11111111" + u + "1-session-11111111" + u + "2", "agent-22222222" + u + "1-session-1",
		"33333333" + u + "1", "a", "ab", "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz1234567890", "zzzzzzzzzzzzzzzzzzzzzzzöö",
	}
	names := shortIDs(ids)
	want := map[dsh.SessionID]string{ids[2]: "agent-22222222", ids[3]: "33333333", "a": "a", "ab": "ab", ids[8]: "zzzzzzzzzzzzzzzzzzzzzzzö"}
	for id, name := range want {
		if names[id] != name {
			t.Errorf("%s is shown as %s, want %s", id, names[id], name)
		}
	}
	s := newShelf(t)
	for _, id := range ids {
		s.put(head(id, "/w"), chat(1, 0, "x", completed)...)
	}
	for _, id := range ids {
		if id == "a" || id == "ab" {
			continue // which only the whole ID means
		}
		if got, err := findSession(t.Context(), s.store, names[id]); got != id {
			t.Errorf("%s, shown as %s, finds %s: %v", id, names[id], got, err)
		}
	}
	if got, err := findSession(t.Context(), s.store, "22222222"); got != ids[2] {
		t.Errorf("without what most IDs begin with: %s, %v", got, err)
	}
	if got, err := findSession(t.Context(), s.store, "a"); got != "a" {
		t.Errorf("a finds %s: %v", got, err)
	}
}

// On a terminal titles end where it does, and columns that do not fit are left
// out. What is elsewhere is told of there.
func TestSessionsListFits(t *testing.T) {
	s := newShelf(t)
	s.put(head("one", "/w"), chat(1, 0, strings.Repeat("word ", 100), completed)...)
	s.put(head("two", "/w"), chat(1, 0, "\x1b[2J\x1b]0;x\a", completed)...)
	for width, columns := range map[int]string{
		80: "ID AGE STATE TURNS MODEL DIRECTORY TITLE",
		58: "ID AGE STATE TURNS DIRECTORY TITLE",
		50: "ID AGE STATE DIRECTORY TITLE",
		40: "ID AGE STATE TITLE",
		30: "ID STATE TITLE",
	} {
		shot, w := newShot(t), &tty{}
		shot.stdout, shot.env["COLUMNS"] = w, fmt.Sprint(width)
		shot.want(exitOK, "sessions", "list", "--dir", s.dir, "--all")
		for line := range strings.Lines(w.String()) {
			if n := len([]rune(strings.TrimSpace(line))); n > width {
				t.Errorf("line of %d characters: %s", n, line)
			}
		}
		if strings.ContainsAny(w.String(), "\x1b\a") {
			t.Errorf("list: %q", w.String())
		}
		if head, _, _ := strings.Cut(w.String(), "\n"); strings.Join(strings.Fields(head), " ") != columns {
			t.Errorf("%d columns: %s", width, head)
		}
	}
	s.put(head("three", "/other"), chat(1, 0, "hello", completed)...)
	shot, screen := newShot(t), &tty{}
	shot.stderr = screen
	shot.want(exitOK, "sessions", "list", "--dir", s.dir, "--cwd", "/other")
	shot.says(&screen.buffer, "2 sessions of other directories: --all lists them, too\n")
}

// BenchmarkSessionsList lists a thousand sessions of a hundred events.
func BenchmarkSessionsList(b *testing.B) {
	s := newShelf(b)
	for i := range 1000 {
		var events []dsh.Event
		for turn := range 9 {
			events = append(events, chat(turn+1, dsh.Seq(11*turn), "What is the answer to everything?", completed)...)
		}
		s.put(head(dsh.SessionID(fmt.Sprintf("agent-%08x-0000-4000-8000-000000000000", i*7919)), "/w"), events...)
	}
	for b.Loop() {
		found, err := findListed(b.Context(), s.store, &listFlags{all: true})
		if err != nil || len(found.rows) != 1000 || slices.ContainsFunc(found.rows, func(l *listed) bool { return l.problem != nil || l.sum.Turns != 9 }) {
			b.Fatal(err)
		}
	}
}
