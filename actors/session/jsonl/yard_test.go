package jsonl

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A yard is a root with a log of each kind of trouble.
type yard struct {
	*Store
	t    *testing.T
	want map[dsh.SessionID]Verdict
	// mended is the logs that a repair can make sound, without cutting.
	mended []dsh.SessionID
}

func newYard(t *testing.T, e Encoding) *yard {
	t.Helper()
	s, err := Open(t.TempDir(), Options{Encoding: e})
	if err != nil {
		t.Fatal(err)
	}
	return &yard{Store: s, t: t, want: map[dsh.SessionID]Verdict{}}
}

// file makes the file of a log, with a unit for each batch of lines.
func (y *yard) file(id dsh.SessionID, batches ...[]byte) []byte {
	h := header(id)
	data := y.box.wrap(nil, append(h.AppendJSON(nil), '\n'))
	for _, lines := range batches {
		data = y.box.wrap(data, lines)
	}
	return data
}

// put writes a file into a place below the root.
func (y *yard) put(place string, data []byte) string {
	y.t.Helper()
	path := filepath.Join(y.root, place)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		y.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		y.t.Fatal(err)
	}
	return path
}

// log puts a log where it belongs and says what is the matter with it.
func (y *yard) log(id dsh.SessionID, v Verdict, data []byte) string {
	y.t.Helper()
	y.want[id] = v
	return y.put(filepath.Join("--srv-demo--", string(id), y.box.name()), data)
}

// linesOf returns events as a log has them.
func linesOf(events ...dsh.Event) []byte { return appendLines(nil, events) }

// twoTurns returns the lines of two whole turns, and how many events they are.
func twoTurns() (first, second []byte, n dsh.Seq) {
	one := sessiontest.Turn(1, 0)
	two := sessiontest.Turn(2, one[len(one)-1].Last()+1)
	return linesOf(one...), linesOf(two...), two[len(two)-1].Last() + 1
}

// other returns the encoding that is not e.
func other(b box) box {
	if b == (rawBox{}) {
		return zstdBox{}
	}
	return rawBox{}
}

// fill makes one log of each kind.
func (y *yard) fill() *yard {
	y.t.Helper()
	first, second, n := twoTurns()
	half := cutLines(second, 3)
	next := func(fact dsh.Fact) []byte { return linesOf(dsh.Event{Seq: n, Time: 1, Data: fact}) }
	spoilt := bytes.Replace(second, []byte(`"type":"step/start"`), []byte(`"type":"step/sta`), 1)

	y.log("sound", Sound, y.file("sound", first, second))
	y.log("header-only", Sound, y.file("header-only"))
	whole := y.file("torn", first, second)
	y.log("torn", Torn, whole[:len(whole)-5])
	y.log("open", OpenTurn, y.file("open", first, half))
	y.log("corrupt", Corrupt, y.file("corrupt", first, spoilt))
	y.log("invalid", Invalid, y.file("invalid", first, second, next(dsh.InboxSpliced{Target: dsh.NextTurn, Removed: 1})))
	y.log("unknown", Unknown, y.file("unknown", first, second, next(dsh.Opaque{Name: "custom/secret", Raw: []byte(`{}`)})))
	y.log("newer", Newer, y.box.wrap(nil, []byte(`{"type":"session","version":3,"id":"newer"}`+"\n")))
	y.want["later"] = Newer
	y.put("--srv-demo--/later/session.v3.jsonl", []byte("whatever"))
	y.log("headless", Corrupt, y.box.wrap(nil, []byte("no header\n")))
	y.log("empty", Empty, nil)
	y.want["leftover"] = Leftover
	y.put("--srv-demo--/leftover/"+y.box.name()+".0123456789ab.tmp", []byte("half"))
	foreign := &yard{Store: &Store{box: other(y.box)}}
	y.want["foreign"] = Foreign
	y.put("--srv-demo--/foreign/"+foreign.box.name(), foreign.file("foreign", first))

	y.want["misplaced"] = Misplaced
	y.put("--elsewhere--/misplaced/"+y.box.name(), y.file("misplaced", first))
	y.want["renamed"] = Misplaced
	torn := y.file("renamed", first, second)
	y.put("--srv-demo--/by-hand/"+y.box.name(), torn[:len(torn)-5])
	y.want["flat"] = Misplaced
	y.put("--srv-demo--/flat"+strings.TrimPrefix(y.box.name(), "session"), y.file("flat", first))
	y.want["deep"] = Misplaced
	y.put("--srv-demo--/a/b/"+y.box.name(), y.file("deep", first))
	y.want["twice"] = Duplicate
	y.put("--srv-demo--/twice/"+y.box.name(), y.file("twice", first))
	y.put("--elsewhere--/twice/"+y.box.name(), y.file("twice", first))

	y.log("littered", Sound, y.file("littered", first))
	y.put("--srv-demo--/littered/"+y.box.name()+".0123456789ab.tmp", []byte("half"))
	y.log("kept", Sound, y.file("kept", first))
	y.put("--srv-demo--/kept/"+y.box.name()+".20260101T000000.000Z.bak", []byte("a copy"))
	y.put("notes.txt", []byte("mine"))
	y.put("--srv-demo--/notes.txt", []byte("mine"))
	y.mended = []dsh.SessionID{
		"sound", "header-only", "torn", "open", "misplaced", "renamed", "flat", "deep", "littered", "kept",
	}
	return y
}

// A trace is what must not change of a file.
type trace struct {
	mode  fs.FileMode
	mtime int64
	data  string
}

// traces returns everything in a directory.
func traces(t *testing.T, root string) map[string]trace {
	t.Helper()
	all := map[string]trace{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		one := trace{mode: info.Mode(), mtime: info.ModTime().UnixNano()}
		if !d.IsDir() {
			one.data = string(fileOf(t, path))
		}
		all[path] = one
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// unchanged fails the test if anything in a directory is not as it was.
func unchanged(t *testing.T, root string, before map[string]trace) {
	t.Helper()
	after := traces(t, root)
	for path, was := range before {
		if is, ok := after[path]; !ok || is != was {
			t.Errorf("%s was changed", path)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("%s was made", path)
		}
	}
}

// bothEncodings runs a test with each.
func bothEncodings(t *testing.T, test func(t *testing.T, e Encoding)) {
	for _, e := range []Encoding{Zstd, Raw} {
		t.Run(boxOf(e).name(), func(t *testing.T) { test(t, e) })
	}
}

// sortedIDs returns the IDs of reports.
func sortedIDs(reports []Report) []dsh.SessionID {
	var ids []dsh.SessionID
	for _, r := range reports {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
