package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// twoTurns returns a house with a session of two turns, and the boundary
// between them.
func twoTurns(t *testing.T, dir string, more ...llmtest.Response) (h *house, id dsh.SessionID, between dsh.Seq) {
	t.Helper()
	h = newHouse(t, append([]llmtest.Response{llmtest.Text("first"), llmtest.Text("second")}, more...)...)
	id = h.first("--cwd", dir, "one")
	between = dsh.Seq(len(h.events(id)))
	h.want(exitOK, "run", "--resume", string(id), "two")
	return h, id, between
}

// A fork knows what was said up to its boundary, and leaves the other session
// as it is.
func TestFork(t *testing.T) {
	dir := project(t)
	h, id, between := twoTurns(t, dir, llmtest.Text("third"), llmtest.Text("fourth"))
	whole, err := os.ReadFile(h.log(id))
	if err != nil {
		t.Fatal(err)
	}
	length := dsh.Seq(len(h.events(id)))
	for i, tt := range []struct {
		at       string
		boundary dsh.Seq
		said     string
		turn     int
	}{
		{"", length, "user: one\nassistant: first\nuser: two\nassistant: second\nuser: three", 3},
		{fmt.Sprint("@", between), between, "user: one\nassistant: first\nuser: three", 2},
	} {
		s := h.want(exitOK, "run", "--fork", string(id[:11])+tt.at, "-o", "stream-json", "three")
		events, last := streamFrom(t, tt.boundary, s.out.String())
		if events[0].Type() != dsh.TypeEndSeed || last.Turn != tt.turn || last.Resumed || last.Session == id ||
			last.ForkedFrom != id || last.ForkedAt == nil || *last.ForkedAt != tt.boundary {
			t.Errorf("result %+v", last)
		}
		if b := h.asked(2 + i); b.said() != tt.said || b.Model != "m" {
			t.Errorf("%s was asked:\n%s", b.Model, b.said())
		}
		s.says(&s.err, fmt.Sprintf("session %s, a copy of %s up to event %d\n", last.Session, id, tt.boundary))
		headers := h.headers()
		got := headers[len(headers)-1]
		if got.ID != last.Session || got.ParentSession != id || got.SeedLength != tt.boundary || got.CWD != dir || got.Origin != "" {
			t.Errorf("header %+v", got)
		}
	}
	if after, err := os.ReadFile(h.log(id)); err != nil || !bytes.Equal(after, whole) {
		t.Errorf("the session was changed: %v", err)
	}
}

// A boundary inside a turn is refused, with those that would do.
func TestForkBoundaries(t *testing.T) {
	h, id, between := twoTurns(t, project(t))
	length := len(h.events(id))
	for _, tt := range []struct {
		at   string
		want string
	}{
		{"5", fmt.Sprintf("%s@5: turn 1 is open there; %s@1 is before it, %s@%d behind it", id, id, id, between)},
		{fmt.Sprint(length - 1), fmt.Sprintf("turn 2 is open there; %s@%d is before it, %s@%d behind it", id, between+2, id, length)},
		{"999", fmt.Sprintf("%s@999: the session has %d events, and no more can be copied", id, length)},
		{"x", `behind the @ comes how many events to copy, not "x"`},
		{"-1", `not "-1"`},
		{"", `not ""`},
	} {
		s := h.want(exitUsage, "run", "--fork", string(id)+"@"+tt.at, "hi")
		s.says(&s.err, tt.want)
	}
	if n := len(h.srv.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// cutAt leaves the first n events of a log, as a crash may.
func (h *house) cutAt(id dsh.SessionID, n dsh.Seq) {
	h.t.Helper()
	r, err := h.store().OpenReader(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	events, err := r.Read(h.t.Context(), 0, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	dir := h.t.TempDir()
	store, err := jsonl.Open(dir, jsonl.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	log, err := store.Create(h.t.Context(), r.Header())
	if err == nil {
		err = errors.Join(session.Extend(h.t.Context(), log, dsh.Cut(events, n)), log.Close())
	}
	if err != nil {
		h.t.Fatal(err)
	}
	short, err := store.OpenReader(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	data, err := os.ReadFile(short.Path())
	if err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(r.Path(), data, 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// A session that a crash left inside a turn is forked before that turn.
func TestForkOfACrashedSession(t *testing.T) {
	h, id, between := twoTurns(t, project(t), llmtest.Text("third"))
	h.cutAt(id, between+8)
	before := fmt.Sprintf("%s@%d", id, between+2)
	s := h.want(exitUsage, "run", "--fork", string(id), "hi")
	s.says(&s.err, fmt.Sprintf("%s: turn 2 has not ended; %s begins before it", id, before))
	s = h.want(exitUsage, "run", "--fork", fmt.Sprintf("%s@%d", id, between+5), "hi")
	s.says(&s.err, "turn 2 is open there and has not ended; "+before+" is before it")
	r := resultOf(t, h.want(exitOK, "run", "--fork", before, "-o", "json", "three"))
	if said := h.asked(2).said(); r.Turn != 2 || said != "user: one\nassistant: first\nuser: three" {
		t.Errorf("turn %d, said:\n%s", r.Turn, said)
	}
}

// A session that somebody else has is theirs; a copy may be made meanwhile.
func TestInUse(t *testing.T) {
	h, id, _ := twoTurns(t, project(t), llmtest.Text("third"))
	log, err := h.store().Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	s := h.want(exitFailed, "run", "--resume", string(id), "-o", "json", "hi")
	s.says(&s.err, fmt.Sprintf("%s: session is in use by process %d on ", id, os.Getpid()),
		"wait until that has ended, or go on in a copy with --fork "+string(id))
	if r := resultOf(t, s); r.Session != id || r.Error == nil || r.Error.Code != "SESSION_IN_USE" || r.ExitCode != exitFailed {
		t.Errorf("result %+v", r)
	}
	if n := len(h.srv.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
	if r := resultOf(t, h.want(exitOK, "run", "--fork", string(id), "-o", "json", "three")); r.Turn != 3 || r.Text != "third" {
		t.Errorf("result %+v", r)
	}
}

// What a crash tore is mended and told of in one line; what is damaged, newer or
// foreign is left alone.
func TestBrokenLogs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(path string) error
		code   int
		want   []string
	}{
		{"torn", func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, append(data, data[:20]...), 0o600) // half a frame
		}, exitOK, []string{"20 bytes cut off, and what could be read of it kept: 0 events"}},
		{"damaged", func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			copy(data[len(data)/3:], "nothing that a crash would leave")
			return os.WriteFile(path, data, 0o600)
		}, exitFailed, []string{"session log is corrupt", "'dsh-actor sessions check agent-"}},
		{"newer", func(path string) error {
			return os.Rename(path, filepath.Join(filepath.Dir(path), "session.v7.jsonl.zstd"))
		}, exitFailed, []string{"version 7 is newer than 0", "'dsh-actor sessions check agent-"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, id, _ := twoTurns(t, project(t), llmtest.Text("third"))
			if err := tt.damage(h.log(id)); err != nil {
				t.Fatal(err)
			}
			s := h.want(tt.code, "run", "--resume", string(id), "hi")
			s.says(&s.err, tt.want...)
			if n := len(h.srv.Requests()); (n == 3) != (tt.code == exitOK) {
				t.Errorf("%d requests", n)
			}
			if tt.code != exitOK {
				s = h.want(tt.code, "run", "--resume", string(id), "-o", "json", "hi")
				if r := resultOf(t, s); r.Error == nil || r.Error.Code != "SESSION_UNREADABLE" {
					t.Errorf("result %+v", r)
				}
			}
			if tt.code == exitOK && strings.Count(s.err.String(), "a crash had") != 1 {
				t.Errorf("stderr: %s", s.err.String())
			}
		})
	}
}
