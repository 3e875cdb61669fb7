package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/dsh-actor/dsh-actor/actors/dispatch"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/dsh"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disk is a log that takes time and can fail.
type disk struct {
	session.Log
	mu      sync.Mutex
	delay   time.Duration
	err     error
	calls   int
	appends []int // how many events each append brought
	syncs   int
	closed  bool
}

func (d *disk) fault() error {
	d.mu.Lock()
	d.calls++
	delay, err := d.delay, d.err
	d.mu.Unlock()
	time.Sleep(delay)
	return err
}

func (d *disk) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

func (d *disk) set(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *disk) Append(ctx context.Context, fence session.Fence, events []dsh.Event) error {
	if err := d.fault(); err != nil {
		return err
	}
	d.mu.Lock()
	d.appends = append(d.appends, len(events))
	d.mu.Unlock()
	return d.Log.Append(ctx, fence, events)
}

func (d *disk) Sync(context.Context) error {
	if err := d.fault(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncs++
	return nil
}

func (d *disk) Close() error {
	d.closed = true
	return d.Log.Close()
}

// fixture is a session on a disk and an agent that records its answers.
type fixture struct {
	t       *testing.T
	system  *actor.ActorSystem
	disk    *disk
	session *actor.PID
	agent   *actor.PID
	gone    chan struct{}
	next    dsh.Seq

	mu      sync.Mutex
	answers []string
}

func newFixture(t *testing.T, volatile bool) *fixture {
	t.Helper()
	log, err := memory.New().Create(t.Context(), dsh.SessionHeader{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	delay := 10 * time.Millisecond
	if volatile {
		delay = 0
	}
	workers := dispatch.New()
	f := &fixture{
		t: t, system: dispatch.NewSystem(slog.New(slog.DiscardHandler)), gone: make(chan struct{}),
		disk: &disk{Log: log, delay: delay},
	}
	f.agent = f.system.Root.Spawn(actor.PropsFromFunc(f.record, workers.Mailbox()))
	f.session = session.Spawn(f.system.Root, session.Props(workers.Mailbox()), session.Config{
		Log: f.disk, Volatile: volatile, Gone: f.gone,
		Failed: func(err error) { f.system.Root.Send(f.agent, session.Failed{Err: err}) },
	})
	t.Cleanup(func() {
		f.system.Root.Stop(f.session)
		<-f.gone
		f.system.Root.Stop(f.agent)
		synctest.Wait()
		f.system.Shutdown()
		workers.Close()
	})
	return f
}

func (f *fixture) record(c actor.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch m := c.Message().(type) {
	case session.Flushed:
		f.answers = append(f.answers, fmt.Sprintf("flushed %d %v", m.Pos.Step, m.Err != nil))
	case session.Derived:
		f.answers = append(f.answers, fmt.Sprintf("derived %d %d %v", m.Pos.Step, len(m.Messages), m.Err != nil))
	case session.Failed:
		f.answers = append(f.answers, "failed")
	}
}

// got returns and forgets the answers so far.
func (f *fixture) got() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := fmt.Sprint(f.answers)
	f.answers = nil
	return all
}

func (f *fixture) want(answers string) {
	f.t.Helper()
	synctest.Wait()
	if got := f.got(); got != answers {
		f.t.Errorf("answers %s, want %s", got, answers)
	}
}

func (f *fixture) send(message any) { f.system.Root.Send(f.session, message) }

func (f *fixture) append(n int) {
	var events []dsh.Event
	for range n {
		events = append(events, dsh.Event{
			Seq: f.next, Surface: dsh.Append, Data: dsh.UserMessage{Message: &dsh.Message{ID: dsh.MessageID(fmt.Sprint(f.next))}},
		})
		f.next++
	}
	f.send(session.Append{Events: events})
}

func (f *fixture) flush(step int) {
	f.send(session.Flush{Pos: dsh.Pos{Step: step}, Through: f.next - 1, ReplyTo: f.agent})
}

func (f *fixture) derive(step int) {
	f.send(session.Derive{Pos: dsh.Pos{Step: step}, Through: f.next - 1, ReplyTo: f.agent})
}

func TestBarriersWaitForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, false)
		f.append(2)
		f.flush(1)
		f.append(1)
		f.derive(2)
		f.append(1)
		f.want("[]") // nothing is durable yet
		time.Sleep(time.Second)
		f.want("[flushed 1 false derived 2 3 false]") // the fourth event is not in the third's history
		f.flush(3)
		time.Sleep(time.Second)
		f.want("[flushed 3 false]")
	})
}

// What nobody asks for is written all the same, soon and in few batches.
func TestWriteBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, false)
		for range 50 {
			f.append(1)
		}
		time.Sleep(2 * session.WriteDelay)
		f.disk.mu.Lock()
		defer f.disk.mu.Unlock()
		if len(f.disk.appends) != 1 || f.disk.appends[0] != 50 || f.disk.syncs != 0 {
			t.Errorf("appends %v, %d syncs", f.disk.appends, f.disk.syncs)
		}
	})
}

// stored returns how many events the store has.
func (f *fixture) stored() int {
	f.t.Helper()
	events, err := f.disk.Read(f.t.Context(), 0, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	return len(events)
}

// What comes while the store is busy is not left behind when nothing follows,
// whatever made the store busy.
func TestWriteBehindAWrite(t *testing.T) {
	for _, barrier := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, false)
			f.append(1)
			if barrier {
				f.flush(1)
			} else {
				time.Sleep(session.WriteDelay) // the write begins
			}
			synctest.Wait()
			f.append(1)
			time.Sleep(3 * session.WriteDelay)
			synctest.Wait()
			if n := f.stored(); n != 2 {
				t.Errorf("behind a barrier: %v; %d events stored", barrier, n)
			}
		})
	}
}

// A store that fails while nobody waits for it is tried again, less and less
// often, until it is well.
func TestWriteBehindIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, false)
		f.disk.set(errors.New("no space left"))
		f.append(3)
		time.Sleep(time.Hour)
		f.disk.mu.Lock()
		f.disk.err = nil
		tries := f.disk.calls
		f.disk.mu.Unlock()
		if n := f.stored(); n != 0 || tries < 100 || tries > 1_000 {
			t.Errorf("%d events stored, %d tries in an hour", n, tries)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := f.stored(); n != 3 {
			t.Errorf("%d events stored", n)
		}
		f.want("[]")
	})
}

func TestManyEventsAreWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, false)
		f.append(session.WriteBatch)
		time.Sleep(15 * time.Millisecond) // less than the delay
		f.disk.mu.Lock()
		defer f.disk.mu.Unlock()
		if len(f.disk.appends) != 1 {
			t.Errorf("appends %v", f.disk.appends)
		}
	})
}

// A few large events are written at once, too. A store that fails is not asked
// again for each event that follows.
func TestLargeEventsAreWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, false)
		large := func() {
			m := dsh.UserText(strings.Repeat("x", session.WriteBytes/2))
			m.ID = dsh.MessageID(fmt.Sprint("large-", f.next))
			f.send(session.Append{Events: []dsh.Event{{Seq: f.next, Data: dsh.UserMessage{Message: m}, Surface: dsh.Append}}})
			f.next++
		}
		large()
		time.Sleep(15 * time.Millisecond) // less than the delay
		if n := f.disk.count(); n != 0 {
			t.Errorf("%d calls for half of the bytes", n)
		}
		large()
		time.Sleep(15 * time.Millisecond)
		if n := f.disk.count(); n != 1 {
			t.Errorf("%d calls", n)
		}
		f.disk.set(errors.New("no space left"))
		for range 20 {
			large()
			time.Sleep(15 * time.Millisecond)
		}
		if n := f.disk.count(); n > 4 {
			t.Errorf("a store that fails was called %d times in 300 ms", n)
		}
		f.disk.set(nil)
	})
}

// A barrier that fails says so; nothing is lost, and the next one writes it.
func TestAFailedBarrierLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, false)
		f.disk.set(errors.New("no space left"))
		f.append(3)
		f.flush(1)
		f.derive(2)
		time.Sleep(time.Second)
		f.want("[flushed 1 true derived 2 0 true]")
		f.disk.set(nil)
		f.append(1)
		f.derive(3)
		time.Sleep(time.Second)
		f.want("[derived 3 4 false]")
		events, err := f.disk.Read(t.Context(), 0, 0)
		if err != nil || len(events) != 4 {
			t.Errorf("%d events stored, %v", len(events), err)
		}
	})
}

func TestCloseMakesTheLogDurable(t *testing.T) {
	for _, broken := range []bool{false, true} {
		t.Run(fmt.Sprintf("broken=%v", broken), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, false)
				f.append(5)
				if broken {
					f.disk.set(errors.New("gone"))
				}
				reply := make(chan error, 1)
				f.send(session.Close{Reply: reply})
				if err := <-reply; (err != nil) != broken {
					t.Errorf("Close = %v", err)
				}
				<-f.gone
				if !f.disk.closed || !broken && f.disk.syncs != 1 {
					t.Errorf("closed %v, %d syncs", f.disk.closed, f.disk.syncs)
				}
			})
		})
	}
}

func TestReadersGetStoredAndUnstoredEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, false)
		read := func(from dsh.Seq, wait bool) <-chan session.Available {
			reply := make(chan session.Available, 1)
			f.send(session.Read{From: from, Wait: wait, Reply: reply})
			return reply
		}
		waiting := read(0, true)
		if a := <-read(0, false); a.Stored || len(a.Events) != 0 {
			t.Errorf("an empty log has %+v", a)
		}
		f.append(2)
		if a := <-waiting; a.Stored || len(a.Events) != 2 || a.Through != 1 {
			t.Errorf("not stored yet: %+v", a)
		}
		f.flush(1)
		time.Sleep(time.Second)
		if a := <-read(0, true); !a.Stored || a.Through != 1 {
			t.Errorf("stored: %+v", a)
		}
		left, end := make(chan session.Available, 1), read(2, true)
		f.send(session.Read{From: 2, Wait: true, Reply: left})
		f.send(session.Unread{Reply: left})
		synctest.Wait() // a stop overtakes messages
		f.system.Root.Stop(f.session)
		if a := <-end; !a.Closed {
			t.Errorf("after the end: %+v", a)
		}
		synctest.Wait()
		if len(left) != 0 {
			t.Error("a reader that left was answered")
		}
	})
}

// A gap in the numbers is a bug of the writer: the session stops and says so.
func TestAGapFailsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, true)
		f.append(1)
		f.next++
		f.append(1)
		f.want("[failed]")
		<-f.gone
		if !f.disk.closed {
			t.Error("the log was not given up")
		}
	})
}

// A store that panics is a store that fails.
func TestAPanickingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, false)
		synctest.Wait()  // it has loaded
		f.disk.Log = nil // the next call is through a nil interface
		f.append(1)
		f.flush(1)
		time.Sleep(time.Second)
		f.want("[flushed 1 true]")
		f.disk.Log, _ = memory.New().Create(context.Background(), dsh.SessionHeader{ID: "s"})
	})
}

// Sync is the barrier of whoever is no actor: it waits for what came before it.
func TestSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, volatile := range []bool{true, false} {
			f := newFixture(t, volatile)
			reply := make(chan session.Synced, 1)
			f.append(2)
			f.send(session.Sync{Reply: reply})
			f.append(1)
			begun := time.Now()
			if s := <-reply; s.Err != nil || s.Next != 2 {
				t.Errorf("volatile %v: %+v", volatile, s)
			}
			if waited := time.Since(begun); (waited == 0) != volatile {
				t.Errorf("volatile %v: answered after %v", volatile, waited)
			}
			if volatile {
				continue
			}
			f.disk.set(errors.New("no space left"))
			f.append(1)
			f.send(session.Sync{Reply: reply})
			if s := <-reply; s.Err == nil {
				t.Error("durable on a disk that fails")
			}
			f.disk.set(nil)
			f.send(session.Sync{Reply: reply})
			if s := <-reply; s.Err != nil || s.Next != 4 {
				t.Errorf("on a disk that is well again: %+v", s)
			}
		}
	})
}
