package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/archive"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

const (
	begin = `{"format":"dsh-actor/session","version":1,`
	head  = `"session":{"id":"a","createdAt":1,"delegationDepth":0},`
	turn0 = `{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`
	turn1 = `{"type":"turn/end","seq":1,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}`
)

// Everything that is not right is refused in words that say what is wrong, and
// nothing is made in the store.
func TestImportRefuses(t *testing.T) {
	for name, c := range map[string]struct{ document, want string }{
		"nothing":             {"", "it is empty"},
		"white space":         {" \n", "it is cut off"},
		"garbage":             {"hello", "invalid character"},
		"binary":              {"\x00\x01\x02", "invalid character"},
		"a list":              {"[]", "an object is due"},
		"UTF-16":              {"\xff\xfe{\x00", "UTF-16"},
		"zstd":                {"\x28\xb5\x2f\xfd....", "zstd"},
		"gzip":                {"\x1f\x8b....", "gzip"},
		"a log":               {`{"type":"session","version":0,"id":"a"}`, "begins like a session log"},
		"no format":           {`{"session":{}}`, `first member must be "format"`},
		"other format":        {`{"format":"x/y","version":1}`, `the format is "x/y"`},
		"format of no type":   {`{"format":7}`, "a number where string is due"},
		"no version":          {`{"format":"dsh-actor/session","session":{}}`, `second member must be "version"`},
		"newer":               {`{"format":"dsh-actor/session","version":2,"whatever":[`, "it is version 2, this build reads 1"},
		"version of no type":  {`{"format":"dsh-actor/session","version":"1"}`, "a string where int is due"},
		"no session":          {begin + `"more":1}`, `it has no "session"`},
		"no events":           {begin + `"session":{"id":"a","createdAt":1,"delegationDepth":0}}`, `it has no "events"`},
		"events first":        {begin + `"events":[],` + head + `"x":1}`, `"session" must come before "events"`},
		"session twice":       {begin + head + head + `"events":[]}`, `two members "session"`},
		"events twice":        {begin + head + `"events":[],"events":[]}`, `two members "events"`},
		"version twice":       {begin + `"version":1,` + head + `"events":[]}`, `two members "version"`},
		"one and several":     {begin + head + `"events":[],"sessions":[]}`, `either "session" or "sessions"`},
		"several of none":     {begin + `"sessions":[]}`, "holds no session"},
		"several of no type":  {begin + `"sessions":[7]}`, "an object is due"},
		"the same twice":      {begin + `"sessions":[{` + head + `"events":[]},{` + head + `"events":[]}]}`, "two sessions with this ID"},
		"header of no type":   {begin + `"session":7,"events":[]}`, "it must be an object"},
		"empty header":        {begin + `"session":{},"events":[]}`, "id: missing"},
		"empty id":            {begin + `"session":{"id":"","createdAt":1,"delegationDepth":0},"events":[]}`, "the id is empty"},
		"odd origin":          {begin + `"session":{"id":"a","createdAt":1,"delegationDepth":0,"origin":"x"},"events":[]}`, "origin"},
		"seed too long":       {begin + `"session":{"id":"a","createdAt":1,"delegationDepth":0,"seedLength":3},"events":[]}`, "the seed has 3 events, the session only 0"},
		"events of no type":   {begin + head + `"events":{}}`, "a list is due"},
		"event of no type":    {begin + head + `"events":[7]}`, "must be an object"},
		"duplicate seq":       {begin + head + `"events":[` + turn0 + "," + turn0 + `]}`, "event 1, near byte"},
		"hole":                {begin + head + `"events":[` + turn1 + `]}`, "event 1 where 0 is due"},
		"chunk row":           {begin + head + `"events":[{"type":"text-chunks","seq0":0,"time0":1,"data":{}}]}`, "seq0"},
		"unknown type":        {begin + head + `"events":[{"type":"custom/x","seq":0,"time":1,"data":{}}]}`, "custom/x"},
		"surface":             {begin + head + `"events":[{"type":"turn/start","seq":0,"time":1,"data":{"turn":1},"surfaceOp":"append"}]}`, "may not have a surfaceOp"},
		"inbox":               {begin + head + `"events":[{"type":"agent/inbox/spliced","seq":0,"time":1,"data":{"target":"next-turn","start":3,"inserted":[]}}]}`, "inbox"},
		"cut in an event":     {begin + head + `"events":[` + turn0[:20], "it is cut off"},
		"cut behind an event": {begin + head + `"events":[` + turn0, "it is cut off"},
		"cut at the end":      {begin + head + `"events":[` + turn0 + `]`, "it is cut off"},
		"trailing":            {begin + head + `"events":[]}{}`, "something follows"},
		"trailing garbage":    {begin + head + `"events":[]}x`, "something follows"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			done, err := archive.Import(t.Context(), files(t, dir, jsonl.Zstd), strings.NewReader(c.document), archive.Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) || len(done) > 0 {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if !errors.Is(err, archive.ErrFormat) && !errors.Is(err, archive.ErrVersion) {
				t.Errorf("%v says nothing of the format", err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// What another program may do to a document without changing what it says.
func TestImportAccepts(t *testing.T) {
	want := begin + "\n" + head + "\n" + `"events":[` + "\n" + turn0 + ",\n" + turn1 + "\n]}\n"
	want = strings.Replace(want, head+"\n", `"session":{"id":"a","createdAt":1,"delegationDepth":0},`+"\n", 1)
	for name, document := range map[string]string{
		"as it is":        want,
		"byte order mark": "\xef\xbb\xbf" + want,
		"on one line":     strings.ReplaceAll(want, "\n", ""),
		"spread out":      strings.NewReplacer(":", " : ", ",", "\r\n,\t").Replace(want),
		"with more":       strings.Replace(want, `"session":`, `"note":{"a":[1,{"b":null}]},"session":`, 1),
		"more in session": strings.Replace(want, `"createdAt"`, `"note":[],"version":9,"createdAt"`, 1),
		"a list of one":   begin + `"sessions":[{"x":[1],` + strings.TrimPrefix(strings.ReplaceAll(want, "\n", ""), begin) + "]}",
	} {
		t.Run(name, func(t *testing.T) {
			s := memory.New()
			done, err := archive.Import(t.Context(), s, strings.NewReader(document), archive.Options{})
			if err != nil || len(done) != 1 || done[0].Events != 2 || done[0].Header.ID != "a" {
				t.Fatalf("%+v, %v", done, err)
			}
			if got := export(t, s, "a"); got != want {
				t.Error(difference(want, got))
			}
		})
	}
}

func TestImportAs(t *testing.T) {
	s := memory.New()
	put(t, s, sessiontest.Header("a"), sessiontest.Turn(1, 0))
	document := export(t, s, "a")
	if _, err := archive.Import(t.Context(), s, strings.NewReader(document), archive.Options{}); !errors.Is(err, session.ErrExists) {
		t.Errorf("a second time: %v", err)
	}
	done, err := archive.Import(t.Context(), s, strings.NewReader(document), archive.Options{As: "b"})
	if err != nil || done[0].Header.ID != "b" || done[0].Header.ParentSession != "p" {
		t.Fatalf("%+v, %v", done, err)
	}
	if got, want := export(t, s, "b"), strings.Replace(document, `"id":"a"`, `"id":"b"`, 1); got != want {
		t.Error(difference(want, got))
	}
}

// A pipe is read from twice, too.
func TestImportFromAPipe(t *testing.T) {
	s := memory.New()
	put(t, s, sessiontest.Header("a"), sessiontest.Turn(1, 0))
	document := export(t, s, "a")
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.WriteString(w, document)
		_ = w.Close()
	}()
	to := memory.New()
	if _, err := archive.Import(t.Context(), to, r, archive.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := export(t, to, "a"); got != document {
		t.Error(difference(document, got))
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// family puts a tree of sessions into a store, and a fork and a stranger.
func family(t *testing.T, s session.Store) {
	t.Helper()
	for i, m := range []struct {
		id, parent dsh.SessionID
		origin     string
	}{
		{"root", "", ""}, {"grandchild", "child2", "subagent"}, {"child2", "root", "subagent"}, {"child1", "root", "subagent"},
		{"fork", "root", ""}, {"stranger", "", ""}, {"loop", "loop", "subagent"},
	} {
		h := dsh.SessionHeader{ID: m.id, CreatedAt: int64(100 + i), CWD: "/srv", ParentSession: m.parent, Origin: m.origin}
		put(t, s, h, sessiontest.Turn(1, 0))
	}
}

func exportTree(t *testing.T, s session.Store, root dsh.SessionID) string {
	t.Helper()
	ids, err := archive.Tree(t.Context(), s, root)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := archive.ExportAll(t.Context(), &out, ids, s.Open); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A tree travels with its links, parents first.
func TestTree(t *testing.T) {
	from := memory.New()
	family(t, from)
	ids, err := archive.Tree(t.Context(), from, "root")
	if err != nil || !slices.Equal(ids, []dsh.SessionID{"root", "child2", "grandchild", "child1"}) {
		t.Fatalf("%v, %v", ids, err)
	}
	if ids, err := archive.Tree(t.Context(), from, "loop"); err != nil || len(ids) != 1 {
		t.Errorf("loop: %v, %v", ids, err)
	}
	if _, err := archive.Tree(t.Context(), from, "nobody"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
	document := exportTree(t, from, "root")
	for name, fresh := range stores {
		to := fresh(t)
		done, err := archive.Import(t.Context(), to, strings.NewReader(document), archive.Options{})
		if err != nil || len(done) != 4 || done[2].Header.ParentSession != "child2" {
			t.Fatalf("%s: %+v, %v", name, done, err)
		}
		if again := exportTree(t, to, "root"); again != document {
			t.Errorf("%s: %s", name, difference(document, again))
		}
		_, err = archive.Import(t.Context(), to, strings.NewReader(document), archive.Options{As: "x"})
		if !errors.Is(err, archive.ErrSeveral) {
			t.Errorf("as: %v", err)
		}
	}
}

// brittle is a store of which one log cannot be made, or not be committed.
type brittle struct {
	*jsonl.Store
	stage, commit dsh.SessionID
}

var errBrittle = errors.New("brittle")

func (b brittle) Stage(ctx context.Context, h dsh.SessionHeader, batches iter.Seq2[[]dsh.Event, error]) (session.Staged, error) {
	if h.ID == b.stage {
		return nil, errBrittle
	}
	s, err := b.Store.Stage(ctx, h, batches)
	if err == nil && h.ID == b.commit {
		return brittleLog{s}, nil
	}
	return s, err
}

type brittleLog struct{ session.Staged }

func (b brittleLog) Commit() error { return errors.Join(errBrittle, b.Discard()) }

// Of several sessions all are imported or none; if even that fails, it is said how
// many were.
func TestImportOfATreeThatFails(t *testing.T) {
	from := memory.New()
	family(t, from)
	document := exportTree(t, from, "root")
	s := brittle{Store: files(t, t.TempDir(), jsonl.Zstd), stage: "child1"}
	if _, err := archive.Import(t.Context(), s, strings.NewReader(document), archive.Options{}); !errors.Is(err, errBrittle) {
		t.Fatal(err)
	}
	if found, err := s.Survey(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("left %v, %v", found, err)
	}
	s.stage, s.commit = "", "grandchild"
	_, err := archive.Import(t.Context(), s, strings.NewReader(document), archive.Options{})
	if !errors.Is(err, errBrittle) || !strings.Contains(err.Error(), "2 of 4 sessions were imported") {
		t.Fatal(err)
	}
	if found, err := s.Survey(t.Context()); err != nil || len(found) != 2 {
		t.Errorf("left %v, %v", found, err)
	}
}

// fickle is a document that is another one when it is read again.
type fickle struct {
	*strings.Reader
	second string
	seeks  int
}

func (f *fickle) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		f.Reader = strings.NewReader(f.second)
	}
	return f.Reader.Seek(offset, whence)
}

func TestImportOfAFileThatChanges(t *testing.T) {
	whole := begin + head + `"events":[` + turn0 + "," + turn1 + `]}`
	for _, second := range []string{
		begin + head + `"events":[` + turn0 + `]}`, begin + head + `"events":[` + turn0, begin + `"x":1}`, "",
	} {
		s := files(t, t.TempDir(), jsonl.Raw)
		if _, err := archive.Import(t.Context(), s, &fickle{Reader: strings.NewReader(whole), second: second}, archive.Options{}); err == nil {
			t.Errorf("%q was imported", second)
		}
		if found, err := s.Survey(t.Context()); err != nil || len(found) > 0 {
			t.Errorf("left %v, %v", found, err)
		}
	}
}

// endless is a large document that is made as it is read.
type endless struct {
	size, at int64
	rest     []byte
	seq      int64
	done     bool
}

func (e *endless) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		switch {
		case e.done:
			return 0, io.EOF
		case e.seq < 0:
			e.rest = append(e.rest, begin+head+`"events":[`...)
		case e.at > e.size:
			e.rest, e.done = append(e.rest, "]}"...), true
		default:
			comma := ","
			if e.seq == 0 {
				comma = ""
			}
			e.rest = fmt.Appendf(e.rest, `%s{"type":"todo/write","seq":%d,"time":1,"data":%q}`, comma, e.seq, strings.Repeat("todo ", 2000))
		}
		e.at += int64(len(e.rest))
		e.seq++
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *endless) Seek(_ int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		e.at, e.seq, e.done, e.rest = 0, -1, false, nil
	}
	return 0, nil
}

// sink is a store that keeps nothing but the largest heap that it saw.
type sink struct {
	*memory.Store
	most uint64
}

func (s *sink) Stage(_ context.Context, _ dsh.SessionHeader, batches iter.Seq2[[]dsh.Event, error]) (session.Staged, error) {
	for _, err := range batches {
		if err != nil {
			return nil, err
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		s.most = max(s.most, m.HeapAlloc)
	}
	return sunk{}, nil
}

type sunk struct{}

func (sunk) Commit() error  { return nil }
func (sunk) Discard() error { return nil }

// However large a document is, reading it takes memory for a part.
func TestImportIsAStream(t *testing.T) {
	const size, most = 20 << 20, 12 << 20
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	s := &sink{Store: memory.New()}
	done, err := archive.Import(t.Context(), s, &endless{size: size, seq: -1}, archive.Options{})
	if err != nil || done[0].Events < 2000 {
		t.Fatalf("%+v, %v", done, err)
	}
	if grown := int64(s.most) - int64(before.HeapAlloc); grown > most {
		t.Errorf("reading %d MB took %d MB", size>>20, grown>>20)
	}
}

// An export and an import end with their context.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := memory.New()
	put(t, s, sessiontest.Header("a"), sessiontest.Turn(1, 0))
	document := export(t, s, "a")
	log, err := s.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Export(ctx, io.Discard, log); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := archive.Import(ctx, memory.New(), strings.NewReader(document), archive.Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A writer that fails ends an export with its error.
func TestExportToAFullDisk(t *testing.T) {
	s := memory.New()
	put(t, s, sessiontest.Header("a"), sessiontest.Turn(1, 0))
	log, err := s.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile(filepath.Join(t.TempDir(), "f"), os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if err := archive.Export(t.Context(), full, log); err == nil {
		t.Error("it was written")
	}
}

// No document makes an import panic, or leaves something that cannot be exported
// and imported again.
func FuzzImport(f *testing.F) {
	s := memory.New()
	put(f, s, sessiontest.Header("a"), sessiontest.Turn(1, 0))
	f.Add(export(f, s, "a"))
	f.Add(begin + head + `"events":[` + turn0 + "," + turn1 + `]}`)
	f.Add(begin + `"sessions":[{` + head + `"events":[]}]}`)
	f.Add("\xef\xbb\xbf" + begin + `"x":[{}],` + head + `"events":[]}`)
	f.Fuzz(func(t *testing.T, document string) {
		s := memory.New()
		done, err := archive.Import(t.Context(), s, strings.NewReader(document), archive.Options{})
		if err != nil {
			for h := range s.List(t.Context()) {
				t.Errorf("%v, and %s is there", err, h.ID)
			}
			return
		}
		for _, d := range done {
			first := export(t, s, d.Header.ID)
			again := memory.New()
			if _, err := archive.Import(t.Context(), again, strings.NewReader(first), archive.Options{}); err != nil {
				t.Fatalf("%v\n%s", err, first)
			}
			if second := export(t, again, d.Header.ID); second != first {
				t.Fatal(difference(first, second))
			}
		}
	})
}
