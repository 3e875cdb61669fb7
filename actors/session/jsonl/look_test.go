package jsonl

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A look shows what can be read, and why there is no more.
func TestLook(t *testing.T) {
	whole := sample(t, sampleA)
	lines := bytes.SplitAfter(whole, []byte{'\n'})
	without := func(i int) []byte { return slices.Concat(slices.Delete(slices.Clone(lines), i, i+1)...) }
	unknown := func(line string) []byte {
		return slices.Concat(bytes.Join(lines[:3], nil), []byte(line+"\n"), bytes.Join(lines[3:], nil))
	}
	for _, tt := range []struct {
		name   string
		data   []byte
		events int
		err    error
		torn   bool
	}{
		{"whole", whole, 33, nil, false},
		{"torn", sample(t, sampleB), 21, nil, true},
		{"a gap in front of a turn's end", without(10), 11, ErrCorrupt, false}, // event 11
		{"an unknown event", unknown(`{"type":"x/y","seq":2,"time":0,"data":{}}`), 2, dsh.ErrUnknownEvent, false},
		{"no header", []byte("{}\n"), 0, ErrCorrupt, false},
		{"newer", []byte(`{"type":"session","version":3}` + "\n"), 0, dsh.ErrVersion, false},
		{"empty", nil, 0, ErrCorrupt, false},
	} {
		for _, e := range []Encoding{Raw, Zstd} {
			t.Run(tt.name+" "+boxOf(e).name(), func(t *testing.T) {
				data := tt.data
				if e == Zstd && len(data) > 0 {
					data = boxed(data)
				}
				s, path := place(t, e, data)
				for _, h := range []dsh.SessionHeader{{ID: sampleID}, {ID: sampleID, CWD: "/srv/demo"}} {
					look := s.Look(h)
					got := jsonOf(look.Events)
					if len(got) != tt.events || !errors.Is(look.Err, tt.err) || (look.Err == nil) != (tt.err == nil) {
						t.Fatalf("%d events, %v; want %d, %v", len(got), look.Err, tt.events, tt.err)
					}
					if (look.Tail.Bytes > 0) != tt.torn || look.Path != path {
						t.Errorf("tail %+v, path %s", look.Tail, look.Path)
					}
					if len(got) > 0 && (look.Header.CWD != "/srv/demo" || !strings.Contains(got[1], `"seq":1,`)) {
						t.Errorf("header %+v, event 1 %s", look.Header, got[1])
					}
				}
				if !bytes.Equal(fileOf(t, path), data) {
					t.Error("the file was changed")
				}
			})
		}
	}
	s, _ := place(t, Raw, whole)
	if look := s.Look(dsh.SessionHeader{ID: "other"}); !errors.Is(look.Err, session.ErrNotFound) {
		t.Errorf("a log that is not there: %v", look.Err)
	}
	s, _ = place(t, Zstd, boxed(whole))
	s.box = boxOf(Raw)
	if look := s.Look(dsh.SessionHeader{ID: sampleID}); !errors.Is(look.Err, ErrEncoding) {
		t.Errorf("a log of the other encoding: %v", look.Err)
	}
}

// What may not be told of is cut off a run, too.
func TestBefore(t *testing.T) {
	events := []dsh.Event{
		{Seq: 0, Data: dsh.TurnStart{Turn: 1}},
		{Seq: 1, Data: dsh.ChunkRun{Turn: 1, Chunks: []dsh.Chunk{dsh.TextDelta{Text: "a"}, dsh.TextDelta{Text: "b"}, dsh.TextDelta{Text: "c"}}}},
		{Seq: 4, Data: dsh.TurnEnd{Turn: 1}},
	}
	all := jsonOf(events)
	for seq := range dsh.Seq(7) {
		want := all[:min(int(seq), len(all))]
		if got := jsonOf(before(slices.Clone(events), seq)); !slices.Equal(got, want) {
			t.Errorf("before %d: %q, want %q", seq, got, want)
		}
	}
}

// A log is owned as long as its lock is held, whatever the note beside it says.
func TestOwner(t *testing.T) {
	s, path := place(t, Raw, sample(t, sampleA))
	h := dsh.SessionHeader{ID: sampleID, CWD: "/srv/demo"}
	want := func(owned bool) {
		t.Helper()
		owner, ok, err := s.Owner(h)
		if err != nil || ok != owned || owned && owner.PID != os.Getpid() || !owned && owner != (Holder{}) {
			t.Errorf("owner %+v, %v, %v; want %v", owner, ok, err, owned)
		}
	}
	want(false)
	lock := filepath.Join(filepath.Dir(path), lockName)
	if _, err := os.Stat(lock); err == nil {
		t.Error("the question made a lock")
	}
	log, err := s.Open(t.Context(), sampleID)
	if err != nil {
		t.Fatal(err)
	}
	want(true)
	note := fileOf(t, lock)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	want(false)
	if err := os.WriteFile(lock, note, 0o600); err != nil { // as a crash leaves it
		t.Fatal(err)
	}
	want(false)
	log, err = s.Open(t.Context(), sampleID)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	want(true)

	made, err := s.Create(t.Context(), header("made"))
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	h = header("made")
	want(true) // without a file
	if _, ok, err := s.Owner(dsh.SessionHeader{ID: "none"}); ok || !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a log that is not there: %v, %v", ok, err)
	}
}
