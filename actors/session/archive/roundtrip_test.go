package archive_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
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

// stores is every store that sessions are imported into.
var stores = map[string]func(t testing.TB) session.Store{
	"memory": func(testing.TB) session.Store { return memory.New() },
	"zstd":   func(t testing.TB) session.Store { return files(t, t.TempDir(), jsonl.Zstd) },
	"raw":    func(t testing.TB) session.Store { return files(t, t.TempDir(), jsonl.Raw) },
}

func files(t testing.TB, dir string, e jsonl.Encoding) *jsonl.Store {
	t.Helper()
	s, err := jsonl.Open(dir, jsonl.Options{Encoding: e})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// put puts a log into a store.
func put(t testing.TB, s session.Store, h dsh.SessionHeader, events []dsh.Event) {
	t.Helper()
	log, err := s.Create(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Extend(t.Context(), log, events); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// export returns the document of a session.
func export(t testing.TB, s session.Store, id dsh.SessionID) string {
	t.Helper()
	log, err := s.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var out bytes.Buffer
	if err := archive.Export(t.Context(), &out, log); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// travels fails the test if a document is another one after it went through any
// store, or any of those that are named.
func travels(t *testing.T, id dsh.SessionID, document string, only ...string) {
	t.Helper()
	if !json.Valid([]byte(document)) {
		t.Fatalf("not JSON: %.200s", document)
	}
	for name, fresh := range stores {
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		s := fresh(t)
		if _, err := archive.Import(t.Context(), s, strings.NewReader(document), archive.Options{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again := export(t, s, id); again != document {
			t.Fatalf("%s: the document changed\n%s", name, difference(document, again))
		}
	}
}

func difference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d\nwas %.500s\nis  %.500s", i, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d lines, now %d", len(x), len(y))
}

// The samples of the session format, one of which a crash cut off.
func TestSamplesTravel(t *testing.T) {
	const id = "main-session-00000000-0000-4000-8000-000000000001"
	for _, name := range []string{"a.jsonl", "a.jsonl.zstd", "b.jsonl"} {
		data, err := os.ReadFile(filepath.Join("..", "jsonl", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		file, encoding := "session.jsonl", jsonl.Raw
		if strings.HasSuffix(name, ".zstd") {
			file, encoding = "session.jsonl.zstd", jsonl.Zstd
		}
		dir := filepath.Join(root, "--srv-demo--", id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
		document := export(t, files(t, root, encoding), id)
		if n := strings.Count(document, "\n{\"type\":"); n != map[string]int{"b.jsonl": 21}[name] && n != 33 {
			t.Errorf("%s: %d events", name, n)
		}
		travels(t, id, document)
	}
}

// Every log that the conformance suite recorded.
func TestTracesTravel(t *testing.T) {
	paths, err := filepath.Glob("../../../internal/conformance/testdata/traces/*.json")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../../../internal/conformance/testdata/subagents/traces/*.json")
	if err != nil {
		t.Fatal(err)
	}
	logs := 0
	for _, path := range append(paths, more...) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var trace struct {
			Agents []struct {
				Key    string
				Events []map[string]any
			}
		}
		if err := json.Unmarshal(data, &trace); err != nil {
			t.Fatal(path, err)
		}
		for i, a := range trace.Agents {
			events := make([]dsh.Event, len(a.Events))
			for k, e := range a.Events {
				e["time"] = 1_790_000_000_000 + k/5
				line, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				if err := events[k].UnmarshalJSON(line); err != nil {
					t.Fatal(path, err)
				}
			}
			id := dsh.SessionID(fmt.Sprintf("%s-%d", strings.TrimSuffix(filepath.Base(path), ".json"), i))
			if id == "resume-bad-inbox-0" {
				continue // it cannot be continued, and is not imported
			}
			s := memory.New()
			put(t, s, dsh.SessionHeader{ID: id, CreatedAt: 7, CWD: "/a b/π"}, events)
			// Syncing so many files takes long: each log travels through memory
			// and one kind of file.
			travels(t, id, export(t, s, id), "memory", []string{"raw", "zstd"}[logs%2])
			logs++
		}
	}
	if logs < 150 {
		t.Errorf("only %d logs", logs)
	}
}

// Random logs: any text, packed runs, replaced ranges, foreign events, large ones.
func TestRandomLogsTravel(t *testing.T) {
	for range 10 {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 1))
		events := randomLog(random)
		s := memory.New()
		h := sessiontest.Header("r")
		h.CWD = "/" + text(random)
		if random.IntN(2) == 0 {
			h = dsh.SessionHeader{ID: "r", CreatedAt: random.Int64N(1 << 50)}
		}
		put(t, s, h, events)
		t.Logf("seed %d, %d events", seed, len(events))
		travels(t, "r", export(t, s, "r"))
	}
}

func text(random *rand.Rand) string {
	pieces := []string{"a", "<&>", "\u2028", "π", "\x00", "\"", "\\", "\n", "\U0001F600", " ", "\x7f", "long " + strings.Repeat("x", 300)}
	var out strings.Builder
	for range random.IntN(12) {
		out.WriteString(pieces[random.IntN(len(pieces))])
	}
	return out.String()
}

func randomLog(random *rand.Rand) []dsh.Event {
	var events []dsh.Event
	next := dsh.Seq(0)
	add := func(more ...dsh.Event) {
		for _, ev := range more {
			ev.Seq = next
			next += ev.Span()
			events = append(events, ev)
		}
	}
	var user dsh.Seq
	for turn := 1; turn <= 1+random.IntN(6); turn++ {
		for _, ev := range sessiontest.Turn(turn, next) {
			if ev.Surface.Kind() == dsh.SurfaceAppend && ev.Sources == nil {
				user = ev.Seq
			}
			events = append(events, ev)
			next = ev.Last() + 1
		}
		for range random.IntN(3) {
			chunks := []dsh.Chunk{}
			for i := range 1 + random.IntN(30) {
				chunks = append(chunks, dsh.ReasoningDelta{Index: i / 9, Text: text(random)})
			}
			add(dsh.Event{Time: random.Int64N(1 << 52), Data: dsh.ChunkRun{Turn: turn, Step: 1, Chunks: chunks}})
		}
		if random.IntN(2) == 0 {
			summary := &dsh.Message{ID: dsh.MessageID(text(random)), Role: dsh.RoleUser, Source: dsh.UserSource{}, Content: []dsh.Block{dsh.Text{Text: text(random)}}}
			add(dsh.Event{Surface: dsh.Replace(user, user), Sources: dsh.Cite(user), Data: dsh.UserMessage{Message: summary}})
		}
		raw := dsh.AppendString([]byte(`{"n":1e3,"text":`), strings.Repeat(text(random), 1+random.IntN(400)))
		add(dsh.Event{Ignorable: true, Data: dsh.Opaque{Name: "custom/x", Raw: append(raw, '}')}})
	}
	return events
}
