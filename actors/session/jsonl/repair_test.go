package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A plan changes nothing, whatever is the matter, not even a time.
func TestPlanChangesNothing(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		y := newYard(t, e).fill()
		before := traces(t, y.root)
		for id, v := range y.want {
			for _, cut := range []bool{false, true} {
				p, err := y.Repair(t.Context(), id, RepairOptions{Cut: cut})
				if p.Applied || p.Backup != "" || p.Report.Verdict != v {
					t.Errorf("%s: %+v", id, p)
				}
				possible := slices.Contains(y.mended, id) || v == Empty || v == Leftover ||
					cut && (v == Invalid || v == Corrupt && id != "headless")
				if (err == nil) != possible {
					t.Errorf("%s with cut %v: %v", id, cut, err)
				}
				if v == Corrupt && id != "headless" && !cut && !errors.Is(err, ErrNeedsCut) {
					t.Errorf("%s: %v", id, err)
				}
			}
		}
		unchanged(t, y.root, before)
	})
}

// What can be repaired is sound afterwards, keeps its permissions, and needs
// nothing more.
func TestRepair(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		y := newYard(t, e).fill()
		for _, id := range slices.Concat(y.mended, []dsh.SessionID{"corrupt", "invalid"}) {
			before, err := y.Check(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			old := fileOf(t, before.Path)
			opts := RepairOptions{Apply: true, Cut: before.Damage != nil}
			p, err := y.Repair(t.Context(), id, opts)
			if err != nil || !p.Applied {
				t.Errorf("%s: %+v, %v", id, p, err)
				continue
			}
			now := fileOf(t, p.Path)
			if changed := !bytes.Equal(old, now); changed != (p.Backup != "") {
				t.Errorf("%s: changed is %v, backup %q", id, changed, p.Backup)
			} else if changed {
				if !bytes.Equal(fileOf(t, p.Backup), old) {
					t.Errorf("%s: the backup is not the file as it was", id)
				}
			}
			for _, path := range []string{p.Path, filepath.Dir(p.Path)} {
				info, err := os.Stat(path)
				if err != nil || info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s: %v, %v", path, info.Mode(), err)
				}
			}
			r, err := y.Check(t.Context(), id)
			if err != nil || r.Verdict != Sound || len(r.Stray) != 0 || r.Path != p.Path {
				t.Errorf("%s: %s (%v), %v", id, r.Verdict, r.Err, err)
			}
			was := traces(t, y.root)
			if again, err := y.Repair(t.Context(), id, opts); err != nil || len(again.Steps) > 0 || again.Backup != "" {
				t.Errorf("%s once more: %+v, %v", id, again.Steps, err)
			}
			unchanged(t, y.root, was)
			if err := continued(t, y.Store, id); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
}

// A repair leaves what opening the log and closing its turn would.
func TestRepairIsWhatOpeningDoes(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		first, second, _ := twoTurns()
		whole := newYard(t, e).file("a", first, second)
		for cut := 0; cut < len(whole)-len(newYard(t, e).file("a")); cut += 1 + len(whole)/40 {
			data := whole[:len(whole)-cut]
			mended, opened := newYard(t, e), newYard(t, e)
			path := mended.log("a", "", data)
			opened.log("a", "", data)
			if _, err := mended.Repair(t.Context(), "a", RepairOptions{Apply: true, NoBackup: true}); err != nil {
				t.Fatal(cut, err)
			}
			log, err := opened.Open(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			events, err := log.Read(t.Context(), 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			events = append(slices.Clip(events), dsh.Closers(events)...)
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			_, scan, err := load(path, mended.box, fileOf(t, path))
			if err != nil || scan.problem != nil {
				t.Fatal(cut, err, scan.problem)
			}
			if got, want := jsonOf(scan.out.all()), jsonOf(events); !slices.Equal(got, want) {
				t.Errorf("cut by %d: %d events, want %d", cut, len(got), len(want))
			}
			if left := mended.backups(t); len(left) != 0 {
				t.Errorf("backups %v", left)
			}
		}
	})
}

func (y *yard) backups(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(y.root, "*", "*", "*"+backupSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Cutting keeps every line before the turn that is damaged as it was, also in
// the middle of a frame, and members that this build does not know.
func TestCutKeepsBytes(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		y := newYard(t, e)
		first, second, n := twoTurns()
		first = bytes.Replace(first, []byte(`"data":{"turn":1}`), []byte(`"data":{"turn":1,"more":"kept"}`), 1)
		bad := linesOf(dsh.Event{Seq: n, Data: dsh.InboxSpliced{Target: dsh.NextTurn, Removed: 1}})
		whole := slices.Concat(first, cutLines(second, 2), bytes.ReplaceAll(bad, fmt.Appendf(nil, `"seq":%d`, n), fmt.Appendf(nil, `"seq":%d`, n/2+2)))
		path := y.log("a", Invalid, y.file("a", whole))
		p, err := y.Repair(t.Context(), "a", RepairOptions{Apply: true, Cut: true})
		if err != nil || len(p.Steps) != 1 || p.Steps[0].Kind != StepCut || p.Steps[0].Events != 2 || p.Steps[0].Bytes == 0 {
			t.Fatalf("%+v, %v", p.Steps, err)
		}
		if want := y.file("a", first); !bytes.Equal(fileOf(t, path), want) {
			t.Error("the file is not its first turn")
		}
		if !strings.Contains(p.Steps[0].Text, "3 lines") || !strings.Contains(p.Steps[0].Text, "2 events could be read") {
			t.Error(p.Steps[0].Text)
		}
	})
}

func TestRepairOfWhatIsNoLog(t *testing.T) {
	y := newYard(t, Zstd).fill()
	for _, id := range []dsh.SessionID{"empty", "leftover"} {
		p, err := y.Repair(t.Context(), id, RepairOptions{Apply: true})
		if err != nil || len(p.Steps) != 1 || p.Steps[0].Kind != StepRemove {
			t.Fatalf("%s: %+v, %v", id, p.Steps, err)
		}
		if _, err := os.Stat(p.Steps[0].Path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", id, err)
		}
		if _, err := y.Check(t.Context(), id); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// The lock decides who has a log, not the note in it.
func TestRepairNeedsTheLock(t *testing.T) {
	y := newYard(t, Zstd).fill()
	dir := filepath.Join(y.root, "--srv-demo--", "torn")
	held, err := acquire(dir, "torn", 0)
	if err != nil {
		t.Fatal(err)
	}
	before := traces(t, y.root)
	if _, err := y.Repair(t.Context(), "torn", RepairOptions{Apply: true}); !errors.Is(err, session.ErrInUse) ||
		!strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("held: %v", err)
	}
	unchanged(t, y.root, before)
	if err := held.release(); err != nil {
		t.Fatal(err)
	}
	us := ourselves() // alive, as the note of a crash may be by chance
	writeNote(filepath.Join(dir, lockName), note{Holder: &us})
	if p, err := y.Repair(t.Context(), "torn", RepairOptions{Apply: true}); err != nil || !p.Applied {
		t.Errorf("noted: %v", err)
	}
}

// A log is not moved onto another one.
func TestMoveIntoATakenPlace(t *testing.T) {
	y := newYard(t, Raw).fill()
	y.put("--srv-demo--/misplaced/notes.txt", []byte("mine"))
	before := traces(t, y.root)
	if _, err := y.Repair(t.Context(), "misplaced", RepairOptions{Apply: true}); err == nil || !strings.Contains(err.Error(), "notes.txt is already") {
		t.Error(err)
	}
	unchanged(t, y.root, before)
}

// Whatever operation fails: the log is as it was or repaired, the file as it was
// is somewhere, and the next repair finds it all.
func TestRepairFaults(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		for _, id := range []dsh.SessionID{"torn", "open", "corrupt", "renamed", "flat", "misplaced", "littered"} {
			t.Run(string(id), func(t *testing.T) {
				for from := int64(0); ; from++ {
					disk := &badDisk{from: from, count: 1, err: syscall.ENOSPC}
					repairOn(t, e, id, disk)
					if disk.done.Load() <= from {
						break
					}
				}
			})
		}
	})
}

func repairOn(t *testing.T, e Encoding, id dsh.SessionID, disk *badDisk) {
	t.Helper()
	y := newYard(t, e).fill()
	before, err := y.Check(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	old := fileOf(t, before.Path)
	opts := RepairOptions{Apply: true, Cut: true}
	y.disk, y.syncer.disk = disk, disk
	p, err := y.Repair(t.Context(), id, opts)
	if err != nil && (!errors.Is(err, syscall.ENOSPC) || p.Applied) {
		t.Fatalf("failing at %d: %+v, %v", disk.from, p, err)
	}
	r, cerr := y.Check(t.Context(), id)
	if cerr != nil {
		t.Fatalf("failing at %d: %v", disk.from, cerr)
	}
	if now := fileOf(t, r.Path); !bytes.Equal(now, old) {
		if r.Damage != nil || r.Tail.Bytes > 0 || r.Turn != 0 {
			t.Errorf("failing at %d: half repaired: %+v", disk.from, r)
		}
		if !slices.ContainsFunc(y.backups(t), func(kept string) bool { return bytes.Equal(fileOf(t, kept), old) }) {
			t.Errorf("failing at %d: changed without a backup", disk.from)
		}
	}
	disk.from = 1 << 40
	if p, err := y.Repair(t.Context(), id, opts); err != nil || !p.Applied {
		t.Fatalf("failing at %d, then again: %+v, %v", disk.from, p, err)
	}
	if r, err := y.Check(t.Context(), id); err != nil || r.Verdict != Sound || len(r.Stray) > 0 {
		t.Errorf("failing at %d, then again: %s (%v) %v", disk.from, r.Verdict, r.Err, r.Stray)
	}
}

// A line of many megabytes is one line.
func TestRepairOfHugeLines(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		y := newYard(t, e)
		events := turns(2, 2<<20)
		whole := y.file("huge", linesOf(events[:4]...), linesOf(events[4:]...))
		y.log("huge", Torn, whole[:len(whole)-3])
		p, err := y.Repair(t.Context(), "huge", RepairOptions{Apply: true})
		if err != nil || !p.Applied || p.Report.Verdict != Torn {
			t.Fatalf("%v", err)
		}
		r, err := y.Check(t.Context(), "huge")
		if err != nil || r.Verdict != Sound || r.Events < 5 {
			t.Errorf("%s, %d events, %v", r.Verdict, r.Events, err)
		}
	})
}
