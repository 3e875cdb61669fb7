package jsonl

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A loss is what a power failure does to what was not synced.
type loss struct {
	// names is which of the names survive: none, all, or some.
	names string
	// content is what becomes of bytes: whole, gone, cut somewhere, zeros, or
	// zeros from somewhere on.
	content string
}

func losses() (all []loss) {
	all = append(all, loss{"none", "whole"}, loss{"none", "cut"})
	for _, names := range []string{"all", "some"} {
		for _, content := range []string{"whole", "gone", "cut", "zeros", "half zeros"} {
			all = append(all, loss{names, content})
		}
	}
	return all
}

// leave builds in a new root what a power failure leaves of the old one.
func (d *badDisk) leave(t *testing.T, root string, l loss, rng *rand.Rand) string {
	t.Helper()
	after := t.TempDir()
	durable := map[fs.FileInfo]int64{} // of files, whatever they are called now
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.files {
		if info, err := f.Stat(); err == nil {
			durable[info] = f.durable
		}
	}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		if d.unsynced[path] && (l.names == "none" || l.names == "some" && rng.IntN(2) == 0) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		to := filepath.Join(after, strings.TrimPrefix(path, root))
		if e.IsDir() {
			return os.Mkdir(to, 0o700)
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data := fileOf(t, path)
		for known, n := range durable {
			if os.SameFile(known, info) {
				data = l.spoil(data, int(n), rng)
			}
		}
		return os.WriteFile(to, data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return after
}

// spoil returns what is left of a file of which the first n bytes are durable.
func (l loss) spoil(data []byte, n int, rng *rand.Rand) []byte {
	if n >= len(data) {
		return data
	}
	from := n
	if l.content == "cut" || l.content == "half zeros" {
		from += rng.IntN(len(data) - n)
	}
	if l.content == "half zeros" { // fewer could be anything
		from = max(n, min(from, len(data)-zeroRun))
	}
	switch l.content {
	case "gone", "cut":
		return data[:from]
	case "zeros", "half zeros":
		clear(data[from:])
	}
	return data
}

// Wherever the power fails while a log is made, and whatever that loses of what
// was not synced: the log opens with all that was durable; or it was never
// synced and there is none, and then it can be made anew.
func TestPowerFailure(t *testing.T) {
	for _, e := range []Encoding{Raw, Zstd} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", boxOf(e).name(), together), func(t *testing.T) {
				seen := map[string]int{}
				for at := int64(0); ; at++ {
					for _, l := range losses() {
						outcome := failPower(t, Options{Encoding: e}, together, at, l)
						if outcome == "" {
							t.Logf("%d operations: %v", at, seen)
							if seen["stillborn"] == 0 || seen["gone"] == 0 || seen["durable"] == 0 {
								t.Error("not everything happened")
							}
							return
						}
						seen[outcome]++
					}
				}
			})
		}
	}
}

// failPower lets the power fail at an operation and says what was left; nothing
// if there are no more operations.
func failPower(t *testing.T, opts Options, together bool, at int64, l loss) (outcome string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "a", "root")
	disk := &badDisk{from: at, count: 1 << 40, err: syscall.EIO, together: together, powerless: true}
	s, err := open(root, opts, disk)
	if err != nil {
		t.Fatal(err)
	}
	log, err := s.Create(t.Context(), header("a"))
	if err != nil {
		t.Fatal(err)
	}
	all := turns(2, 2000)
	durable := 0
	for i := 0; i < len(all) && err == nil; i += 3 {
		if err = session.Extend(t.Context(), log, all[i:i+3]); err == nil {
			if err = log.Sync(t.Context()); err == nil {
				durable = i + 3
			}
		}
	}
	if err != nil && !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(uint64(at), 0))
	above := filepath.Dir(filepath.Dir(root))
	left := filepath.Join(disk.leave(t, above, l, rng), "a", "root")
	if cerr := log.Close(); cerr != nil && !errors.Is(cerr, syscall.EIO) {
		t.Fatal(cerr)
	}
	place := fmt.Sprintf("power lost at operation %d, %+v, %d events durable", at, l, durable)
	outcome = goOn(t, left, opts, all, durable, place)
	if err == nil {
		return "" // the power did not fail
	}
	return outcome
}

// goOn looks at what is left, and goes on with it.
func goOn(t *testing.T, root string, opts Options, all []dsh.Event, durable int, place string) (outcome string) {
	t.Helper()
	s, err := Open(root, opts)
	if err != nil {
		t.Fatal(place, err)
	}
	path := filepath.Join(root, "--srv-demo--", "a", s.box.name())
	_, serr := os.Stat(path)
	listed := 0
	for h, err := range s.List(t.Context()) {
		if err != nil {
			t.Fatalf("%s: listed with %v", place, err)
		}
		if h.ID == "a" {
			listed++
		}
	}
	log, err := s.Open(t.Context(), "a")
	switch {
	case err == nil && durable > 0:
		outcome = "durable"
	case err == nil:
		outcome = "more than durable"
	case durable > 0 || !errors.Is(err, session.ErrNotFound):
		t.Fatalf("%s: %v", place, err)
	case serr == nil:
		outcome = "stillborn"
	default:
		outcome = "gone"
	}
	if (listed == 1) != (err == nil) {
		t.Errorf("%s: listed %d times, opened with %v", place, listed, err)
	}
	if err != nil {
		if r, cerr := s.Check(t.Context(), "a"); cerr == nil && r.Verdict != Empty && r.Verdict != Leftover {
			t.Errorf("%s: checked as %s", place, r.Verdict)
		}
		if log, err = s.Create(t.Context(), header("a")); err != nil {
			t.Fatalf("%s: created again: %v", place, err)
		}
	}
	got, err := log.Read(t.Context(), 0, 0)
	if err != nil || len(got) < durable || !slices.Equal(jsonOf(got), jsonOf(all[:len(got)])) {
		t.Fatalf("%s: %d events, %v", place, len(got), err)
	}
	err = errors.Join(session.Extend(t.Context(), log, all[len(got):]), log.Sync(t.Context()), log.Close())
	if err != nil {
		t.Fatalf("%s: continued: %v", place, err)
	}
	_, scan, err := load(path, s.box, fileOf(t, path))
	if err != nil || scan.problem != nil || !slices.Equal(jsonOf(scan.out.all()), jsonOf(all)) {
		t.Fatalf("%s: continued to %v, %v", place, err, scan)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+temporarySuffix)); len(left) > 0 {
		t.Errorf("%s: %q is left", place, left)
	}
	return outcome
}

// A round that fails may have lost what others wrote, who did not wait for it.
func TestMissedFailure(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		root := t.TempDir()
		disk := &badDisk{from: 1 << 40, count: 1, err: syscall.EIO, together: true}
		s, err := open(root, Options{Encoding: e}, disk)
		if err != nil {
			t.Fatal(err)
		}
		logs := map[dsh.SessionID]session.Log{}
		all := turns(4, 500)
		for _, id := range []dsh.SessionID{"a", "b"} {
			if logs[id], err = s.Create(t.Context(), header(id)); err != nil {
				t.Fatal(err)
			}
			if err := session.Extend(t.Context(), logs[id], all[:3]); err != nil {
				t.Fatal(err)
			}
		}
		disk.from = disk.done.Load()
		if err := logs["a"].Sync(t.Context()); !errors.Is(err, syscall.EIO) {
			t.Fatalf("the round did not fail: %v", err)
		}
		for _, id := range []dsh.SessionID{"b", "a"} {
			if err := logs[id].Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(root, "--srv-demo--", string(id), s.box.name())
			if _, scan, err := load(path, s.box, fileOf(t, path)); err != nil || scan.next != 3 {
				t.Errorf("%s: %v", id, err)
			}
			if err := logs[id].Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
