package jsonl

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/loop"
)

// checkAll returns the reports of everything in a store.
func checkAll(t *testing.T, s *Store) (reports []Report) {
	t.Helper()
	for r, err := range s.CheckAll(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r)
	}
	return reports
}

// Everything in a root is found, with its verdict, and nothing is touched.
func TestCheckAll(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		y := newYard(t, e).fill()
		before := traces(t, y.root)
		reports := checkAll(t, y.Store)
		if got, want := sortedIDs(reports), slices.Sorted(maps.Keys(y.want)); !slices.Equal(got, want) {
			t.Errorf("found %v\nwant  %v", got, want)
		}
		for _, r := range reports {
			if r.Verdict != y.want[r.ID] {
				t.Errorf("%s: %s (%v), want %s", r.ID, r.Verdict, r.Err, y.want[r.ID])
			}
			if (r.Err == nil) != (r.Verdict.Opens() || r.Verdict == Leftover) {
				t.Errorf("%s: %s with %v", r.ID, r.Verdict, r.Err)
			}
			one, err := y.Check(t.Context(), r.ID)
			if err != nil || one.Verdict != r.Verdict {
				t.Errorf("%s alone: %s, %v", r.ID, one.Verdict, err)
			}
		}
		unchanged(t, y.root, before)
		if _, err := y.Check(t.Context(), "nobody"); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("nobody: %v", err)
		}
	})
}

// A check says that a log can be continued exactly if it can.
func TestCheckKeepsItsWord(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		y := newYard(t, e).fill()
		for _, r := range checkAll(t, y.Store) {
			if r.Verdict == Leftover {
				continue
			}
			if err := continued(t, y.Store, r.ID); (err == nil) != r.Verdict.Opens() {
				t.Errorf("%s is said to be %s, and continuing it: %v", r.ID, r.Verdict, err)
			}
		}
	})
}

// continued opens a log and restores the loop from it.
func continued(t *testing.T, s *Store, id dsh.SessionID) error {
	t.Helper()
	log, err := s.Open(t.Context(), id)
	if err != nil {
		return err
	}
	defer log.Close()
	events, err := log.Read(t.Context(), 0, 0)
	if err != nil {
		return err
	}
	events = append(slices.Clip(events), dsh.Closers(events)...)
	_, err = loop.Restore(loop.Config{}, events, log.Header().SeedLength)
	return err
}

// The same for logs that were damaged anywhere.
func TestCheckOfRandomDamage(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		y := newYard(t, e)
		first, second, _ := twoTurns()
		good := y.file("a", first, cutLines(second, 4), second[len(cutLines(second, 4)):])
		counts := map[Verdict]int{}
		for i := range 200 {
			data := bytes.Clone(good)
			switch i % 4 {
			case 0:
				data = data[:rand.IntN(len(data))]
			case 1:
				data[rand.IntN(len(data))] ^= byte(1 + rand.IntN(255))
			case 2:
				at := rand.IntN(len(data))
				data = slices.Concat(data[:at], data[min(len(data), at+rand.IntN(60)):])
			case 3:
				data = append(data, data[rand.IntN(len(data)):]...)
			}
			path := y.log("a", "", data)
			r, err := y.Check(t.Context(), "a")
			if errors.Is(err, session.ErrNotFound) { // the flip changed its ID
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			counts[r.Verdict]++
			if d := r.Damage; d != nil && (d.Closed > d.Events || d.LostBytes < 0 || d.LostBytes > r.Size) {
				t.Errorf("damage %+v", d)
			}
			if !bytes.Equal(fileOf(t, path), data) {
				t.Fatal("the file was changed")
			}
			if err := continued(t, y.Store, "a"); (err == nil) != r.Verdict.Opens() {
				t.Fatalf("it is said to be %s (%v), and continuing it: %v", r.Verdict, r.Err, err)
			}
		}
		if counts[Corrupt] == 0 || counts[Torn] == 0 {
			t.Errorf("verdicts %v", counts)
		}
	})
}

func TestReportInNumbers(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		y := newYard(t, e).fill()
		first, second, n := twoTurns()
		one := dsh.Seq(len(jsonOf(eventsOf(t, first))))
		check := func(id dsh.SessionID) Report {
			r, err := y.Check(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if r := check("sound"); r.Events != n || r.Whole != r.Size || r.Header.CWD != "/srv/demo" || r.Turn != 0 {
			t.Errorf("sound: %+v", r)
		}
		if r := check("torn"); r.Tail.Bytes != r.Size-r.Whole || r.Tail.Bytes == 0 || r.Tail.Reason == nil || r.Events < one {
			t.Errorf("torn: %+v", r)
		}
		if r := check("open"); r.Turn != 2 || len(r.Closers) != 2 || r.Events != one+3 || r.Closers[0].Seq != one+3 {
			t.Errorf("open: %+v", r)
		}
		r := check("corrupt")
		if d := r.Damage; d == nil || d.Events != one+1 || d.Closed != one || d.LostBytes == 0 ||
			d.Lost != bytes.Count(second, []byte{'\n'}) || d.Line != 3+bytes.Count(first, []byte{'\n'}) {
			t.Errorf("corrupt: %+v", r.Damage)
		}
		if d := check("invalid").Damage; d == nil || d.Events != n || d.Closed != n || d.Lost != 1 {
			t.Errorf("invalid: %+v", d)
		}
		if d := check("headless").Damage; d == nil || d.Closed != -1 || d.Line != 1 {
			t.Errorf("headless: %+v", d)
		}
		if r := check("misplaced"); filepath.Base(r.Place) != "misplaced" || filepath.Base(filepath.Dir(r.Place)) != "--srv-demo--" {
			t.Errorf("misplaced: %s", r.Place)
		}
		if r := check("littered"); len(r.Stray) != 1 || !strings.HasSuffix(r.Stray[0], ".tmp") {
			t.Errorf("littered: %v", r.Stray)
		}
	})
}

// eventsOf returns the events of lines.
func eventsOf(t *testing.T, lines []byte) []dsh.Event {
	t.Helper()
	d, out := &decoder{}, gatherer{}
	for len(lines) > 0 {
		var line []byte
		line, lines = cutLine(lines)
		if err := d.line(line, out.add); err != nil {
			t.Fatal(err)
		}
	}
	return out.all()
}

func TestCheckOfALogInUse(t *testing.T) {
	y := newYard(t, Zstd).fill()
	log, err := y.Open(t.Context(), "sound")
	if err != nil {
		t.Fatal(err)
	}
	before := traces(t, y.root)
	r, err := y.Check(t.Context(), "sound")
	if err != nil || r.Verdict != InUse || r.Err != nil || r.Holder.PID != os.Getpid() {
		t.Errorf("%+v, %v", r, err)
	}
	p, err := y.Repair(t.Context(), "sound", RepairOptions{})
	var used *InUseError
	if !errors.As(err, &used) || used.Holder.PID != os.Getpid() || p.Report.Verdict != InUse {
		t.Errorf("plan: %v", err)
	}
	unchanged(t, y.root, before)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := y.Check(t.Context(), "sound"); err != nil || r.Verdict != Sound {
		t.Errorf("%+v, %v", r, err)
	}
}

// A note says nothing without the lock, whoever left it.
func TestCheckOfAnOldNote(t *testing.T) {
	y := newYard(t, Raw).fill()
	for _, h := range []Holder{{PID: 1 << 30, Host: ourselves().Host}, {PID: os.Getpid(), Host: "elsewhere"}, {PID: -1, Host: ourselves().Host}, ourselves()} {
		writeNote(filepath.Join(y.root, "--srv-demo--", "sound", lockName), note{Holder: &h, Epoch: 7})
		if r, err := y.Check(t.Context(), "sound"); err != nil || r.Verdict != Sound || r.Holder != nil {
			t.Errorf("%+v: %s, %v", h, r.Verdict, err)
		}
	}
}

func TestUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	y := newYard(t, Raw).fill()
	file := filepath.Join(y.root, "--srv-demo--", "sound", y.box.name())
	dir := filepath.Join(y.root, "--srv-demo--", "open")
	for _, path := range []string{file, dir} {
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Chmod(dir, 0o700)
	for _, id := range []dsh.SessionID{"sound", "open"} {
		r, err := y.Check(t.Context(), id)
		if err != nil || r.Verdict != Unreadable || !errors.Is(r.Err, os.ErrPermission) {
			t.Errorf("%s: %s, %v, %v", id, r.Verdict, r.Err, err)
		}
		if _, err := y.Repair(t.Context(), id, RepairOptions{Apply: true}); !errors.Is(err, os.ErrPermission) {
			t.Errorf("repair %s: %v", id, err)
		}
	}
}

// What is odd but keeps nobody from continuing is told.
func TestFindings(t *testing.T) {
	y := newYard(t, Raw)
	first, _, n := twoTurns()
	n /= 2
	y.log("odd", Sound, y.file("odd", first, linesOf(
		dsh.Event{Seq: n, Data: dsh.TurnStart{Turn: 5}},
		dsh.Event{Seq: n + 1, Data: dsh.StepEnd{Turn: 5, Step: 1}},
		dsh.Event{Seq: n + 2, Data: dsh.TurnStart{Turn: 6}},
		dsh.Event{Seq: n + 3, Data: dsh.TurnEnd{Turn: 7, Reason: dsh.Ending{Kind: dsh.EndCompleted}}},
	)))
	r, err := y.Check(t.Context(), "odd")
	if err != nil || r.Verdict != Sound || len(r.Findings) != 4 {
		t.Fatalf("%s, %v: %v", r.Verdict, err, r.Findings)
	}
	for i, want := range []string{"turn 5 starts where turn 2 is next", "step/end of step 5.1, and no step is open", "turn 6 starts inside turn 5", "turn 7 ends and turn 6 is open"} {
		if !strings.Contains(r.Findings[i].Text, want) {
			t.Errorf("%v, want %q", r.Findings[i], want)
		}
	}
	if err := continued(t, y.Store, "odd"); err != nil {
		t.Error(err)
	}
}

// An empty or missing root has nothing to check; one that is a file is an error.
func TestSurveyOfNothing(t *testing.T) {
	dir := t.TempDir()
	for _, root := range []string{dir, filepath.Join(dir, "none")} {
		s, err := Open(root, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if found, err := s.Survey(t.Context()); err != nil || len(found) != 0 {
			t.Errorf("%v, %v", found, err)
		}
	}
}

// A log that is in its place is not hurt by another one that says the same ID
// where nobody looks for it, nor by what is left of making one.
func TestTwins(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		y := newYard(t, e)
		first, _, _ := twoTurns()
		path := y.log("twin", Sound, y.file("twin", first))
		copied := y.put("--a--/by-hand/"+y.box.name(), y.file("twin", first))
		y.put("--a--/twin/"+y.box.name()+".0123456789ab.tmp", []byte("half"))
		want := map[string]Verdict{path: Sound, copied: Duplicate, filepath.Join(y.root, "--a--", "twin"): Leftover}
		for _, r := range checkAll(t, y.Store) {
			if r.Verdict != want[r.Path] {
				t.Errorf("%s: %s (%v), want %s", r.Path, r.Verdict, r.Err, want[r.Path])
			}
			delete(want, r.Path)
		}
		if len(want) > 0 {
			t.Errorf("not found: %v", want)
		}
		if r, err := y.Check(t.Context(), "twin"); err != nil || r.Path != path || r.Verdict != Sound {
			t.Errorf("%+v, %v", r, err)
		}
		if err := continued(t, y.Store, "twin"); err != nil {
			t.Error(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if r, err := y.Check(t.Context(), "twin"); err != nil || r.Path != copied || r.Verdict != Misplaced {
			t.Errorf("alone: %+v, %v", r, err)
		}
		if p, err := y.Repair(t.Context(), "twin", RepairOptions{Apply: true}); err != nil || p.Path != path {
			t.Errorf("alone: %+v, %v", p, err)
		}
	})
}
