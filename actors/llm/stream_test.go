package llm_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/dsh-actor/dsh-actor/actors/dispatch"
	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reader is an agent that takes from a feed when it is told, unless it is
// busy, and keeps what it got.
type reader struct {
	busy   chan struct{} // if set, each take waits for it
	chunks []dsh.Chunk
	takes  int
	most   int // chunks of one take
	ends   int
	err    error
}

func (r *reader) Receive(c actor.Context) {
	fed, ok := c.Message().(llm.Fed)
	if !ok {
		return
	}
	if r.busy != nil {
		<-r.busy
	}
	chunks, ended, err := fed.Feed.Take()
	r.chunks = append(r.chunks, chunks...)
	r.takes++
	r.most = max(r.most, len(chunks))
	if ended {
		r.ends++
		r.err = err
	}
}

// open starts a stream that serves with serve and is read by r.
func open(t *testing.T, r *reader, serve hook.StreamFunc) (abort func()) {
	t.Helper()
	workers, system := dispatch.New(), dispatch.NewSystem(slog.New(slog.DiscardHandler))
	agent := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return r }, workers.Mailbox()))
	stream := system.Root.Spawn(llm.Props(workers.Mailbox()))
	system.Root.Send(stream, llm.Open{
		Context: context.Background(), Serve: serve, Request: &dsh.Request{}, ReplyTo: agent,
	})
	t.Cleanup(func() {
		system.Root.Stop(agent)
		synctest.Wait()
		system.Shutdown()
		workers.Close()
	})
	return func() { system.Root.Send(stream, llm.Abort{}) }
}

func count(n int, after func(ctx context.Context, yield func(dsh.Chunk, error) bool)) hook.StreamFunc {
	return func(ctx context.Context, _ *dsh.Request) iter.Seq2[dsh.Chunk, error] {
		return func(yield func(dsh.Chunk, error) bool) {
			for i := range n {
				if !yield(dsh.TextDelta{Text: strconv.Itoa(i)}, nil) {
					return
				}
			}
			if after != nil {
				after(ctx, yield)
			}
		}
	}
}

func inOrder(t *testing.T, chunks []dsh.Chunk, n int) {
	t.Helper()
	if len(chunks) != n {
		t.Errorf("%d chunks, want %d", len(chunks), n)
	}
	for i, c := range chunks {
		if c != (dsh.TextDelta{Text: strconv.Itoa(i)}) {
			t.Fatalf("chunk %d is %v", i, c)
		}
	}
}

// However a stream ends, its feed ends exactly once, behind all its chunks.
func TestAFeedEndsOnce(t *testing.T) {
	broken := errors.New("broken")
	type yield = func(dsh.Chunk, error) bool
	for _, tc := range []struct {
		name  string
		after func(context.Context, yield)
		want  error
	}{
		{"by itself", nil, nil},
		{"by an error", func(_ context.Context, y yield) { y(nil, broken) }, broken},
		{"by a panic", func(context.Context, yield) { panic(broken) }, broken},
		{"by ending its goroutine", func(context.Context, yield) { runtime.Goexit() }, hook.ErrExited},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &reader{}
				open(t, r, count(3, tc.after))
				synctest.Wait()
				inOrder(t, r.chunks, 3)
				if r.ends != 1 || !errors.Is(r.err, tc.want) {
					t.Errorf("%d ends with %v, want %v", r.ends, r.err, tc.want)
				}
			})
		})
	}
}

func TestAbortReachesTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		abort := open(t, r, count(2, func(ctx context.Context, yield func(dsh.Chunk, error) bool) {
			<-ctx.Done()
			yield(nil, ctx.Err())
		}))
		synctest.Wait()
		if r.ends != 0 {
			t.Fatal("ended before the abort")
		}
		abort()
		abort()
		synctest.Wait()
		inOrder(t, r.chunks, 2)
		if r.ends != 1 || !errors.Is(r.err, context.Canceled) {
			t.Errorf("%d ends with %v", r.ends, r.err)
		}
	})
}

// A reader that waits gets each chunk when it comes.
func TestAWaitingReaderGetsEachChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		open(t, r, func(context.Context, *dsh.Request) iter.Seq2[dsh.Chunk, error] {
			return func(yield func(dsh.Chunk, error) bool) {
				for i := range 5 {
					yield(dsh.TextDelta{Text: strconv.Itoa(i)}, nil)
					time.Sleep(time.Second)
				}
			}
		})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		inOrder(t, r.chunks, 5)
		if r.takes != 6 {
			t.Errorf("%d takes for 5 chunks and the end", r.takes)
		}
	})
}

// A busy reader gets them together, and one that is far behind slows the
// provider down.
func TestABusyReaderGetsManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		r := &reader{busy: make(chan struct{})}
		yielded := 0
		open(t, r, func(context.Context, *dsh.Request) iter.Seq2[dsh.Chunk, error] {
			return func(yield func(dsh.Chunk, error) bool) {
				for ; yielded < n; yielded++ {
					yield(dsh.TextDelta{Text: strconv.Itoa(yielded)}, nil)
				}
			}
		})
		synctest.Wait()
		if yielded >= 2_000 {
			t.Errorf("the provider is %d chunks ahead", yielded)
		}
		close(r.busy)
		synctest.Wait()
		inOrder(t, r.chunks, n)
		if r.most < 1_000 {
			t.Errorf("at most %d chunks at once", r.most)
		}
	})
}

// A provider that waits for room hears of the abort.
func TestAbortEndsTheWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{busy: make(chan struct{})}
		abort := open(t, r, count(5_000, nil))
		synctest.Wait()
		abort()
		synctest.Wait()
		close(r.busy)
		synctest.Wait()
		if r.ends != 1 || r.err == nil {
			t.Errorf("%d ends with %v", r.ends, r.err)
		}
	})
}
