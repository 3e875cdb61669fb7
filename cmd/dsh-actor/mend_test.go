package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// A den is a directory of sessions that are to be mended.
type den struct {
	t    *testing.T
	root string
}

func newDen(t *testing.T) *den {
	t.Helper()
	return &den{t, filepath.Join(t.TempDir(), "sessions")}
}

// store opens the den's store.
func (d *den) store() *jsonl.Store {
	d.t.Helper()
	s, err := jsonl.Open(d.root, jsonl.Options{Encoding: jsonl.Raw})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// add makes a sound session of two turns.
func (d *den) add(h dsh.SessionHeader) string {
	d.t.Helper()
	if h.CWD == "" {
		h.CWD = "/srv/demo"
	}
	log, err := d.store().Create(d.t.Context(), h)
	if err != nil {
		d.t.Fatal(err)
	}
	one := sessiontest.Turn(1, 0)
	events := append(one, sessiontest.Turn(2, one[len(one)-1].Last()+1)...)
	if err := errors.Join(session.Extend(d.t.Context(), log, events), log.Sync(d.t.Context()), log.Close()); err != nil {
		d.t.Fatal(err)
	}
	return d.path(h.ID)
}

func (d *den) path(id dsh.SessionID) string {
	return filepath.Join(d.root, "--srv-demo--", string(id), "session.jsonl")
}

// spoil makes a session and changes its file.
func (d *den) spoil(id dsh.SessionID, change func([]byte) []byte) {
	d.t.Helper()
	path := d.add(dsh.SessionHeader{ID: id})
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(data), 0o600)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// fill makes one session of each kind that commands treat differently.
func (d *den) fill() *den {
	d.t.Helper()
	d.add(dsh.SessionHeader{ID: "sound-1"})
	d.spoil("torn-1", func(b []byte) []byte { return b[:len(b)-5] })
	d.spoil("corrupt-1", func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"type":"step/start"`), []byte(`"type":"step`), 1)
	})
	d.spoil("newer-1", func(b []byte) []byte { return bytes.Replace(b, []byte(`"version":0`), []byte(`"version":3`), 1) })
	d.spoil("empty-1", func([]byte) []byte { return nil })
	d.spoil("moved-1", func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"cwd":"/srv/demo"`), []byte(`"cwd":"/srv/other"`), 1)
	})
	foreign, err := jsonl.Open(filepath.Join(d.t.TempDir(), "z"), jsonl.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	log, err := foreign.Create(d.t.Context(), dsh.SessionHeader{ID: "zstd-1", CWD: "/srv/demo"})
	if err != nil {
		d.t.Fatal(err)
	}
	if err := errors.Join(session.Extend(d.t.Context(), log, sessiontest.Turn(1, 0)), log.Close()); err != nil {
		d.t.Fatal(err)
	}
	found, err := foreign.Survey(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	to := filepath.Join(d.root, "--srv-demo--", "zstd-1")
	if err := errors.Join(os.MkdirAll(to, 0o700), os.Rename(found[0].Path, filepath.Join(to, "session.jsonl.zstd"))); err != nil {
		d.t.Fatal(err)
	}
	return d
}

// run runs a command about the den's sessions.
func (d *den) run(code int, args ...string) *shot {
	d.t.Helper()
	return newShot(d.t).want(code, append([]string{"sessions", "--dir", d.root}, args...)...)
}

// snapshot is everything in the den, with its times.
func (d *den) snapshot() map[string]string {
	d.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(d.root, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = info.ModTime().String() + info.Mode().String() + string(data)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// unchanged fails the test if what a function does changes anything.
func (d *den) unchanged(do func()) {
	d.t.Helper()
	before := d.snapshot()
	do()
	after := d.snapshot()
	if len(before) != len(after) {
		d.t.Errorf("%d files, now %d", len(before), len(after))
	}
	for path, was := range before {
		if after[path] != was {
			d.t.Errorf("%s was changed", path)
		}
	}
}

func TestSessionsCheck(t *testing.T) {
	d := newDen(t).fill()
	d.unchanged(func() {
		s := d.run(exitFailed, "check")
		s.says(&s.out, "torn-1  torn  ", "corrupt-1  corrupt  ", "-> see whether the file can be mended by hand; 'dsh-actor sessions repair corrupt-1 --cut'",
			"newer-1  newer  ", "use the release that wrote it", "moved-1  misplaced", "--srv-other--", "empty-1  empty  ", "zstd-1  other encoding",
			"'dsh-actor sessions export zstd-1 -o FILE'", "7 logs: 5 cannot be continued, 1 will be repaired by that.")
		if strings.Contains(s.out.String(), "sound-1") {
			t.Error("a sound log is shown")
		}
		s = d.run(exitFailed, "check", "--all")
		s.says(&s.out, "sound-1  ok  ")
		s = d.run(exitOK, "check", "sound", "torn-1")
		s.says(&s.out, "sound-1  ok", "continuing the session repairs it", "2 logs: all can be continued, 1 will be repaired by that.")
		s = d.run(exitFailed, "check", "corrupt-1", "--json")
		var c checked
		if err := json.Unmarshal([]byte(s.out.String()), &c); err != nil || c.Version != 1 || c.OK || len(c.Sessions) != 1 {
			t.Fatalf("%+v, %v", c, err)
		}
		if l := c.Sessions[0]; l.Verdict != "CORRUPT" || l.Problem == nil || l.Problem.Code != "CORRUPT" || l.OK || l.Damage == nil || l.Damage.Line == 0 || l.Damage.Closed != 0 || l.Next == "" {
			t.Errorf("%+v", l)
		}
		s = d.run(exitUsage, "check", "nobody")
		s.says(&s.err, "there is no session nobody", "sessions check --all")
	})
	empty := newDen(t)
	s := empty.run(exitOK, "check")
	s.says(&s.out, "There are no sessions in "+empty.root)
}

func TestSessionsRepair(t *testing.T) {
	d := newDen(t).fill()
	d.unchanged(func() {
		s := d.run(exitOK, "repair", "torn-1")
		s.says(&s.out, "  - cut ", "  - close turn 2, which was interrupted, with ", "Nothing was changed. 'dsh-actor sessions repair torn-1 --apply' does this.")
		s = d.run(exitFailed, "repair", "corrupt-1", "--apply")
		s.says(&s.err, "cannot be repaired without cutting", "it would keep 0 events", "--cut' says what")
		s = d.run(exitOK, "repair", "corrupt-1", "--cut")
		s.says(&s.out, "cut all ", "--apply --cut' does this")
		for _, id := range []string{"newer-1", "zstd-1"} {
			d.run(exitFailed, "repair", id, "--apply", "--cut")
		}
		s = d.run(exitOK, "repair", "sound-1", "--apply")
		s.says(&s.out, "There is nothing to repair.")
		for _, args := range [][]string{{"repair"}, {"repair", "a", "b"}, {"repair", "nobody"}, {"repair", ""}} {
			d.run(exitUsage, args...)
		}
	})
	log, err := d.store().Open(t.Context(), "sound-1")
	if err != nil {
		t.Fatal(err)
	}
	d.unchanged(func() {
		s := d.run(exitFailed, "repair", "sound-1")
		s.says(&s.err, "session is in use by process ")
		d.run(exitFailed, "repair", "sound-1", "--json")
		s = d.run(exitOK, "check", "sound-1")
		s.says(&s.out, "sound-1  in use", "process ")
	})
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	before, err := os.ReadFile(d.path("torn-1"))
	if err != nil {
		t.Fatal(err)
	}
	s := d.run(exitOK, "repair", "torn-1", "--apply", "--json")
	var r repaired
	if err := json.Unmarshal([]byte(s.out.String()), &r); err != nil || !r.Applied || r.Backup == "" || len(r.Steps) != 2 || r.Path != d.path("torn-1") {
		t.Fatalf("%+v, %v", r, err)
	}
	if kept, err := os.ReadFile(r.Backup); err != nil || !bytes.Equal(kept, before) {
		t.Errorf("backup: %v", err)
	}
	d.unchanged(func() { d.run(exitOK, "repair", "torn-1", "--apply") })
	for _, args := range [][]string{
		{"moved-1", "--apply"}, {"empty-1", "--apply"}, {"corrupt-1", "--apply", "--cut", "--no-backup"},
	} {
		s = d.run(exitOK, append([]string{"repair"}, args...)...)
		s.says(&s.out, "Done.")
	}
	s = d.run(exitOK, "check", "torn-1", "moved-1", "corrupt-1")
	s.says(&s.out, "torn-1  ok", "moved-1  ok", "corrupt-1  ok", "3 logs: all can be continued.\n")
}

func TestSessionsExportAndImport(t *testing.T) {
	d := newDen(t).fill()
	dir := t.TempDir()
	file := filepath.Join(dir, "out.json")
	d.run(exitOK, "export", "sound-1", "-o", file)
	document, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if s := d.run(exitOK, "export", "sound-1"); s.out.String() != string(document) {
		t.Error("standard output is not the file")
	}
	s := d.run(exitOK, "export", "torn-1")
	s.says(&s.err, "are not a whole write and are left out")
	s = d.run(exitOK, "export", "zstd-1")
	s.says(&s.out, `"id":"zstd-1"`)
	d.unchanged(func() {
		d.run(exitFailed, "export", "corrupt-1", "-o", file)
		d.run(exitFailed, "export", "newer-1")
		d.run(exitUsage, "export", "nobody")
		s = d.run(exitFailed, "import", file)
		s.says(&s.err, "exists already", "--as ID")
		d.run(exitFailed, "import", filepath.Join(dir, "none"))
		d.run(exitUsage, "import")
		d.run(exitUsage, "import", file, "--as", "")
		s = newShot(t)
		s.stdin = bytes.NewReader(document[:len(document)/2])
		s.want(exitFailed, "sessions", "--dir", d.root, "import", "-")
		s.says(&s.err, "it is cut off")
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, document) {
		t.Error("an export that failed changed the file")
	}
	s = d.run(exitOK, "import", file, "--as", "copy-1")
	s.says(&s.out, "copy-1  ")
	if got, want := d.run(exitOK, "export", "copy-1").out.String(), strings.Replace(string(document), "sound-1", "copy-1", 1); got != want {
		t.Error("the copy is another one")
	}
	other := newDen(t)
	s = newShot(t)
	s.stdin = bytes.NewReader(document)
	s.want(exitOK, "sessions", "--dir", other.root, "import", "-", "--json")
	var done struct {
		Version  int
		Sessions []importedSession
	}
	if err := json.Unmarshal([]byte(s.out.String()), &done); err != nil || done.Version != 1 || done.Sessions[0].Session != "sound-1" {
		t.Errorf("%+v, %v", done, err)
	}
	if got := other.run(exitOK, "export", "sound-1").out.String(); got != string(document) {
		t.Error("it changed on the way")
	}
}

func TestSessionsExportOfATree(t *testing.T) {
	d := newDen(t)
	d.add(dsh.SessionHeader{ID: "root-1"})
	d.add(dsh.SessionHeader{ID: "child-1", CreatedAt: 2, ParentSession: "root-1", Origin: "subagent", DelegationDepth: 1})
	d.add(dsh.SessionHeader{ID: "child-2", CreatedAt: 3, ParentSession: "child-1", Origin: "subagent", DelegationDepth: 2})
	d.spoil("broken-1", func(b []byte) []byte { return bytes.Replace(b, []byte(`"version":0`), []byte(`"version":3`), 1) })
	s := d.run(exitOK, "export", "root-1", "--tree")
	s.says(&s.err, "may belong to the session and are left out", "broken-1")
	document := s.out.String()
	other := newDen(t)
	in := newShot(t)
	in.stdin = strings.NewReader(document)
	in.want(exitOK, "sessions", "--dir", other.root, "import", "-")
	if got := other.run(exitOK, "export", "root-1", "--tree").out.String(); got != document {
		t.Error("it changed on the way")
	}
	in = newShot(t)
	in.stdin = strings.NewReader(document)
	in.want(exitUsage, "sessions", "--dir", other.root, "import", "-", "--as", "x")
	in.says(&in.err, "--as: a document of several sessions")
}

// A fork is what an agent that is forked there would begin with.
func TestSessionsFork(t *testing.T) {
	d := newDen(t)
	d.add(dsh.SessionHeader{ID: "from-1"})
	d.unchanged(func() {
		s := d.run(exitUsage, "fork", "from-1@3")
		s.says(&s.err, "turn 1 is open there; from-1@0 is before it, from-1@17 behind it")
		d.run(exitUsage, "fork", "from-1@1000")
		d.run(exitUsage, "fork", "nobody@3")
		s = d.run(exitUsage, "fork", "from-1@x")
		s.says(&s.err, "how many events to copy")
		d.run(exitUsage, "fork")
	})
	log, err := d.store().Open(t.Context(), "from-1") // it may be in use
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s := d.run(exitOK, "fork", "from-1@17", "--json")
	var forked struct {
		Session    dsh.SessionID
		ForkedFrom dsh.SessionID `json:"forked_from"`
		ForkedAt   dsh.Seq       `json:"forked_at"`
	}
	if err := json.Unmarshal([]byte(s.out.String()), &forked); err != nil || forked.ForkedFrom != "from-1" || forked.ForkedAt != 17 {
		t.Fatalf("%+v, %v", forked, err)
	}
	got, gotHeader := contentOf(t, d.store(), forked.Session)

	events, err := log.Read(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	m := memory.New()
	from, err := m.Create(t.Context(), log.Header())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(session.Extend(t.Context(), from, events), from.Close()); err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.New(runtime.Options{Store: m})
	if err != nil {
		t.Fatal(err)
	}
	a, err := rt.Fork(t.Context(), "from-1", 17, runtime.Spec{CWD: "/srv/demo"})
	if err != nil {
		t.Fatal(err)
	}
	id := a.Session()
	if err := rt.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want, wantHeader := contentOf(t, m, id)
	for _, list := range []*[]string{&got, &want} {
		last := &(*list)[len(*list)-1]
		var ev dsh.Event
		if err := ev.UnmarshalJSON([]byte(*last)); err != nil {
			t.Fatal(err)
		}
		ev.Time = 0 // of the fork
		*last = string(ev.AppendJSON(nil))
	}
	gotHeader.ID, gotHeader.CreatedAt = wantHeader.ID, wantHeader.CreatedAt
	if !slices.Equal(got, want) || gotHeader != wantHeader {
		t.Errorf("%+v with %d events, want %+v with %d", gotHeader, len(got), wantHeader, len(want))
	}
	s = d.run(exitOK, "fork", "from-1")
	id = dsh.SessionID(strings.TrimSpace(s.out.String()))
	if events, _ := contentOf(t, d.store(), id); len(events) != 2*17+1 {
		t.Errorf("%d events", len(events))
	}
}

// contentOf returns the events of a session, as JSON, and its header.
func contentOf(t *testing.T, s session.Store, id dsh.SessionID) (list []string, h dsh.SessionHeader) {
	t.Helper()
	log, err := s.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	events, err := log.Read(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for ev := range dsh.Expand(events) {
		list = append(list, string(ev.AppendJSON(nil)))
	}
	return list, log.Header()
}

func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"agent-1": "agent-1", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'",
	} {
		if got := shellWord(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// endless is a document that does not end, in the middle of which somebody
// presses Ctrl-C.
type endless struct{ signals chan<- os.Signal }

func (e *endless) Read(p []byte) (int, error) {
	if e.signals != nil {
		e.signals <- os.Interrupt
		e.signals = nil
	}
	return copy(p, " "), nil
}

// Ctrl-C ends what takes long, and nothing is left of it.
func TestSessionsInterrupted(t *testing.T) {
	d := newDen(t)
	d.add(dsh.SessionHeader{ID: "one-1"})
	d.unchanged(func() {
		s := newShot(t)
		s.stdin = &endless{s.signals}
		s.want(exitInterrupted, "sessions", "--dir", d.root, "import", "-")
		if s.err.String() != "" {
			t.Errorf("stderr: %s", s.err.String())
		}
	})
}
