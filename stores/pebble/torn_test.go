package pebble

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// interrupted returns the files of a store as a crash would leave them after
// some turns, the events, and the name of the write-ahead log.
func interrupted(t *testing.T, turns int) (files string, all []dsh.Event, wal string) {
	t.Helper()
	dir := t.TempDir()
	s := openStore(t, dir)
	log, err := s.Create(t.Context(), sessiontest.Header("a"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	for turn := range turns {
		events := sessiontest.Turn(turn, after(all))
		if err := errors.Join(session.Extend(t.Context(), log, events), log.Sync(t.Context())); err != nil {
			t.Fatal(err)
		}
		all = append(all, events...)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no write-ahead log (%v)", err)
	}
	files = t.TempDir()
	if err := os.RemoveAll(files); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(files, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return files, all, filepath.Base(slices.Max(logs))
}

// However much of the end of the write-ahead log a crash took: what is left is
// a beginning of the log, in whole batches, and can be continued.
func TestTornEnd(t *testing.T) {
	files, all, wal := interrupted(t, 5)
	data, err := os.ReadFile(filepath.Join(files, wal))
	if err != nil {
		t.Fatal(err)
	}
	turn := after(sessiontest.Turn(0, 0))
	seen := map[dsh.Seq]bool{}
	for cut := 0; cut < len(data); cut += 1 + len(data)/60 {
		dir := filepath.Join(t.TempDir(), "store")
		if err := os.CopyFS(dir, os.DirFS(files)); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, wal), int64(len(data)-cut)); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, dir)
		log, err := s.Open(t.Context(), "a")
		if errors.Is(err, session.ErrNotFound) {
			seen[0] = true
			continue
		}
		if err != nil {
			t.Fatalf("%d bytes cut off: %v", cut, err)
		}
		got, err := log.Read(t.Context(), 0, 0)
		next := after(got)
		if err != nil || next%turn != 0 {
			t.Fatalf("%d bytes cut off: %d events (%v)", cut, next, err)
		}
		seen[next] = true
		equal(t, got, dsh.Cut(all, next))
		if err := errors.Join(session.Extend(t.Context(), log, sessiontest.Turn(7, next)), log.Sync(t.Context()), log.Close()); err != nil {
			t.Errorf("%d bytes cut off: %v", cut, err)
		}
	}
	for n := range dsh.Seq(6) {
		if !seen[n*turn] {
			t.Errorf("no cut left %d events", n*turn)
		}
	}
}

// What is damaged is told and never read as something else.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	log, err := s.Create(t.Context(), sessiontest.Header("a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Extend(t.Context(), log, sessiontest.Turn(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(log.Close(), s.db.engine.Flush(), s.Close()); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) != 1 {
		t.Fatalf("tables %v (%v)", tables, err)
	}
	data, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	data[100] ^= 1
	if err := os.WriteFile(tables[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir)
	log, err = s.Open(t.Context(), "a")
	if err == nil {
		_, err = log.Read(t.Context(), 0, 0)
	}
	if !errors.Is(err, jsonl.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}
