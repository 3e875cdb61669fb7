package pebble_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/stores/pebble"
)

// contestants are the stores that are compared.
var contestants = []struct {
	name string
	open func(dir string) (session.Store, func() error, error)
}{
	{"jsonl", openJSONL(jsonl.Options{})},
	{"jsonl-raw", openJSONL(jsonl.Options{Encoding: jsonl.Raw})},
	{"jsonl-each", openJSONL(jsonl.Options{SyncEach: true})},
	{"jsonl-raw-each", openJSONL(jsonl.Options{SyncEach: true, Encoding: jsonl.Raw})},
	{"pebble", func(dir string) (session.Store, func() error, error) {
		s, err := pebble.Open(dir)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}},
}

func openJSONL(opts jsonl.Options) func(dir string) (session.Store, func() error, error) {
	return func(dir string) (session.Store, func() error, error) {
		s, err := jsonl.Open(dir, opts)
		return s, func() error { return nil }, err
	}
}

// vocabulary is what the texts of steps are made of.
var vocabulary = strings.Fields(`the file that was read holds a function which returns an error when its
	argument is empty and the caller of it does not look at what came back so the test passes for the wrong
	reason before line package import struct interface context cancel worker queue value offset buffer index`)

// words returns about n bytes of text that compresses like text.
func words(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		if r.IntN(8) == 0 {
			fmt.Fprintf(&b, "0x%08x ", r.Uint32())
		}
		b.WriteString(vocabulary[r.IntN(len(vocabulary))])
		b.WriteByte(' ')
	}
	return b.String()
}

// texts are the texts of a step. They are made before the clock starts.
type texts struct {
	asked, answer, result, arguments string
	chunks                           []dsh.Chunk
}

// library is what steps are filled with.
var library = sync.OnceValue(func() []texts {
	r := rand.New(rand.NewPCG(1, 2))
	library := make([]texts, 997)
	for i := range library {
		t := texts{asked: words(r, 80), answer: words(r, 150), result: words(r, 900)}
		t.arguments = `{"path":"internal/` + vocabulary[r.IntN(len(vocabulary))] + `.go"}`
		t.chunks = []dsh.Chunk{dsh.BlockStart{BlockType: dsh.TextBlock}}
		for w := range strings.SplitAfterSeq(t.answer, " ") {
			t.chunks = append(t.chunks, dsh.TextDelta{Text: w})
		}
		t.chunks = append(t.chunks, dsh.BlockEnd{Block: dsh.Text{Text: t.answer}})
		library[i] = t
	}
	return library
})

// step returns what an agent makes durable at a barrier: 12 events, which are
// about 40 by number and 3.9 KB of lines.
func step(t texts, turn int, seq dsh.Seq) []dsh.Event {
	name, call, id := "read_file", dsh.CallID("call_"+strconv.Itoa(turn)), dsh.MessageID(strconv.Itoa(turn))
	result := &dsh.Message{
		ID: "t" + id, Role: dsh.RoleUser, Source: dsh.ToolSource{CallID: call},
		Content: []dsh.Block{dsh.ToolResult{CallID: call, Content: []dsh.Block{dsh.Text{Text: t.result}}}},
	}
	answered := &dsh.Message{
		ID: "a" + id, Role: dsh.RoleAssistant, Source: dsh.ModelSource{Provider: "deepseek", Model: "deepseek-chat"},
		Content: []dsh.Block{dsh.Text{Text: t.answer}, dsh.ToolCall{ID: call, Name: name, Arguments: t.arguments}},
	}
	asked := &dsh.Message{
		ID: "u" + id, Role: dsh.RoleUser, Source: dsh.UserSource{}, Content: []dsh.Block{dsh.Text{Text: t.asked}},
	}
	events := []dsh.Event{
		{Data: dsh.TurnStart{Turn: turn}},
		{Data: dsh.StepStart{Turn: turn, Step: 1}},
		{Surface: dsh.Append, Data: dsh.UserMessage{Message: asked}},
		{Data: dsh.ChunkRun{Turn: turn, Step: 1, Chunks: t.chunks}},
		{Data: dsh.ChunkRun{Turn: turn, Step: 1, Chunks: []dsh.Chunk{
			dsh.BlockStart{Index: 1, BlockType: dsh.ToolCallBlock},
			dsh.ToolCallDelta{Index: 1, ID: call, Name: &name, ArgumentsDelta: t.arguments},
		}}},
		{Data: dsh.AssistantChunk{Turn: turn, Step: 1, Chunk: dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishToolCalls}}}},
		{Surface: dsh.Append, Data: dsh.AssistantMessage{Turn: turn, Step: 1, Message: answered}},
		{Data: dsh.ToolStarted{Turn: turn, Step: 1, CallID: call, Name: name, Arguments: t.arguments}},
		{Surface: dsh.Append, Data: dsh.ToolFinished{Turn: turn, Step: 1, Message: result}},
		{Ignorable: true, Data: dsh.Opaque{Name: "custom/note", Raw: []byte(`{"cost":0.0012}`)}},
		{Data: dsh.StepEnd{Turn: turn, Step: 1}},
		{Data: dsh.TurnEnd{Turn: turn, Reason: dsh.Ending{Kind: dsh.EndCompleted}}},
	}
	for i := range events {
		events[i].Seq, events[i].Time = seq, 1_790_000_000_000+int64(turn)
		seq += events[i].Span()
	}
	return events
}

// writer is a session that makes steps durable, one after the other.
type writer struct {
	log  session.Log
	seed int
	turn int
	next dsh.Seq
}

func (w *writer) step(tb testing.TB) {
	w.turn++
	events := step(library()[(w.seed*31+w.turn)%len(library())], w.turn, w.next)
	w.next = events[len(events)-1].Last() + 1
	if err := errors.Join(session.Extend(tb.Context(), w.log, events), w.log.Sync(tb.Context())); err != nil {
		tb.Error(err)
	}
}

// start creates n sessions, each with its first steps.
func start(tb testing.TB, s session.Store, n, steps int) []*writer {
	return startFrom(tb, s, 0, n, steps)
}

func startFrom(tb testing.TB, s session.Store, first, n, steps int) []*writer {
	tb.Helper()
	writers := make([]*writer, n)
	var wg sync.WaitGroup
	for i := range writers {
		h := dsh.SessionHeader{
			Version: dsh.FormatVersion, ID: dsh.SessionID(fmt.Sprintf("0198c1d2-7a3b-7000-8000-%012d", first+i)),
			CreatedAt: 1_790_000_000_000 + int64(i), CWD: "/srv/demo",
		}
		log, err := s.Create(tb.Context(), h)
		if err != nil {
			tb.Fatal(err)
		}
		w := &writer{log: log, seed: first + i}
		writers[i] = w
		wg.Go(func() {
			for range steps {
				w.step(tb)
			}
		})
	}
	wg.Wait()
	return writers
}

func closeAll(tb testing.TB, writers []*writer) {
	var wg sync.WaitGroup
	for _, w := range writers {
		wg.Go(func() {
			if err := w.log.Close(); err != nil {
				tb.Error(err)
			}
		})
	}
	wg.Wait()
}

// each runs a benchmark for every store.
func each(b *testing.B, run func(b *testing.B, dir string, open func() (session.Store, func() error))) {
	for _, c := range contestants {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			run(b, dir, func() (session.Store, func() error) {
				s, closeStore, err := c.open(dir)
				if err != nil {
					b.Fatal(err)
				}
				return s, closeStore
			})
		})
	}
}

// How many durable steps per second are made by so many sessions, each of
// which waits for its own?
func BenchmarkDurable(b *testing.B) {
	for _, n := range []int{1, 32, 1000} {
		b.Run(fmt.Sprintf("sessions=%d", n), func(b *testing.B) {
			each(b, func(b *testing.B, dir string, open func() (session.Store, func() error)) {
				s, closeStore := open()
				writers := start(b, s, n, 1)
				var made atomic.Int64
				before, writes := processorTime(), diskWrites(dir)
				b.ResetTimer()
				var wg sync.WaitGroup
				for _, w := range writers {
					wg.Go(func() {
						for made.Add(1) <= int64(b.N) {
							w.step(b)
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
				b.ReportMetric(float64((processorTime()-before).Microseconds())/float64(b.N), "cpu-µs/step")
				b.ReportMetric(float64(diskWrites(dir)-writes)/float64(b.N), "disk-writes/step")
				b.ReportMetric(0, "ns/op")
				closeAll(b, writers)
				if err := closeStore(); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// How many new sessions per second are made durable, with a thousand at once?
func BenchmarkCreate(b *testing.B) {
	const sessions = 1000
	each(b, func(b *testing.B, _ string, open func() (session.Store, func() error)) {
		s, closeStore := open()
		n := 0
		for b.Loop() {
			closeAll(b, startFrom(b, s, n, sessions, 1))
			n += sessions
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "sessions/s")
		b.ReportMetric(0, "ns/op")
		if err := closeStore(); err != nil {
			b.Error(err)
		}
	})
}

// What does a session take on disk after twenty steps?
func BenchmarkDisk(b *testing.B) {
	const sessions, steps = 1000, 20
	each(b, func(b *testing.B, dir string, open func() (session.Store, func() error)) {
		for b.Loop() {
			s, closeStore := open()
			closeAll(b, start(b, s, sessions, steps))
			if err := closeStore(); err != nil {
				b.Error(err)
			}
			size, taken := usage(b, dir)
			b.ReportMetric(float64(size)/sessions, "B/session")
			b.ReportMetric(float64(taken)/sessions, "disk-B/session")
			b.ReportMetric(0, "ns/op")
			if err := os.RemoveAll(dir); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// usage returns the length of all files below dir, and the blocks they take.
func usage(tb testing.TB, dir string) (size, taken int64) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
			taken += blocks(info)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return size, taken
}

// How long does resuming a log of ten thousand events take?
func BenchmarkOpen(b *testing.B) {
	each(b, func(b *testing.B, dir string, open func() (session.Store, func() error)) {
		s, closeStore := open()
		others := start(b, s, 50, 20) // the log is not alone
		w := startFrom(b, s, 50, 1, 0)[0]
		for w.next < 10_000 {
			w.step(b)
		}
		id := w.log.Header().ID
		closeAll(b, append(others, w))
		if err := closeStore(); err != nil {
			b.Fatal(err)
		}
		s, closeStore = open()
		for b.Loop() {
			log, err := s.Open(b.Context(), id)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := log.Read(b.Context(), 0, 0); err != nil {
				b.Fatal(err)
			}
			if err := log.Close(); err != nil {
				b.Fatal(err)
			}
		}
		if err := closeStore(); err != nil {
			b.Error(err)
		}
	})
}

// What do a thousand idle open logs keep? Run one store at a time: memory of
// the process is told.
func BenchmarkIdle(b *testing.B) {
	const sessions = 1000
	each(b, func(b *testing.B, dir string, open func() (session.Store, func() error)) {
		for b.Loop() {
			library()
			heap, resident, files := held()
			s, closeStore := open()
			writers := start(b, s, sessions, 5)
			h, r, f := held()
			b.ReportMetric(float64(h-heap)/sessions, "heap-B/session")
			b.ReportMetric(float64(r-resident)/sessions, "rss-B/session")
			b.ReportMetric(float64(f-files)/sessions, "files/session")
			b.ReportMetric(0, "ns/op")
			closeAll(b, writers)
			if err := errors.Join(closeStore(), os.RemoveAll(dir)); err != nil {
				b.Error(err)
			}
		}
	})
}

// held returns the heap, the resident memory and the open files of the process.
func held() (heap, resident int64, files int) {
	goruntime.GC()
	debug.FreeOSMemory()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	var pages int64
	if data, err := os.ReadFile("/proc/self/statm"); err == nil {
		_, _ = fmt.Sscan(string(data), new(int64), &pages)
	}
	open, _ := os.ReadDir("/proc/self/fd")
	return int64(m.HeapAlloc), pages * int64(os.Getpagesize()), len(open)
}

// How long does it take to list a thousand sessions?
func BenchmarkList(b *testing.B) {
	const sessions = 1000
	each(b, func(b *testing.B, dir string, open func() (session.Store, func() error)) {
		s, closeStore := open()
		closeAll(b, start(b, s, sessions, 5))
		for b.Loop() {
			n := 0
			for _, err := range s.List(b.Context()) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != sessions {
				b.Fatalf("%d sessions", n)
			}
		}
		if err := closeStore(); err != nil {
			b.Error(err)
		}
	})
}
