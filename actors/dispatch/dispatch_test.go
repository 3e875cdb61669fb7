package dispatch

import (
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// probe is an actor that records what it handles.
type probe struct {
	handle func(c actor.Context)
}

func (p *probe) Receive(c actor.Context) { p.handle(c) }

func spawn(t *testing.T, mailbox actor.PropsOption, handle func(c actor.Context)) (*actor.ActorSystem, *actor.PID) {
	t.Helper()
	system := NewSystem(slog.New(slog.DiscardHandler))
	t.Cleanup(system.Shutdown)
	return system, system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &probe{handle} }, mailbox))
}

// both runs a test with each kind of mailbox.
func both(t *testing.T, test func(t *testing.T, mailbox actor.PropsOption)) {
	p := New()
	defer p.Close()
	t.Run("workers", func(t *testing.T) { test(t, p.Mailbox()) })
	t.Run("inline", func(t *testing.T) { test(t, p.Inline()) })
}

// Messages of one sender arrive in order, one at a time, and none is lost,
// however many senders there are.
func TestMailboxKeepsOrder(t *testing.T) {
	both(t, func(t *testing.T, mailbox actor.PropsOption) {
		const senders, each = 8, 2_000
		type message struct{ sender, n int }
		got := make([][]int, senders)
		var all sync.WaitGroup
		all.Add(senders * each)
		system, pid := spawn(t, mailbox, func(c actor.Context) {
			if m, ok := c.Message().(message); ok {
				got[m.sender] = append(got[m.sender], m.n) // one handler at a time: no lock
				all.Done()
			}
		})
		for s := range senders {
			go func() {
				for n := range each {
					system.Root.Send(pid, message{s, n})
				}
			}()
		}
		all.Wait()
		for s := range got {
			if len(got[s]) != each || !slices.IsSorted(got[s]) {
				t.Errorf("sender %d: %d messages, sorted %v", s, len(got[s]), slices.IsSorted(got[s]))
			}
		}
	})
}

// An actor that sends to itself goes on with it when it is done.
func TestMessagesToOneself(t *testing.T) {
	both(t, func(t *testing.T, mailbox actor.PropsOption) {
		depth, deepest, done := 0, 0, make(chan struct{})
		system, pid := spawn(t, mailbox, func(c actor.Context) {
			n, ok := c.Message().(int)
			if !ok {
				return
			}
			depth++
			deepest = max(deepest, depth)
			if n < 1_000 {
				c.Send(c.Self(), n+1)
			} else {
				close(done)
			}
			depth--
		})
		system.Root.Send(pid, 0)
		<-done
		if deepest != 1 {
			t.Errorf("handlers nest %d deep", deepest)
		}
	})
}

func TestStopOvertakesMessages(t *testing.T) {
	both(t, stopOvertakes)
}

func stopOvertakes(t *testing.T, mailbox actor.PropsOption) {
	var handled atomic.Int64
	begun, goOn, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
	system, pid := spawn(t, mailbox, func(c actor.Context) {
		switch c.Message().(type) {
		case string:
			if handled.Add(1) == 1 {
				close(begun)
				<-goOn
			}
		case *actor.Stopped:
			close(stopped)
		}
	})
	go system.Root.Send(pid, "work")
	<-begun
	for range 9 {
		system.Root.Send(pid, "work")
	}
	system.Root.Stop(pid)
	close(goOn)
	<-stopped
	if n := handled.Load(); n != 1 {
		t.Errorf("%d messages were handled, want the one before the stop", n)
	}
}

// A mailbox that is empty holds on to nothing.
func TestEmptyMailboxKeepsNoMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		defer p.Close()
		p.Handled = new(atomic.Int64)
		m := newMailbox(p, false)
		m.RegisterHandlers(nobody{}, nil)
		for range 1_000 {
			m.PostUserMessage("x")
		}
		m.PostSystemMessage("y")
		synctest.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.user != nil || m.system != nil || m.running || m.room != [2]any{} {
			t.Errorf("left behind: %+v", m)
		}
		if n := p.Handled.Load(); n != 1_001 {
			t.Errorf("%d messages were handled", n)
		}
	})
}

type nobody struct{}

func (nobody) InvokeSystemMessage(any)  {}
func (nobody) InvokeUserMessage(any)    {}
func (nobody) EscalateFailure(any, any) {}

// Handlers that wait although they must not do not stall the others.
func TestStuckWorkersAreReplaced(t *testing.T) {
	p := New()
	defer p.Close()
	stuck := make(chan struct{})
	defer close(stuck)
	for range p.limit {
		p.Run(func() { <-stuck })
	}
	var ran atomic.Int64
	done := make(chan struct{})
	go func() {
		for ran.Load() == 0 { // each new piece of work looks at how long the first has waited
			p.Run(func() { ran.Add(1) })
			runtime.Gosched()
		}
		close(done)
	}()
	<-done
}

func TestWorkersAreFew(t *testing.T) {
	before := runtime.NumGoroutine()
	p := New()
	var all sync.WaitGroup
	for range 10_000 {
		all.Add(1)
		p.Run(all.Done)
	}
	all.Wait()
	if n := runtime.NumGoroutine() - before; n > 2*p.limit {
		t.Errorf("%d goroutines for 10,000 pieces of work, want at most %d", n, 2*p.limit)
	}
	p.Close()
	ran := make(chan struct{})
	p.Run(func() { close(ran) })
	<-ran // what is run after Close still runs
}

// What waits keeps nobody from running, and few goroutines are left of many.
func TestWaitingPool(t *testing.T) {
	before := runtime.NumGoroutine()
	p := NewWaiting()
	goOn := make(chan struct{})
	var all, begun sync.WaitGroup
	for range 1_000 {
		all.Add(1)
		begun.Add(1)
		p.Run(func() {
			begun.Done()
			<-goOn
			all.Done()
		})
	}
	begun.Wait() // all at once
	close(goOn)
	all.Wait()
	for runtime.NumGoroutine()-before > p.limit {
		runtime.Gosched()
	}
	p.Close()
}
