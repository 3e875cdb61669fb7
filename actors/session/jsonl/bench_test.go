package jsonl

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// step is what an agent makes durable at a barrier: a few events.
func step(seq dsh.Seq) []dsh.Event {
	name := "read_file"
	events := []dsh.Event{
		{Data: dsh.AssistantChunk{Turn: 1, Step: 1, Chunk: dsh.BlockStart{BlockType: dsh.ToolCallBlock}}},
		{Data: dsh.AssistantChunk{Turn: 1, Step: 1, Chunk: dsh.ToolCallDelta{ID: "call_1", Name: &name, ArgumentsDelta: `{"path":"a.txt"}`}}},
		{Data: dsh.ToolStarted{Turn: 1, Step: 1, CallID: "call_1", Name: name, Arguments: `{"path":"a.txt"}`}},
	}
	for i := range events {
		events[i].Seq, events[i].Time = seq+dsh.Seq(i), 1_790_000_000_000
	}
	return events
}

// How many durable steps per second does a store make for so many sessions,
// each of which waits for its own?
func BenchmarkDurable(b *testing.B) {
	for _, sessions := range []int{1, 32, 1000} {
		for _, mode := range []struct {
			name string
			opts Options
		}{{"together", Options{}}, {"each", Options{SyncEach: true}}, {"raw", Options{Encoding: Raw}}} {
			b.Run(fmt.Sprintf("sessions=%d/%s", sessions, mode.name), func(b *testing.B) {
				s, err := Open(b.TempDir(), mode.opts)
				if err != nil {
					b.Fatal(err)
				}
				logs := make([]session.Log, sessions)
				next := make([]dsh.Seq, sessions)
				write := func(i int) error {
					events := step(next[i])
					next[i] += dsh.Seq(len(events))
					return errors.Join(session.Extend(b.Context(), logs[i], events), logs[i].Sync(b.Context()))
				}
				each := func(do func(i int) error) {
					var wg sync.WaitGroup
					for i := range logs {
						wg.Go(func() {
							if err := do(i); err != nil {
								b.Error(err)
							}
						})
					}
					wg.Wait()
				}
				each(func(i int) (err error) {
					if logs[i], err = s.Create(b.Context(), header(dsh.SessionID(fmt.Sprint(i)))); err == nil {
						err = write(i)
					}
					return err
				})
				steps := 0
				for b.Loop() {
					each(write)
					steps += sessions
				}
				b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
				b.ReportMetric(0, "ns/op")
				each(func(i int) error { return logs[i].Close() })
			})
		}
	}
}

// How many new sessions per second are made durable, with so many at once? No
// file is removed until all is measured: ext4 passes over the inodes of those,
// one by one, for minutes.
func BenchmarkCreate(b *testing.B) {
	for _, sessions := range []int{1, 32, 1000} {
		for _, mode := range []struct {
			name string
			opts Options
		}{{"together", Options{}}, {"each", Options{SyncEach: true}}} {
			dir := b.TempDir()
			n := 0
			b.Run(fmt.Sprintf("sessions=%d/%s", sessions, mode.name), func(b *testing.B) {
				s, err := Open(dir, mode.opts)
				if err != nil {
					b.Fatal(err)
				}
				first := n
				for b.Loop() {
					var wg sync.WaitGroup
					for range sessions {
						id := dsh.SessionID(fmt.Sprint(n))
						n++
						wg.Go(func() {
							log, err := s.Create(b.Context(), header(id))
							if err == nil {
								err = errors.Join(session.Extend(b.Context(), log, step(0)), log.Sync(b.Context()), log.Close())
							}
							if err != nil {
								b.Error(err)
							}
						})
					}
					wg.Wait()
				}
				b.ReportMetric(float64(n-first)/b.Elapsed().Seconds(), "sessions/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// What does one append cost without the disk's part?
func BenchmarkEncode(b *testing.B) {
	run := dsh.ChunkRun{Turn: 1, Step: 1}
	for range 500 {
		run.Chunks = append(run.Chunks, dsh.TextDelta{Text: "token "})
	}
	for name, events := range map[string][]dsh.Event{"step": step(0), "500 chunks": {{Data: run}}} {
		for _, e := range []Encoding{Raw, Zstd} {
			b.Run(fmt.Sprintf("%s/%s", name, boxOf(e).name()), func(b *testing.B) {
				b.ReportAllocs()
				var unit []byte
				for b.Loop() {
					unit = pack(boxOf(e), events)
				}
				b.ReportMetric(float64(len(unit)), "B/batch")
			})
		}
	}
}

// How long does opening a log of ten thousand events take, and what does an
// open log keep?
func BenchmarkOpen(b *testing.B) {
	for _, e := range []Encoding{Raw, Zstd} {
		b.Run(boxOf(e).name(), func(b *testing.B) {
			s, err := Open(b.TempDir(), Options{Encoding: e})
			if err != nil {
				b.Fatal(err)
			}
			log, err := s.Create(b.Context(), header("a"))
			if err != nil {
				b.Fatal(err)
			}
			for seq := dsh.Seq(0); seq < 10_000; seq += 3 {
				if err := session.Extend(b.Context(), log, step(seq)); err != nil {
					b.Fatal(err)
				}
			}
			log.Close()
			var kept uint64
			for b.Loop() {
				log, err = s.Open(b.Context(), "a")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := log.Read(b.Context(), 0, 0); err != nil {
					b.Fatal(err)
				}
				log.Close()
			}
			b.StopTimer()
			before := inUse()
			if log, err = s.Open(b.Context(), "a"); err == nil {
				_, err = log.Read(b.Context(), 0, 0)
			}
			if err != nil {
				b.Fatal(err)
			}
			if after := inUse(); after > before {
				kept = after - before
			}
			b.ReportMetric(float64(kept), "B/open")
			log.Close()
		})
	}
}

func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
