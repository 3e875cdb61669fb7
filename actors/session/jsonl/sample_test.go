package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// The samples of the session format. A is a whole turn; B is A as a crash left
// it behind the tool/call.
const (
	sampleA     = "a.jsonl"
	sampleAZstd = "a.jsonl.zstd"
	sampleB     = "b.jsonl"
	sampleID    = "main-session-00000000-0000-4000-8000-000000000001"
)

func sample(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// place puts data where the sample's log belongs, and returns the store and
// the log's path.
func place(t testing.TB, e Encoding, data []byte) (*Store, string) {
	t.Helper()
	s, err := Open(t.TempDir(), Options{Encoding: e})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.root, "--srv-demo--", sampleID, s.box.name())
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return s, path
}

func jsonOf(events []dsh.Event) []string {
	list := []string{}
	for ev := range dsh.Expand(events) {
		list = append(list, string(ev.AppendJSON(nil)))
	}
	return list
}

// resume opens the sample's log, closes what a crash left open and returns
// the file's content.
func resume(t testing.TB, s *Store, path string) string {
	t.Helper()
	log, err := s.Open(t.Context(), sampleID)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	events, err := log.Read(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Extend(t.Context(), log, dsh.Closers(events)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSampleA(t *testing.T) {
	want := sample(t, sampleA)
	h, scan, err := load("a", rawBox{}, want)
	if err != nil || scan.problem != nil {
		t.Fatal(err, scan.problem)
	}
	events := scan.out.all()
	if n := len(jsonOf(events)); n != 33 || scan.end != int64(len(want)) {
		t.Errorf("%d events in %d bytes", n, scan.end)
	}
	got := appendLines(append(h.AppendJSON(nil), '\n'), events)
	if !bytes.Equal(got, want) {
		t.Errorf("written as\n%s", got)
	}
	_, zscan, err := load("a", zstdBox{}, sample(t, sampleAZstd))
	if err != nil || !slices.Equal(jsonOf(zscan.out.all()), jsonOf(events)) {
		t.Errorf("the compressed sample differs: %v", err)
	}
}

// Every prefix of the sample is either no log at all or one that is repaired
// to a prefix of its events, after which it is sound.
func TestPrefixes(t *testing.T) {
	_, scan, err := load("a", rawBox{}, sample(t, sampleA))
	if err != nil {
		t.Fatal(err)
	}
	all := jsonOf(scan.out.all())
	for _, c := range []struct {
		box    box
		sample string
	}{{rawBox{}, sampleA}, {zstdBox{}, sampleAZstd}} {
		data := sample(t, c.sample)
		_, headerEnd, err := readHeader("a", c.box, data)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n <= len(data); n++ {
			_, scan, err := load("a", c.box, data[:n:n])
			if n < headerEnd {
				if !errors.Is(err, errNoHeader) || !errors.Is(err, ErrCorrupt) {
					t.Fatalf("%s[:%d]: %v", c.sample, n, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s[:%d]: %v", c.sample, n, err)
			}
			events := scan.out.all()
			got := jsonOf(events)
			if !slices.Equal(got, all[:len(got)]) {
				t.Fatalf("%s[:%d]: %v", c.sample, n, got)
			}
			if closers := dsh.Closers(append(events, dsh.Closers(events)...)); len(closers) > 0 {
				t.Fatalf("%s[:%d]: closed twice", c.sample, n)
			}
			if scan.end > int64(n) || scan.endNext > scan.next || int(scan.next) != len(got) {
				t.Fatalf("%s[:%d]: end %d, %d of %d events", c.sample, n, scan.end, scan.endNext, scan.next)
			}
		}
	}
}

func TestSampleB(t *testing.T) {
	data := sample(t, sampleB)
	_, scan, err := load("b", rawBox{}, data)
	if err != nil {
		t.Fatal(err)
	}
	if scan.next != 21 || scan.end != 3469 || len(data) != 3541 {
		t.Errorf("%d events in %d of %d bytes", scan.next, scan.end, len(data))
	}
	s, path := place(t, Raw, data)
	var told Repair
	s.opts.Repaired = func(r Repair) { told = r }
	got := resume(t, s, path)
	tail := got[3469:]
	for _, want := range []string{"TOOL_OUTCOME_UNKNOWN", `"sourceEventSeqs":[20]`, `"interrupted-tool-result-call_1-21"`, `{"type":"step/end","seq":22,"time":1790000000045,`, `{"kind":"interrupted"}`} {
		if !strings.Contains(tail, want) {
			t.Errorf("%s is not in\n%s", want, tail)
		}
	}
	if told.Dropped != 72 || told.Recovered != 0 || told.Line != 19 || !errors.Is(told.Reason, errTorn) {
		t.Errorf("told %+v", told)
	}
	if again := resume(t, s, path); again != got {
		t.Error("repaired twice")
	}
}

// cutLines returns the first lines of data.
func cutLines(data []byte, lines int) []byte {
	at := 0
	for range lines {
		at += bytes.IndexByte(data[at:], '\n') + 1
	}
	return data[:at]
}

// withoutLine returns data without its line i, counted from 0.
func withoutLine(data []byte, i int) []byte {
	return slices.Concat(cutLines(data, i), data[len(cutLines(data, i+1)):])
}

// lineWith returns how many lines stand before the one that holds text.
func lineWith(data []byte, text string) int {
	return bytes.Count(data[:bytes.Index(data, []byte(text))], []byte{'\n'})
}

func TestVariants(t *testing.T) {
	a := sample(t, sampleA)
	duplicate := `{"type":"step/end","seq":31,"time":1790000000056,"data":{"turn":1,"step":2}}` + "\n"
	turnEnd := `{"type":"turn/end","seq":32,"time":1790000000057,"data":{"turn":1,"reason":{"kind":"completed"}}}` + "\n"
	unknown := `{"type":"activity/status","seq":33,"time":1,"data":{}%s}` + "\n"
	call, row := lineWith(a, `"tool/call","seq":20`), lineWith(a, `"seq0":13`)
	for _, c := range []struct {
		name string
		data []byte
		// events is how many are kept; want is in the repaired file, or in
		// the error if is is set.
		events int
		want   string
		is     error
	}{
		{name: "a: before the tool/call", data: cutLines(a, call), events: 20, want: `"error":{"name":"ToolNotStartedError","code":"TOOL_NOT_STARTED"}},"surfaceOp":"append"}`},
		{name: "b: inside a row", data: cutLines(a, row+1)[:len(cutLines(a, row+1))-20], events: 13, want: `{"type":"step/end","seq":13,`},
		{name: "d: duplicate behind the end", data: append(a[:len(a):len(a)], duplicate...), events: 33, want: turnEnd},
		{name: "e: duplicate and a turn's end", data: append(append(a[:len(a):len(a)], duplicate...), turnEnd...), want: "event 31 where 33 is due; line 32 ends a turn", is: ErrCorrupt},
		{name: "e: the duplicate is a turn's end", data: append(a[:len(a):len(a)], turnEnd...), want: ":31: ", is: ErrCorrupt},
		{name: "f: unknown", data: append(a[:len(a):len(a)], fmt.Sprintf(unknown, "")...), want: "activity/status", is: dsh.ErrUnknownEvent},
		{name: "f: unknown, ignorable", data: append(a[:len(a):len(a)], fmt.Sprintf(unknown, `,"ignorable":true`)...), events: 34, want: "activity/status"},
		{name: "f: unknown behind damage", data: append(append(a[:len(a):len(a)], duplicate...), fmt.Sprintf(unknown, "")...), events: 33, want: turnEnd},
		{name: "g: newer", data: bytes.Replace(a, []byte(`"version":0`), []byte(`"version":3`), 1), want: "newer", is: dsh.ErrVersion},
		{name: "damage in the middle", data: bytes.Replace(a, []byte(`"seq":9`), []byte(`"seq:9`), 1), events: 33, want: turnEnd},
		{name: "no JSON in the middle", data: bytes.Replace(a, []byte(`"seq":11`), []byte(`"seq":x1`), 1), want: "session.jsonl:11: ", is: ErrCorrupt},
		{name: "an event lost", data: withoutLine(a, 11), want: "event 13 where 12 is due", is: ErrCorrupt},
		{name: "surface", data: bytes.Replace(a, []byte(`,"sourceEventSeqs":[20]`), []byte(`,"sourceEventSeqs":[21]`), 1), want: "session.jsonl:19: ", is: dsh.ErrSurface},
		{name: "foreign place", data: bytes.Replace(a, []byte(`/srv/demo`), []byte(`/srv/else`), 1), want: "belongs into", is: ErrCorrupt},
		{name: "empty", data: nil, want: "a crash left nothing", is: session.ErrNotFound},
	} {
		for _, e := range []Encoding{Raw, Zstd} {
			t.Run(fmt.Sprintf("%s/%d", c.name, e), func(t *testing.T) {
				data := c.data
				if e == Zstd {
					data = boxed(data)
				}
				s, path := place(t, e, data)
				log, err := s.Open(t.Context(), sampleID)
				if c.is != nil {
					want := c.want
					if e == Zstd {
						want = strings.ReplaceAll(want, rawName, zstdName)
					}
					if !errors.Is(err, c.is) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
						t.Fatalf("got %v", err)
					}
					if newer := errors.Is(err, ErrCorrupt); newer && errors.Is(c.is, dsh.ErrVersion) {
						t.Error("newer is not corrupt")
					}
					if now, _ := os.ReadFile(path); !bytes.Equal(now, data) {
						t.Error("a refused log was changed")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				events, err := log.Read(t.Context(), 0, 0)
				if n := len(jsonOf(events)); err != nil || n != c.events {
					t.Errorf("%d events, %v", n, err)
				}
				log.Close()
				resume(t, s, path)
				got := resume(t, s, path)
				if e == Zstd {
					got = string(unboxed(t, []byte(got)))
				}
				if !strings.Contains(got, c.want) {
					t.Errorf("repaired to\n%s", got)
				}
			})
		}
	}
}

// boxed compresses lines as a log: the header, then a batch. What follows the
// last line break is the beginning of a frame that was cut off.
func boxed(lines []byte) []byte {
	box := zstdBox{}
	if len(lines) == 0 {
		return nil
	}
	n := bytes.IndexByte(lines, '\n') + 1
	out := box.wrap(nil, lines[:n])
	whole := bytes.LastIndexByte(lines, '\n') + 1
	if whole > n {
		out = box.wrap(out, lines[n:whole])
	}
	if whole < len(lines) {
		torn := box.wrap(nil, append(lines[whole:len(lines):len(lines)], '\n'))
		out = append(out, torn[:len(torn)-7]...)
	}
	return out
}

func unboxed(t testing.TB, data []byte) (lines []byte) {
	t.Helper()
	for len(data) > 0 {
		part, n, err := zstdBox{}.unwrap(data)
		if err != nil {
			t.Fatal(err)
		}
		lines, data = append(lines, part...), data[n:]
	}
	return lines
}

// Files of the samples that were written by others are continued, not changed.
func TestContinuesForeignFiles(t *testing.T) {
	for e, name := range map[Encoding]string{Raw: sampleA, Zstd: sampleAZstd} {
		data := sample(t, name)
		s, path := place(t, e, data)
		log, err := s.Open(t.Context(), sampleID)
		if err != nil {
			t.Fatal(err)
		}
		more := dsh.Event{Seq: 33, Time: 1, Data: dsh.TurnStart{Turn: 2}}
		if err := errors.Join(session.Extend(t.Context(), log, []dsh.Event{more}), log.Sync(t.Context()), log.Close()); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(path)
		if !bytes.HasPrefix(got, data) || len(got) == len(data) {
			t.Error("the file was changed")
		}
		for h, err := range s.List(t.Context()) {
			if err != nil || h.ID != sampleID {
				t.Errorf("listed %v, %v", h, err)
			}
		}
	}
}
