package jsonl

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
)

// Every part of a header is stillborn, with zeros behind it or without, and what
// has more than the header is not.
func TestStillborn(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		y := newYard(t, e)
		first, _, _ := twoTurns()
		head, whole := y.file("a"), y.file("a", first)
		if !bytes.HasPrefix(whole, head) {
			t.Fatal("the header is no unit of its own")
		}
		want := func(what string, n int, data []byte, yes bool) {
			t.Helper()
			path := y.put("--srv-demo--/a/"+y.box.name(), data)
			if got := stillborn(path, y.box); got != yes || got != isStillborn(y.box, data) {
				t.Errorf("%d bytes %s: %v", n, what, got)
			}
		}
		for n := range len(head) {
			want("of the header", n, head[:n], true)
			for _, zeros := range []int{1, 40, 5000, 2 * headerSize} {
				want("of the header and zeros", n, append(bytes.Clone(head[:n]), make([]byte, zeros)...), true)
			}
		}
		for n := len(head); n <= len(whole); n += 1 + len(whole)/20 {
			want("of the log", n, whole[:n], false)
			want("of the log and zeros", n, append(bytes.Clone(whole[:n]), make([]byte, 5000)...), false)
		}
		for i := range head { // damage is no reason to write over a log
			want("are right", i, flip(whole, i, 0x40), false)
		}
		for _, odd := range []string{"notes", "{}", "no header\n", "\x28\xb5\x2f\xfdwhatever\x00\x00"} {
			want("of something else", len(odd), []byte(odd), false)
		}
	})
}

// A stillborn log is none: it is not listed nor opened, and makes room for one of
// its ID, in another project, too. A repair removes it.
func TestStillbornMakesRoom(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		for _, project := range []string{"--srv-demo--", "--elsewhere--"} {
			y := newYard(t, e)
			head := y.file("a")
			y.put(filepath.Join(project, "a", y.box.name()), head[:len(head)/2])
			if r, err := y.Check(t.Context(), "a"); err != nil || r.Verdict != Empty {
				t.Errorf("checked as %s, %v", r.Verdict, err)
			}
			_, err := y.Open(t.Context(), "a")
			if !errors.Is(err, session.ErrNotFound) {
				t.Errorf("opened: %v", err)
			}
			log, err := y.Create(t.Context(), header("a"))
			if err != nil {
				t.Fatal(err)
			}
			err = errors.Join(session.Extend(t.Context(), log, sessiontest.Turn(1, 0)), log.Sync(t.Context()), log.Close())
			if err != nil {
				t.Fatal(err)
			}
			if log, err = y.Open(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			if err := log.Close(); err != nil {
				t.Error(err)
			}
			if _, err := y.Create(t.Context(), header("a")); !errors.Is(err, session.ErrExists) {
				t.Errorf("created twice: %v", err)
			}
			path := y.put("--srv-demo--/b/"+y.box.name(), head[:len(head)/2])
			if _, err := y.Repair(t.Context(), "b", RepairOptions{Apply: true}); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("the repair left it")
			}
		}
	})
}

// What another process makes of an ID meanwhile is not written over.
func TestCreatedMeanwhile(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		mine := newYard(t, e)
		other, err := Open(mine.root, Options{Encoding: e})
		if err != nil {
			t.Fatal(err)
		}
		first, err := mine.Create(t.Context(), header("a"))
		if err != nil {
			t.Fatal(err)
		}
		second, err := other.Create(t.Context(), header("a"))
		if err != nil {
			t.Fatal(err)
		}
		turn := sessiontest.Turn(1, 0)
		if err := errors.Join(session.Extend(t.Context(), second, turn), second.Sync(t.Context())); err != nil {
			t.Fatal(err)
		}
		if err := session.Extend(t.Context(), first, turn); !errors.Is(err, session.ErrInUse) {
			t.Errorf("while it is in use: %v", err)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
		before := fileOf(t, filepath.Join(mine.root, "--srv-demo--/a", mine.box.name()))
		if err := session.Extend(t.Context(), first, turn); !errors.Is(err, session.ErrExists) {
			t.Errorf("after that: %v", err)
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(before, fileOf(t, filepath.Join(mine.root, "--srv-demo--/a", mine.box.name()))) {
			t.Error("the log was changed")
		}
	})
}

// A log that its owner appended to and did not sync is durable once the next
// owner has synced, with its name.
func TestSyncOfWhatOthersWrote(t *testing.T) {
	root := t.TempDir()
	disk := &badDisk{from: 1 << 40}
	s, err := open(root, Options{SyncEach: true}, disk)
	if err != nil {
		t.Fatal(err)
	}
	log, err := s.Create(t.Context(), header("a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(session.Extend(t.Context(), log, sessiontest.Turn(1, 0)), log.Close()); err != nil {
		t.Fatal(err)
	}
	if len(disk.unsynced) == 0 {
		t.Fatal("closing made it durable")
	}
	next, err := open(root, Options{SyncEach: true}, disk)
	if err != nil {
		t.Fatal(err)
	}
	if log, err = next.Open(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := log.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "--srv-demo--", "a", s.box.name())
	file := disk.files[len(disk.files)-1]
	if info, err := file.Stat(); err != nil || file.durable != info.Size() || disk.synced(path) != nil {
		t.Errorf("%d bytes are durable (%v), and %v", file.durable, err, disk.synced(path))
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}
