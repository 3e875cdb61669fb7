package main

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// deletedIn returns what delete --json wrote.
func deletedIn(t *testing.T, s *shot) (d deleted) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.out.String()), &d); err != nil || d.Version != 1 {
		t.Fatalf("%v: %s", err, s.out.String())
	}
	return d
}

// ids returns the sessions that are there.
func (d *den) ids() (ids []dsh.SessionID) {
	d.t.Helper()
	found, err := d.store().Survey(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	for _, f := range found {
		ids = append(ids, f.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestSessionsDelete(t *testing.T) {
	d := newDen(t).fill()
	all := len(d.ids())
	log, err := d.store().Open(t.Context(), "sound-1")
	if err != nil {
		t.Fatal(err)
	}
	d.unchanged(func() {
		for _, tt := range []struct {
			code int
			args []string
			want string
		}{
			{exitUsage, nil, "the ID of a session is needed"},
			{exitUsage, []string{"torn-1"}, "nobody can be asked here whether sessions are to be deleted; --yes says"},
			{exitUsage, []string{"torn-1", "nobody", "--yes"}, "there is no session nobody"},
			{exitUsage, []string{"tor", "--yes"}, "tor is too short to mean a session"},
			{exitUsage, []string{"", "--yes"}, "is empty"},
			{exitFailed, []string{"torn-1", "sound-1", "--yes"}, "sound-1 is in use by process "},
		} {
			s := d.run(tt.code, append([]string{"delete"}, tt.args...)...)
			s.says(&s.err, tt.want)
		}
	})
	s := d.run(exitOK, "delete", "torn-1", "corrupt", "torn-1", "-y")
	if got := s.out.String(); got != "deleted torn-1\ndeleted corrupt-1\n" || s.err.String() != "" {
		t.Errorf("%s%s", got, s.err.String())
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"sound-1", "newer-1", "empty-1", "moved-1", "zstd-1"} {
		s := d.run(exitOK, "delete", id, "--yes", "--json")
		if got := deletedIn(t, s); !slices.Equal(got.Sessions, []dsh.SessionID{dsh.SessionID(id)}) || got.Error != nil || got.Stay != 0 {
			t.Errorf("%+v", got)
		}
	}
	if ids := d.ids(); len(ids) != 0 || all != 7 {
		t.Errorf("%d, now %v", all, ids)
	}
}

// What cannot be deleted is told of and keeps no other from it.
func TestSessionsDeleteFails(t *testing.T) {
	d := newDen(t)
	d.add(dsh.SessionHeader{ID: "one-1"})
	mine := strings.TrimSuffix(d.add(dsh.SessionHeader{ID: "two-2"}), "session.jsonl") + "notes.txt"
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := d.run(exitFailed, "delete", "two-2", "one-1", "--yes")
	s.says(&s.err, mine+" is no part of a session; move it away first")
	s.says(&s.out, "deleted one-1\n")
	s = d.run(exitFailed, "delete", "two-2", "--yes", "--json")
	if got := deletedIn(t, s); len(got.Sessions) != 0 || got.Error == nil || !strings.Contains(got.Error.Message, mine) {
		t.Errorf("%+v", got)
	}
	if ids := d.ids(); !slices.Equal(ids, []dsh.SessionID{"two-2"}) {
		t.Error(ids)
	}
}

// Sub-agents' sessions go with --tree only; forks are sessions of their own.
func TestSessionsDeleteTree(t *testing.T) {
	d := newDen(t)
	d.add(dsh.SessionHeader{ID: "root-1"})
	d.add(dsh.SessionHeader{ID: "child-1", ParentSession: "root-1", Origin: "subagent", DelegationDepth: 1})
	d.add(dsh.SessionHeader{ID: "grandchild-1", ParentSession: "child-1", Origin: "subagent", DelegationDepth: 2})
	d.add(dsh.SessionHeader{ID: "fork-1", ParentSession: "root-1"})
	d.add(dsh.SessionHeader{ID: "root-2"})
	d.add(dsh.SessionHeader{ID: "child-2", ParentSession: "root-2", Origin: "subagent", DelegationDepth: 1})
	s := d.run(exitOK, "delete", "root-2", "--yes")
	s.says(&s.err, "root-2 had 1 session of sub-agents, which stay; --tree deletes them, too")
	s = d.run(exitOK, "delete", "child-1", "--yes", "--json")
	if got := deletedIn(t, s); got.Stay != 1 {
		t.Errorf("%+v", got)
	}
	d.add(dsh.SessionHeader{ID: "child-1", ParentSession: "root-1", Origin: "subagent", DelegationDepth: 1})
	s = d.run(exitOK, "delete", "root-1", "--tree", "--yes", "--json")
	if got := deletedIn(t, s); got.Stay != 0 || !slices.Equal(got.Sessions, []dsh.SessionID{"grandchild-1", "child-1", "root-1"}) {
		t.Errorf("%+v", got)
	}
	if ids := d.ids(); !slices.Equal(ids, []dsh.SessionID{"child-2", "fork-1"}) {
		t.Error(ids)
	}
}

// stuck is a terminal at which nobody types.
type stuck struct{ io.Reader }

func (stuck) Stat() (os.FileInfo, error) { return device{}, nil }

// At a terminal the sessions are shown, and deleted after a yes.
func TestSessionsDeleteAsks(t *testing.T) {
	d := newDen(t)
	d.add(dsh.SessionHeader{ID: "one-1"})
	d.add(dsh.SessionHeader{ID: "two-2"})
	ask := func(stdin io.Reader, ids ...string) (*shot, *tty) {
		s, screen := newShot(t), &tty{}
		s.stdin, s.stderr = stdin, screen
		s.begin(append([]string{"sessions", "--sessions-dir", d.root, "delete"}, ids...)...)
		return s, screen
	}
	d.unchanged(func() {
		for _, answer := range []string{"", "\n", "n\n", "yess\n"} {
			s, screen := ask(&terminal{*strings.NewReader(answer)}, "one-1", "two-2")
			if code := s.end(); code != exitFailed {
				t.Errorf("%q: exit code %d", answer, code)
			}
			s.says(&screen.buffer, "/srv/demo", "Delete these 2 sessions for good? [y/N] ", "nothing was deleted")
		}
		r, w := io.Pipe()
		s, screen := ask(stuck{r}, "one-1")
		await(t, "the question", func() bool { return strings.Contains(screen.String(), "Delete this session for good? [y/N] ") })
		s.signals <- syscall.SIGINT
		if code := s.end(); code != exitInterrupted {
			t.Errorf("exit code %d", code)
		}
		_ = w.Close()
	})
	s, _ := ask(&terminal{*strings.NewReader("Yes\n")}, "one-1", "two-2")
	if code := s.end(); code != exitOK || len(d.ids()) != 0 {
		t.Errorf("exit code %d, %v", code, d.ids())
	}
}

// A name means one session or none, and says which it may have meant.
func TestMeaning(t *testing.T) {
	ids := []dsh.SessionID{"agent-1234", "agent-12ab", "agent-12ab-2", "other"}
	for i := range 10 {
		ids = append(ids, dsh.SessionID("many-"+string(rune('a'+i))))
	}
	for name, want := range map[string]string{
		"agent-1234": "agent-1234",
		"1234":       "agent-1234",
		"agent-123":  "agent-1234",
		"agent-12ab": "agent-12ab", // an ID comes before the beginning of one
		"12ab":       "2 sessions begin with 12ab: agent-12ab, agent-12ab-2",
		"123":        "123 is too short to mean a session: at least 4 characters of its ID are needed",
		"xyz":        "there is no session xyz; 'list' shows what there is",
		"many":       "10 sessions begin with many: many-a, many-b, many-c, many-d, many-e, many-f, …",
		"":           "the ID of a session is empty",
	} {
		m := meaning{name: name}
		for _, id := range slices.Concat(ids, ids[:2]) {
			m.add(id)
		}
		id, err := m.one("list")
		if got := string(id); got != want && (err == nil || err.Error() != want) {
			t.Errorf("%s means %q, %v; want %s", name, got, err, want)
		}
	}
}

// Verdicts are codes for programs, and back.
func TestCodes(t *testing.T) {
	for verdict, code := range map[jsonl.Verdict]string{
		jsonl.Sound: "OK", jsonl.Foreign: "OTHER_ENCODING", jsonl.Unknown: "UNKNOWN_EVENT", jsonl.Torn: "TORN",
	} {
		if got := codeOf(verdict); got != code || inWords(got) != string(verdict) {
			t.Errorf("%s is %s, %s", verdict, got, inWords(got))
		}
	}
}
