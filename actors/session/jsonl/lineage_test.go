package jsonl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// relative makes a log that names a parent, and closes it.
func relative(t *testing.T, s *Store, id, parent dsh.SessionID, at time.Time) {
	t.Helper()
	h := sessiontest.Header(id)
	h.ParentSession, h.CreatedAt = parent, at.UnixMilli()
	log, err := s.Create(t.Context(), h)
	if err == nil {
		err = errors.Join(session.Extend(t.Context(), log, sessiontest.Turn(1, 0)), log.Sync(t.Context()), log.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func wantChildren(t *testing.T, s *Store, parent dsh.SessionID, want ...dsh.SessionID) {
	t.Helper()
	var got []dsh.SessionID
	for h, err := range s.Children(t.Context(), parent) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, h.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("children of %s: %v, want %v", parent, got, want)
	}
}

// Two stores in one directory see each other's logs, whatever they remember, and
// logs that come into directories which they know.
func TestLineage(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	open := func() *Store {
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, other := open(), open()
	relative(t, one, "p", "", now)
	wantChildren(t, other, "p")
	relative(t, one, "a", "p", now.Add(time.Second))
	wantChildren(t, one, "p", "a")
	wantChildren(t, other, "p", "a")

	project := filepath.Dir(dirOf(t, one, "a"))
	old := now.Add(-time.Hour)
	settle := func() { // the last change was long ago
		t.Helper()
		old = old.Add(time.Minute)
		if err := os.Chtimes(project, old, old); err != nil {
			t.Fatal(err)
		}
		wantChildren(t, other, "p", "a")
		if other.lineage.projects[filepath.Base(project)].changed.IsZero() {
			t.Error("a directory that is at rest is read again")
		}
	}
	settle()
	wantChildren(t, other, "p", "a") // without a look into the project
	b := filepath.Join(project, "b")
	if err := os.Mkdir(b, 0o700); err != nil {
		t.Fatal(err)
	}
	settle() // the directory is known, and has no log yet
	relative(t, one, "b", "p", now.Add(2*time.Second))
	if err := os.Chtimes(project, old, old); err != nil {
		t.Fatal(err)
	}
	wantChildren(t, other, "p", "a", "b")
	if err := os.RemoveAll(b); err != nil {
		t.Fatal(err)
	}
	wantChildren(t, other, "p", "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range open().Children(ctx, "p") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	}
}

// What is older than a session is not read for its children, and is when an
// older one asks.
func TestLineageLeavesTheOldAlone(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	before := now.Add(-48 * time.Hour)
	relative(t, s, "grandma", "", before.Add(-time.Hour))
	for i := range 3 {
		id := dsh.SessionID(fmt.Sprintf("aunt-%d", i))
		relative(t, s, id, "grandma", before.Add(time.Duration(i)*time.Second))
		if err := os.Chtimes(dirOf(t, s, id), before, before); err != nil {
			t.Fatal(err)
		}
	}
	relative(t, s, "young", "", now)
	relative(t, s, "kid", "young", now)
	wantChildren(t, s, "young", "kid")
	unread := 0
	for _, p := range s.lineage.projects {
		unread += len(p.open)
	}
	if unread != 3 {
		t.Errorf("%d logs are unread, want the three that are older", unread)
	}
	wantChildren(t, s, "grandma", "aunt-0", "aunt-1", "aunt-2")
	wantChildren(t, s, "nobody")
}

func dirOf(t *testing.T, s *Store, id dsh.SessionID) string {
	t.Helper()
	path, err := s.find(id)
	if err != nil || path == "" {
		t.Fatalf("%s: %q, %v", id, path, err)
	}
	return filepath.Dir(path)
}
