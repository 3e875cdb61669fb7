package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// shownLog parses what sessions show --json writes.
type shownLog struct {
	header dsh.SessionHeader
	events []dsh.Event
	end    struct {
		Next    dsh.Seq
		InUse   *struct{ PID int } `json:"in_use"`
		Problem *problem
	}
}

func readShown(t *testing.T, out string) (log shownLog) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for i, line := range lines {
		var head struct {
			Version int
			Type    string
			Session json.RawMessage
			Event   json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &head); err != nil {
			t.Fatalf("line %d: %v: %s", i, err, line)
		}
		var err error
		want := "event"
		switch i {
		case 0:
			want = "session"
			err = json.Unmarshal(head.Session, &log.header)
		case len(lines) - 1:
			want = "end"
			err = json.Unmarshal([]byte(line), &log.end)
		default:
			var ev dsh.Event
			err = json.Unmarshal(head.Event, &ev)
			log.events = append(log.events, ev)
		}
		if err != nil || head.Version != 1 || head.Type != want {
			t.Fatalf("line %d should be a %q: %v: %s", i, want, err, line)
		}
	}
	return log
}

// A run with sub-agents as people read it afterwards.
func TestSessionsShowDemo(t *testing.T) {
	s := newShelf(t)
	dir := project(t)
	id := s.ofDemo(dir, "List the files with two helpers")
	shot := newShot(t).want(exitOK, "sessions", "show", "--dir", s.dir, string(id[:20]))
	text := regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`).ReplaceAllString(shot.out.String(), "DATE")
	golden(t, "demo.show.txt", text, dir)
	for h := range s.store.List(t.Context()) {
		if h.ParentSession == id {
			shot := newShot(t).want(exitOK, "sessions", "show", "--dir", s.dir, string(h.ID))
			shot.says(&shot.out, "sub-agent of "+string(id)+", depth 1", "· a sub-agent for ", "turn 1 completed")
		}
	}
}

// What a run has kept is found where it was kept, by what is shown of it.
func TestSessionsOfRun(t *testing.T) {
	dir, env := project(t), map[string]string{"DSH_ACTOR_HOME": t.TempDir()}
	shot := func(args ...string) string {
		t.Helper()
		s := newShot(t)
		s.env = env
		return s.want(exitOK, args...).out.String()
	}
	shot("run", "--cwd", dir, "--tools", "none", "first question")
	table := strings.Fields(strings.Split(shot("sessions", "list", "--cwd", dir), "\n")[1])
	shot("run", "--cwd", dir, "--resume", table[0], "second question")
	text := shot("sessions", "show", table[0])
	for _, want := range []string{"    first question\n", "turn 1 completed", "· the session was opened again here\n", "    second question\n", "turn 2 completed"} {
		if !strings.Contains(text, want) {
			t.Errorf("the transcript lacks %q:\n%s", want, text)
		}
	}
}

func TestSessionsShowJSON(t *testing.T) {
	s := newShelf(t)
	events := append(chat(1, 0, "hello", completed), chat(2, 11, "again", completed)...)
	s.put(head("talk", "/w"), events...)
	show := func(args ...string) shownLog {
		t.Helper()
		return readShown(t, newShot(t).want(exitOK, append([]string{"sessions", "show", "--dir", s.dir, "--json", "talk"}, args...)...).out.String())
	}
	log := show()
	if log.header.ID != "talk" || len(log.events) != 22 || log.end.Next != 22 || log.end.Problem != nil || log.end.InUse != nil {
		t.Errorf("%+v", log)
	}
	i := 0
	for ev := range dsh.Expand(events) {
		if got := string(log.events[i].AppendJSON(nil)); got != string(ev.AppendJSON(nil)) {
			t.Errorf("event %d is %s", i, got)
		}
		i++
	}
	if log := show("--from", "6"); len(log.events) != 16 || log.events[0].Seq != 6 {
		t.Errorf("%+v", log) // which cuts a run of chunks
	}
	if log := show("--turn", "1"); len(log.events) != 11 || log.events[10].Type() != dsh.TypeTurnEnd {
		t.Errorf("%+v", log)
	}
	if log := show("--from", "22"); len(log.events) != 0 || log.end.Next != 22 {
		t.Errorf("%+v", log)
	}
	if log := show("--turn", "2", "--from", "21"); len(log.events) != 1 {
		t.Errorf("%+v", log)
	}
}

func TestSessionsShowPart(t *testing.T) {
	s := newShelf(t)
	s.put(head("talk", "/w"), append(chat(1, 0, "hello", completed), chat(2, 11, "again", completed)...)...)
	show := func(code int, args ...string) *shot {
		return newShot(t).want(code, append([]string{"sessions", "show", "--dir", s.dir}, args...)...)
	}
	shot := show(exitOK, "talk", "--turn", "2")
	shot.says(&shot.out, "session talk", "again", "turn 2 completed")
	if strings.Contains(shot.out.String(), "hello") {
		t.Error(shot.out.String())
	}
	shot = show(exitFailed, "talk", "--turn", "3")
	shot.says(&shot.err, "dsh-actor: the session has 2 turns, so there is no turn 3")
	for want, args := range map[string][]string{
		"--turn is 0: turns are counted from 1":   {"talk", "--turn", "0"},
		"--from is -1: events are counted from 0": {"talk", "--from", "-1"},
		"the ID of a session is needed":           {},
		"takes one session, not 2 arguments":      {"talk", "walk"},
	} {
		shot := show(exitUsage, args...)
		shot.says(&shot.err, want)
	}
}

// What can be read of a bad log is shown, and then why there is no more.
func TestSessionsShowWrecks(t *testing.T) {
	s := wreck(t)
	for _, tt := range []struct {
		id     string
		code   int
		events int
		out    []string
		err    string
	}{
		{"torn", exitOK, 10, []string{"So be it.", "turn 1 is open: the log ends here", "its last write was torn by a crash"}, ""},
		{"corrupt", exitFailed, 3, []string{"corrupt\n", "the log is damaged from here on: ", "event 30 where 3 is due"}, "session log is corrupt"},
		{"unknown", exitFailed, 9, []string{"So be it.", "the log is damaged from here on: "}, "event 9 has type x/y"},
		{"locked", exitOK, 4, []string{"turn 1, step 1 is open", "the session is in use by process "}, ""},
		{"newer", exitFailed, 0, nil, "version 7"},
		{"foreign", exitFailed, 0, nil, "the store keeps session.jsonl"},
		{"empty", exitUsage, 0, nil, "there is no session empty"},
	} {
		t.Run(tt.id, func(t *testing.T) {
			shot := newShot(t).want(tt.code, "sessions", "show", "--dir", s.dir, tt.id)
			shot.says(&shot.out, tt.out...)
			shot.says(&shot.err, tt.err)
			if tt.err == "" && shot.err.String() != "" || tt.out == nil && shot.out.String() != "" {
				t.Errorf("stdout:\n%s\nstderr:\n%s", shot.out.String(), shot.err.String())
			}
			if tt.out == nil {
				return
			}
			log := readShown(t, newShot(t).want(tt.code, "sessions", "show", "--dir", s.dir, tt.id, "--json").out.String())
			if len(log.events) != tt.events || log.end.Next != dsh.Seq(tt.events) || (log.end.Problem == nil) != (tt.id == "locked") {
				t.Errorf("%d events, end %+v", len(log.events), log.end)
			}
		})
	}
}

// What the owner of a session appends is shown until Ctrl-C.
func TestSessionsFollow(t *testing.T) {
	s := newShelf(t)
	first, second := chat(1, 0, "hello", completed), chat(2, 11, "again", completed)
	log := s.create(head("talk", "/w"), first[:6]...)
	text := newShot(t).begin("sessions", "show", "--dir", s.dir, "talk", "--follow")
	lines := newShot(t).begin("sessions", "show", "--dir", s.dir, "talk", "-f", "--json", "--from", "9")
	one := newShot(t).begin("sessions", "show", "--dir", s.dir, "talk", "-f", "--turn", "1")
	await(t, "what is there", func() bool { return strings.Contains(text.out.String(), "So be it.") })
	s.extend(log, first[6:]...)
	await(t, "the end of the turn", func() bool { return strings.Contains(text.out.String(), "turn 1 completed") })
	if code := one.end(); code != exitOK {
		t.Errorf("one turn ends with %d", code)
	}
	one.says(&one.out, "turn 1 completed")
	s.extend(log, second...)
	await(t, "the next turn", func() bool {
		return strings.Contains(text.out.String(), "turn 2 completed") && strings.Count(lines.out.String(), "\n") == 14
	})
	if strings.Contains(text.out.String(), "not shown") {
		t.Error("it says what it says at the end")
	}
	text.signals <- os.Interrupt
	lines.signals <- syscall.SIGTERM
	if a, b := text.end(), lines.end(); a != exitInterrupted || b != 143 {
		t.Errorf("exit codes %d and %d", a, b)
	}
	text.says(&text.out, "2 turns · 2 steps · 20 tokens in, 4 out · 22 events", "the session is in use by process ")
	if log := readShown(t, lines.out.String()); len(log.events) != 13 || log.end.InUse == nil || log.end.InUse.PID != os.Getpid() {
		t.Errorf("%+v", log)
	}
	if text.err.String()+lines.err.String() != "" {
		t.Errorf("stderr: %s%s", text.err.String(), lines.err.String())
	}
}

// A reader that leaves, as head does, is no error; but half an export is one.
func TestSessionsClosedPipe(t *testing.T) {
	s := newShelf(t)
	s.put(head("talk", "/w"), chat(1, 0, "hello", completed)...)
	for _, args := range [][]string{
		{"show", "talk"}, {"show", "talk", "--json"}, {"show", "talk", "--follow"}, {"list", "--all"}, {"list", "--all", "--json"},
		{"check", "--all"}, {"check", "--json"}, {"replay", "talk", "--json"}, {"replay", "talk", "--transcript"}, {"repair", "talk"},
		{"fork", "talk"}, {"export", "talk"}, {"delete", "talk", "--yes"},
	} {
		code := exitOK
		if args[0] == "export" {
			code = exitFailed
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		shot := newShot(t)
		shot.stdout = w
		shot.want(code, append([]string{"sessions", "--dir", s.dir}, args...)...)
		if (shot.err.String() != "") != (code == exitFailed) {
			t.Errorf("%v: stderr: %s", args, shot.err.String())
		}
		_ = w.Close()
	}
}

// full is a disk that is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestSessionsFullDisk(t *testing.T) {
	s := newShelf(t)
	s.put(head("talk", "/w"), chat(1, 0, "hello", completed)...)
	for _, args := range [][]string{{"show", "talk"}, {"list", "--all"}} {
		shot := newShot(t)
		shot.stdout = full{}
		shot.want(exitFailed, append([]string{"sessions", "--dir", s.dir}, args...)...)
		shot.says(&shot.err, "no space left")
	}
}

// script makes a program of a shell script.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pager")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPager(t *testing.T) {
	s := newShelf(t)
	s.put(head("talk", "/w"), chat(1, 0, "hello", completed)...)
	paged := script(t, `echo PAGED "$1"; cat`)
	show := func(env map[string]string, stdout io.Writer, args ...string) *shot {
		shot := newShot(t)
		shot.env, shot.stdout = env, stdout
		return shot.want(exitOK, append([]string{"sessions", "show", "--dir", s.dir, "talk"}, args...)...)
	}
	for _, tt := range []struct {
		name string
		env  map[string]string
		args []string
		want bool
		says string
	}{
		{"PAGER", map[string]string{"PAGER": paged + " -x"}, nil, true, ""},
		{"its own", map[string]string{"PAGER": "cat", "DSH_ACTOR_PAGER": paged + " -x"}, nil, true, ""},
		{"cat is none", map[string]string{"PAGER": "cat"}, nil, false, ""},
		{"not wanted", map[string]string{"PAGER": paged}, []string{"--no-pager"}, false, ""},
		{"json", map[string]string{"PAGER": paged}, []string{"--json"}, false, ""},
		{"not there", map[string]string{"PAGER": "/not/here"}, nil, false, "pager /not/here: "},
		{"fails", map[string]string{"PAGER": script(t, "exit 1")}, nil, false, "exit status 1; it does without"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &tty{}
			shot := show(tt.env, w, tt.args...)
			out := w.String()
			if strings.HasPrefix(out, "PAGED -x\n") != tt.want || !strings.Contains(out, "So be it.") {
				t.Errorf("stdout:\n%s", out)
			}
			shot.says(&shot.err, tt.says)
			if tt.says == "" && shot.err.String() != "" {
				t.Errorf("stderr: %s", shot.err.String())
			}
		})
	}
	t.Run("no terminal", func(t *testing.T) {
		var w buffer
		show(map[string]string{"PAGER": paged}, &w)
		if strings.Contains(w.String(), "PAGED") || strings.Contains(w.String(), "\x1b") {
			t.Errorf("stdout:\n%s", w.String())
		}
	})
	t.Run("quit early", func(t *testing.T) {
		big := newShelf(t)
		big.put(head("talk", "/w"), chat(1, 0, strings.Repeat("a long line\n", 50_000), completed)...)
		shot, w := newShot(t), &tty{}
		shot.env["PAGER"], shot.stdout = script(t, "head -n 1; exit 0"), w
		shot.want(exitOK, "sessions", "show", "--dir", big.dir, "talk", "--full")
		if shot.err.String() != "" || strings.Count(w.String(), "\n") != 1 {
			t.Errorf("%d lines, stderr: %s", strings.Count(w.String(), "\n"), shot.err.String())
		}
	})
}

// While the pager shows, Ctrl-C is meant for it; a supervisor is still heard.
func TestPagerOwnsTheKeyboard(t *testing.T) {
	s := newShelf(t)
	s.put(head("talk", "/w"), chat(1, 0, "hello", completed)...)
	begin := func(pager string) (*shot, *tty) {
		shot, w := newShot(t), &tty{}
		shot.env["PAGER"], shot.stdout = pager, w
		shot.begin("sessions", "show", "--dir", s.dir, "talk")
		await(t, "the pager", func() bool { return strings.Contains(w.String(), "PAGED") })
		return shot, w
	}
	quit := filepath.Join(t.TempDir(), "quit")
	wait := `echo PAGED; trap 'exit 3' TERM; while [ ! -e ` + quit + ` ]; do sleep 0.02; done; cat`

	shot, w := begin(script(t, wait))
	shot.signals <- syscall.SIGTERM
	if code := shot.end(); code != 143 {
		t.Errorf("exit code %d: %s", code, shot.err.String())
	}
	if strings.Contains(w.String(), "So be it.") {
		t.Errorf("stdout: %s", w.String())
	}

	shot, w = begin(script(t, wait))
	for range 3 {
		shot.signals <- os.Interrupt
	}
	await(t, "the signals", func() bool { return len(shot.signals) == 0 })
	if err := os.WriteFile(quit, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := shot.end(); code != exitOK || shot.err.String() != "" {
		t.Errorf("exit code %d: %s", code, shot.err.String())
	}
	if !strings.Contains(w.String(), "So be it.") {
		t.Errorf("stdout: %s", w.String())
	}
}
