package pebble

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

func openStore(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	sessiontest.Run(t, func(t *testing.T) session.Store { return openStore(t, t.TempDir()) })
	sessiontest.RunReopened(t, func(t *testing.T, dir string) session.Store { return openStore(t, dir) })
}

// A place that is no database is refused and left as it is.
func TestForeignPlaces(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, says string }{
		{dir, "holds something else, such as notes.txt"},
		{file, "not a directory"},
		{filepath.Join(file, "below"), "not a directory"},
	} {
		if _, err := Open(c.dir); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v", c.dir, err)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("left behind: %v (%v)", names, err)
	}
}

// What cannot be a key or is of another version is refused.
func TestRefusedHeaders(t *testing.T) {
	s := openStore(t, t.TempDir())
	newer := sessiontest.Header("newer")
	newer.Version = dsh.FormatVersion + 1
	for _, c := range []struct {
		h    dsh.SessionHeader
		says string
	}{
		{sessiontest.Header(""), "the ID is empty"},
		{sessiontest.Header(dsh.SessionID(strings.Repeat("x", 1<<16))), "65536 bytes"},
		{sessiontest.Header("a\xff"), "not UTF-8"},
		{newer, "version 1"},
	} {
		if _, err := s.Create(t.Context(), c.h); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.40s: got %.200v", c.h.ID, err)
		}
	}
	if _, err := s.Open(t.Context(), dsh.SessionID(strings.Repeat("x", 1<<16))); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("open: got %.200v", err)
	}
}

// IDs of which one begins with the other, or ends in zeros, have nothing of
// each other.
func TestSimilarIDs(t *testing.T) {
	s := openStore(t, t.TempDir())
	ids := []dsh.SessionID{"a", "a\x00", "a\x00\x01", "ab", "\u00ff", "\U0010ffff"}
	for i, id := range ids {
		h := sessiontest.Header(id)
		h.CreatedAt += int64(i)
		log, err := s.Create(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		for turn := range i + 1 {
			if err := session.Extend(t.Context(), log, sessiontest.Turn(turn, dsh.Seq(turn)*after(sessiontest.Turn(0, 0)))); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, id := range ids {
		log, err := s.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		events, err := log.Read(t.Context(), 0, 0)
		if want := dsh.Seq(i+1) * after(sessiontest.Turn(0, 0)); err != nil || after(events) != want {
			t.Errorf("%q: %d events instead of %d (%v)", id, after(events), want, err)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A store that was closed says so; the process can open it again.
func TestClosedStore(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	log, err := s.Create(t.Context(), sessiontest.Header("a"))
	if err != nil {
		t.Fatal(err)
	}
	first := sessiontest.Turn(1, 0)
	if err := errors.Join(session.Extend(t.Context(), log, first), s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	_, rerr := log.Read(t.Context(), 0, 0)
	_, oerr := s.Open(t.Context(), "b")
	_, cerr := s.Create(t.Context(), sessiontest.Header("b"))
	var lerr error
	for _, lerr = range s.List(t.Context()) {
	}
	for what, err := range map[string]error{
		"append": session.Extend(t.Context(), log, sessiontest.Turn(2, after(first))), "sync": log.Sync(t.Context()),
		"read": rerr, "open": oerr, "create": cerr, "list": lerr, "close": log.Close(),
	} {
		if !errors.Is(err, session.ErrClosed) || !strings.Contains(fmt.Sprint(err), "the store is closed") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	again, err := openStore(t, dir).Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	events, err := again.Read(t.Context(), 0, 0)
	if err != nil || after(events) != after(first) {
		t.Errorf("%d events (%v)", after(events), err)
	}
}
