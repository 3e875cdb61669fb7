package jsonl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

func fileOf(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestProjectKey(t *testing.T) {
	for cwd, want := range map[string]string{
		"/srv/demo":   "--srv-demo--",
		"/":           "--root--",
		"/home/a b/π": "--home-a~0020b-~03C0--",
		"/x//y":       "--x-y--",
		`C:\w\d`:      "--C-w-d--",
		"/~u":         "--~007Eu--",
		"/a/.b":       "--a-.b--",
		"---":         "--root--",
		"/𝄞":          "--~D834~DD1E--",
	} {
		if got, err := projectKey(cwd); err != nil || got != want {
			t.Errorf("%s: got %s, want %s (%v)", cwd, got, want, err)
		}
	}
	if got, _ := projectKey("/" + strings.Repeat("x", 300)); len(got) != 255 {
		t.Errorf("a long path has %d characters", len(got))
	}
	if _, err := projectKey(""); err == nil {
		t.Error("empty is accepted")
	}
}

func TestEncodeSegment(t *testing.T) {
	for id, want := range map[dsh.SessionID]string{
		"main-session-0": "main-session-0",
		"a/b":            "a~002Fb",
		".":              "~002E",
		"..":             "~002E~002E",
		"...":            "...",
		"~":              "~007E",
	} {
		if got, err := encodeSegment(id); err != nil || got != want {
			t.Errorf("%s: got %s, want %s (%v)", id, got, want, err)
		}
	}
	if _, err := encodeSegment(""); err == nil {
		t.Error("empty is accepted")
	}
	rapid.Check(t, func(t *rapid.T) {
		id := dsh.SessionID(rapid.StringN(1, 20, -1).Draw(t, "id"))
		name, err := encodeSegment(id)
		if err != nil || strings.ContainsAny(name, `/\:`) || name == "." || name == ".." || decodeSegment(name) != id {
			t.Fatalf("%q is %q (%v)", id, name, err)
		}
	})
}

func header(id dsh.SessionID) dsh.SessionHeader {
	return dsh.SessionHeader{Version: dsh.FormatVersion, ID: id, CreatedAt: 1, CWD: "/srv/demo"}
}

// tree lists a directory with the permissions of what is in it.
func tree(t *testing.T, root string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && path != root {
			info, _ := d.Info()
			rel, _ := filepath.Rel(root, path)
			list = append(list, fmt.Sprintf("%o %s", info.Mode().Perm(), rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Nothing is on the disk before the first append, and nothing but the log and
// its lock behind it.
func TestLazyFiles(t *testing.T) {
	root := filepath.Join(t.TempDir(), "sessions")
	s, err := Open(root, Options{Encoding: Raw})
	if err != nil {
		t.Fatal(err)
	}
	log, err := s.Create(t.Context(), header("a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Sync(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		t.Error("there is a directory already")
	}
	if err := session.Extend(t.Context(), log, turns(1, 1)); err != nil {
		t.Fatal(err)
	}
	want := []string{"700 --srv-demo--", "700 --srv-demo--/a", "600 --srv-demo--/a/session.jsonl", "600 --srv-demo--/a/session.lock"}
	if got := tree(t, root); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	never, err := s.Create(t.Context(), header("never"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(log.Close(), never.Close()); err != nil {
		t.Error(err)
	}
	if got := tree(t, root); !slices.Equal(got, want) {
		t.Errorf("closed: got %q", got)
	}
	if _, err := s.Open(t.Context(), "never"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a log that was never written: %v", err)
	}
}

// One bad log hides no other, and none of another kind is touched.
func TestMixedDirectory(t *testing.T) {
	s, path := place(t, Raw, sample(t, sampleA))
	write := func(name string, data string) {
		name = filepath.Join(s.root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	head := func(id string, version int) string {
		return fmt.Sprintf(`{"type":"session","version":%d,"id":%q,"createdAt":5,"delegationDepth":0}`+"\n", version, id)
	}
	write("notes.txt", "not ours")
	write("_no-cwd/second/session.jsonl", head("second", 0))
	write("_no-cwd/long/session.jsonl", strings.Replace(head("long", 0), `"delegationDepth"`, `"agentPreset":"`+strings.Repeat("x", 3*headerSize)+`","delegationDepth"`, 1))
	write("_no-cwd/empty/session.jsonl", "")
	write("_no-cwd/alien/session.jsonl", "hello\n")
	write("_no-cwd/nothing/session.lock", "")
	write("_no-cwd/newer/session.jsonl", head("newer", 3))
	write("_no-cwd/newest/session.jsonl", head("newest", 0))
	write("_no-cwd/newest/session.v3.jsonl.zstd", "")
	write("_no-cwd/other/session.jsonl.zstd", "")
	write("_no-cwd/moved/session.jsonl", head("elsewhere", 0))
	write("_no-cwd/flat.jsonl", head("flat", 0))
	write("--a--/"+sampleID+"/session.jsonl", string(sample(t, sampleA)))

	var good []dsh.SessionID
	bad := map[dsh.SessionID]error{}
	for h, err := range s.List(t.Context()) {
		if err != nil {
			bad[h.ID] = err
			continue
		}
		good = append(good, h.ID)
	}
	if want := []dsh.SessionID{"long", "second", sampleID}; !slices.Equal(good, want) {
		t.Errorf("listed %v", good)
	}
	for id, want := range map[dsh.SessionID]struct {
		list, open error
	}{
		"newer":   {dsh.ErrVersion, dsh.ErrVersion},
		"newest":  {dsh.ErrVersion, dsh.ErrVersion},
		"other":   {ErrEncoding, ErrEncoding},
		"moved":   {ErrCorrupt, ErrCorrupt},
		"empty":   {nil, session.ErrNotFound},
		"alien":   {nil, ErrCorrupt},
		"nothing": {nil, session.ErrNotFound},
		sampleID:  {ErrCorrupt, ErrCorrupt},
	} {
		if !errors.Is(bad[id], want.list) || want.list == nil && bad[id] != nil {
			t.Errorf("%s: listed with %v", id, bad[id])
		}
		_, err := s.Open(t.Context(), id)
		if !errors.Is(err, want.open) {
			t.Errorf("%s: opened with %v", id, err)
		}
		if errors.Is(want.open, dsh.ErrVersion) && !strings.Contains(err.Error(), "newer") {
			t.Errorf("%s: %v does not say that it is newer", id, err)
		}
	}
	if len(bad) != 6 {
		t.Errorf("%d bad logs: %v", len(bad), bad)
	}
	if err := os.RemoveAll(filepath.Join(s.root, "--a--")); err != nil {
		t.Fatal(err)
	}
	resume(t, s, path)
}

// What a crash left of making a log goes when it is made or opened again.
func TestSweep(t *testing.T) {
	s, path := place(t, Raw, sample(t, sampleA))
	left := path + ".0123456789ab.tmp"
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	resume(t, s, path)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there", left)
	}
}
