package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A reader changes nothing, tells what lies behind the last whole write, and
// follows the file.
func TestReader(t *testing.T) {
	for _, e := range []Encoding{Raw, Zstd} {
		t.Run(boxOf(e).name(), func(t *testing.T) {
			data := sample(t, sampleB)
			if e == Zstd {
				data = boxed(data)
			}
			s, path := place(t, e, data)
			if err := os.Chmod(path, 0o400); err != nil {
				t.Fatal(err)
			}
			r, err := s.OpenReader(t.Context(), sampleID)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Append(t.Context(), session.Fence{}, nil); !errors.Is(err, ErrReadOnly) {
				t.Errorf("append: %v", err)
			}
			want := func(n int) {
				t.Helper()
				events, err := r.Read(t.Context(), 0, 0)
				if got := len(jsonOf(events)); err != nil || got != n {
					t.Errorf("read %d events, want %d (%v)", got, n, err)
				}
			}
			want(21)
			if tail := r.Tail(); tail.Bytes == 0 || tail.Line != 19 || !errors.Is(tail.Reason, errTorn) {
				t.Errorf("tail is %+v", tail)
			}
			if !slices.Equal(fileOf(t, path), data) || r.Path() != path {
				t.Error("the file was changed")
			}
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
			resume(t, s, path)
			want(24)
			if tail := r.Tail(); tail != (Tail{}) {
				t.Errorf("tail is %+v", tail)
			}
			log, err := s.Open(t.Context(), sampleID)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				if err := session.Extend(t.Context(), log, []dsh.Event{{Seq: dsh.Seq(24 + i), Data: dsh.TurnStart{Turn: 2}}}); err != nil {
					t.Fatal(err)
				}
				want(25 + i)
			}
			if err := errors.Join(log.Close(), r.Sync(t.Context()), r.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Long logs are read in parts of the file.
func TestIndex(t *testing.T) {
	for _, e := range []Encoding{Raw, Zstd} {
		s, err := Open(t.TempDir(), Options{Encoding: e})
		if err != nil {
			t.Fatal(err)
		}
		written, err := s.Create(t.Context(), header("a"))
		if err != nil {
			t.Fatal(err)
		}
		all := turns(100, 5000)
		for i := 0; i < len(all); i += 3 {
			if err := session.Extend(t.Context(), written, all[i:i+3:i+3]); err != nil {
				t.Fatal(err)
			}
		}
		check := func(l *log) {
			t.Helper()
			if n := len(l.index); n < 3 || n > 10 {
				t.Errorf("%d entries for %d bytes", n, l.end)
			}
			for from := 0; from < len(all); from += 13 {
				got, err := l.read(dsh.Seq(from), 4)
				if want := jsonOf(all[from:min(from+4, len(all))]); err != nil || !slices.Equal(jsonOf(got), want) {
					t.Fatalf("from %d: %d events, %v", from, len(got), err)
				}
			}
		}
		check(written.(*log))
		if err := written.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := s.Open(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		check(again.(*log))
		again.Close()
	}
}

// A file that is read in parts is the same as one that is read at once, damaged or
// not.
func TestScanFile(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		y := newYard(t, e)
		var batches [][]byte
		events := turns(2, window/2+100)
		for i := range events {
			batches = append(batches, linesOf(events[i]))
		}
		good := y.file("a", batches...)
		var many [][]byte
		for i := range 3000 {
			many = append(many, linesOf(dsh.Event{Seq: dsh.Seq(i), Data: dsh.Opaque{Name: "todo/write", Raw: dsh.AppendString(nil, fmt.Sprint(rand.Uint64(), rand.Uint64(), strings.Repeat("x", 400)))}}))
		}
		for name, data := range map[string][]byte{"large": good, "many": y.file("a", many...), "header": y.file("a"), "none": nil} {
			for i := range 12 {
				data := bytes.Clone(data)
				if n := len(data); n > 0 && i%3 == 1 {
					data[rand.IntN(n)] ^= byte(1 + rand.IntN(255))
				} else if n > 0 && i%3 == 2 {
					data = data[:rand.IntN(n)]
				}
				h, want, werr := load("a", y.box, data)
				g, got, gerr := scanFile("a", y.box, bytes.NewReader(data), int64(len(data)))
				if fmt.Sprint(werr) != fmt.Sprint(gerr) || werr == nil && g != h {
					t.Fatalf("%s: %v, want %v", name, gerr, werr)
				}
				if werr != nil {
					continue
				}
				if got.next != want.next || got.end != want.end || got.endNext != want.endNext || got.line != want.line ||
					got.problemLine != want.problemLine || !slices.Equal(got.index, want.index) {
					t.Fatalf("%s: ends at %d, event %d, want %d, %d", name, got.end, got.next, want.end, want.next)
				}
			}
		}
	})
}

// A view is a reader, and none is no log.
func TestView(t *testing.T) {
	s, _ := place(t, Raw, sample(t, sampleA))
	owner, err := s.Open(t.Context(), sampleID)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	var viewer session.Viewer = s
	log, err := viewer.View(t.Context(), sampleID)
	if err != nil {
		t.Fatal(err)
	}
	events, err := log.Read(t.Context(), 0, 0)
	if got := len(jsonOf(events)); err != nil || got != 33 {
		t.Errorf("%d events, %v", got, err)
	}
	if log, err := viewer.View(t.Context(), "nobody"); log != nil || !errors.Is(err, session.ErrNotFound) {
		t.Errorf("%v, %v", log, err)
	}
}

// Stat knows a log by its header, and when it was written.
func TestStat(t *testing.T) {
	s, path := place(t, Zstd, boxed(sample(t, sampleA)))
	at := time.Unix(1_700_000_000, 0)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	for h, err := range s.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if info, err := s.Stat(&h); err != nil || !info.ModTime().Equal(at) || !info.Mode().IsRegular() {
			t.Errorf("%v, %v", info, err)
		}
	}
	for _, h := range []dsh.SessionHeader{{ID: "nobody", CWD: "/srv/demo"}, {}} {
		if info, err := s.Stat(&h); err == nil {
			t.Errorf("%+v: %v", h, info)
		}
	}
}
