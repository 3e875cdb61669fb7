package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/actortest"
	"github.com/dsh-actor/dsh-actor/internal/actortest/loglaw"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
	"github.com/dsh-actor/dsh-actor/toolset/subagent"
)

// moody is a disk that fails at random, in bouts: to open, to read and to append.
type moody struct {
	actortest.Disk
	d *dice

	mu    sync.Mutex
	until time.Time // of the bout
	lost  bool      // the next append finds that somebody else has written
	loses int
}

func newMoody(d *dice) *moody {
	m := &moody{d: d}
	m.Delay = func() time.Duration { return time.Duration(d.roll(3)) * time.Millisecond }
	m.Fail = m.refuse
	return m
}

// ill lets the disk fail for a while.
func (m *moody) ill(long time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.until = time.Now().Add(long)
}

func (m *moody) fail() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Now().Before(m.until) {
		return syscall.EIO
	}
	return nil
}

// lose makes an owner lose its log, which breaks the life that it has.
func (m *moody) lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = true
}

func (m *moody) refuse() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost {
		m.lost = false
		m.loses++
		return session.ErrConflict
	}
	if time.Now().Before(m.until) {
		return syscall.EIO
	}
	return nil
}

func (m *moody) Open(ctx context.Context, id dsh.SessionID) (session.Log, error) {
	if err := m.fail(); err != nil {
		return nil, err
	}
	log, err := m.Disk.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	return moodyLog{log, m}, nil
}

type moodyLog struct {
	session.Log
	m *moody
}

func (l moodyLog) Read(ctx context.Context, from dsh.Seq, limit int) ([]dsh.Event, error) {
	if err := l.m.fail(); err != nil {
		return nil, err
	}
	return l.Log.Read(ctx, from, limit)
}

// sleeper is an agent that comes and goes while everything is done to it.
type sleeper struct {
	t    *testing.T
	d    *dice
	rt   *runtime.Runtime
	disk *moody
	a    *runtime.Agent
	kept hook.Agent // by a hook
	born int        // session starts

	mu       sync.Mutex
	accepted map[dsh.MessageID]bool
	passes   int
	foreign  int
}

// The laws of passivation hold whatever happens in whatever order: an agent is
// told things, followed, forked, resumed by somebody else and given back, and its
// disk fails while it comes and goes.
//
//   - a message that was acknowledged is in the log once, one that was not at
//     most once;
//   - the log obeys its laws, and a return leaves no session/end-seed;
//   - an agent asks its own model, whatever others did meanwhile;
//   - every call is answered, and no goroutine is left.
func TestPassivationLaws(t *testing.T) {
	passes, foreign := 0, 0
	seeds(t, 60, func(t *testing.T, seed uint64) {
		s := newSleeper(t, seed)
		s.live()
		passes += s.passes
		foreign += s.foreign
	})
	t.Logf("%d passivations, %d visits of others", passes, foreign)
	if passes < 20 || foreign == 0 {
		t.Error("hardly anything happened")
	}
}

func newSleeper(t *testing.T, seed uint64) *sleeper {
	d := &dice{rng: rand.New(rand.NewPCG(seed, 11))}
	s := &sleeper{
		t: t, d: d, disk: newMoody(d), accepted: map[dsh.MessageID]bool{},
	}
	set, err := subagent.New(subagent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.rt = s.start("m", set.Tools(), append(set.Hooks(), s), time.Duration(1+d.roll(400))*time.Millisecond)
	spec := runtime.Spec{ID: "a", Session: "s", Provider: "mock", Model: "m"}
	if s.a, err = s.rt.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	return s
}

// SessionStart keeps the agent.
func (s *sleeper) SessionStart(_ context.Context, a hook.Agent, _ hook.Source) error {
	if a.ID() == "a" {
		s.kept = a
		s.born++
	}
	return nil
}

// start starts a runtime whose agents have a model.
func (s *sleeper) start(model string, tools []tool.Tool, hooks []any, after time.Duration) *runtime.Runtime {
	rt, err := runtime.New(runtime.Options{
		Store: s.disk, Tools: tools, Hooks: hooks, PassivateAfter: after,
		Providers: map[string]llm.Provider{"mock": brain(func(_ dsh.Initiator, req *dsh.Request) script.Response {
			if err := dsh.CheckRequest(req.Messages); err != nil {
				s.t.Error(err)
			}
			if m := req.Header.Config.Model; m != model {
				s.t.Errorf("request %v goes to %s instead of %s", req.Pos, m, model)
			}
			wait := script.Response{script.Delay{For: time.Duration(s.d.roll(100)) * time.Millisecond}}
			if len(req.Messages) < 20 && s.d.roll(4) == 0 {
				return append(wait, script.Calls(call(dsh.CallID(fmt.Sprint("c", s.d.roll(1e9))), "subagent", fmt.Sprintf(
					`{"description":"part","prompt":"go","run_in_background":%t}`, s.d.roll(2) == 0)))...)
			}
			return append(wait, script.Text("yes", 1)...)
		})},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return rt
}

// live lets eight people do things to the agent, and looks at what is left.
func (s *sleeper) live() {
	var people sync.WaitGroup
	for n := range 8 {
		people.Go(func() {
			for i := range 12 {
				time.Sleep(time.Duration(s.d.roll(800)) * time.Millisecond)
				s.act(fmt.Sprintf("%d/%d", n, i))
			}
		})
	}
	people.Wait()
	s.disk.mu.Lock()
	s.disk.lost = false
	s.disk.mu.Unlock()
	time.Sleep(time.Minute) // the disk is well, and children settle
	ctx := context.Background()
	for range 2 { // the first may find the last life broken
		if err := s.a.WaitIdle(ctx); err != nil && !session.Lost(err) {
			s.t.Error(err)
		}
	}
	if err := s.a.Do(ctx, runtime.Clear()); err != nil {
		s.t.Error(err)
	}
	if o, err := s.a.Run(ctx, "the last"); err != nil || !o.OK() {
		s.t.Errorf("the last prompt: %+v, %v", o, err)
	}
	if err := s.a.WaitIdle(ctx); err != nil {
		s.t.Error(err)
	}
	if err := s.rt.Close(ctx); err != nil {
		s.t.Error(err)
	}
	synctest.Wait()
	s.check()
}

// act does one thing. Only what the disk did, or that somebody else had the
// session, is an excuse for an error.
func (s *sleeper) act(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour) // behind a turn that failed it waits for a wake
	defer cancel()
	m := dsh.UserText("hello")
	m.ID = dsh.MessageID(name)
	sent, waits := true, true // for the disk, as hooks do not
	var err error
	switch s.d.roll(16) {
	case 0, 1:
		err = s.a.Followup(ctx, m)
	case 2:
		err = s.a.Steer(ctx, m)
	case 3:
		err = s.a.Inject(ctx, m)
	case 4:
		err = s.kept.Steer(ctx, m)
		waits = false
	case 5, 6:
		_, err = s.a.RunMessage(ctx, m)
	default:
		sent = false
		err = s.do()
	}
	excused := err == nil || session.Lost(err) || strings.Contains(err.Error(), "was cancelled while")
	for _, e := range []error{syscall.EIO, runtime.ErrBusy, runtime.ErrInUse, context.DeadlineExceeded} {
		excused = excused || errors.Is(err, e)
	}
	if !excused {
		s.t.Errorf("%s: %v", name, err)
	}
	if sent {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.accepted[m.ID] = err == nil && waits
	}
}

// do does something that is no message.
func (s *sleeper) do() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(s.d.roll(100))*time.Millisecond)
	defer cancel()
	switch s.d.roll(12) {
	case 0:
		return s.a.Cancel(ctx, dsh.Cause{Kind: dsh.CauseUser}, false) // else a prompt may wait for a wake
	case 1:
		return s.a.Maintain(ctx, func(context.Context) error { time.Sleep(30 * time.Millisecond); return nil })
	case 2:
		f, err := s.rt.Fork(ctx, "s", runtime.End, runtime.Spec{Provider: "mock", Model: "m"})
		if err == nil {
			err = f.Dispose(context.Background())
		} else if strings.Contains(err.Error(), "turn") {
			err = nil // inside of one
		}
		return err
	case 3:
		for _, err := range s.a.Follow(ctx, dsh.Seq(s.d.roll(20))) {
			if err != nil {
				return err
			}
		}
		return nil
	case 4:
		for range s.a.Notices(ctx, 1) {
			continue
		}
		return nil
	case 5:
		_, err := s.a.Usage(ctx)
		return err
	case 6:
		c, err := s.a.Spawn(ctx, runtime.ChildSpec{Label: "go", Background: s.d.roll(2) == 0})
		if err == nil {
			_, err = c.Run(context.Background(), "go")
		}
		return err
	case 7:
		s.disk.ill(time.Duration(s.d.roll(600)) * time.Millisecond)
		return nil
	case 8:
		return s.visit()
	case 9:
		s.disk.lose()
		return nil
	}
	was := s.a.Passive()
	err := s.a.Passivate(ctx)
	if err == nil && !was {
		s.mu.Lock()
		s.passes++
		s.mu.Unlock()
	}
	return err
}

// visit is another process that takes the session while the agent is passive,
// does a turn, and gives it back.
func (s *sleeper) visit() error {
	other := s.start("another", nil, nil, -1)
	b, err := other.Resume(context.Background(), "s", runtime.Spec{Provider: "mock", Model: "another"})
	if err == nil {
		s.mu.Lock()
		s.foreign++
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		_, err = b.Run(ctx, "from elsewhere")
	}
	return errors.Join(err, other.Close(context.Background()))
}

// check looks at the log.
func (s *sleeper) check() {
	_, events, err := readStored(s.disk, "s")
	if err != nil {
		s.t.Fatal(err)
	}
	if err := loglaw.Check(append(events, dsh.Closers(events)...)); err != nil {
		s.t.Error(err)
	}
	in, _ := tallyLog(events)
	for id, counts := range s.accepted {
		if n := in[id]; n > 1 || counts && n == 0 {
			s.t.Errorf("%s was acknowledged: %v, and is in the log %d times", id, counts, n)
		}
	}
	var ends int
	for ev := range dsh.Expand(events) {
		if _, ok := ev.Data.(dsh.EndSeed); ok {
			ends++
		}
	}
	if ends > s.foreign+s.disk.loses {
		s.t.Errorf("%d session/end-seed, %d were others, and %d lives broke", ends, s.foreign, s.disk.loses)
	}
	if s.born != 1 {
		s.t.Errorf("%d session starts", s.born)
	}
}

func readStored(store session.Store, id dsh.SessionID) (dsh.SessionHeader, []dsh.Event, error) {
	log, err := store.Open(context.Background(), id)
	if err != nil {
		return dsh.SessionHeader{}, nil, err
	}
	events, err := log.Read(context.Background(), 0, 0)
	return log.Header(), slices.Clone(events), errors.Join(err, log.Close())
}

// leaving ends when it is waited for again.
type leaving struct {
	context.Context
	waits atomic.Int64
}

func (l *leaving) Done() <-chan struct{} {
	done := make(chan struct{})
	if l.waits.Add(1) > 1 {
		close(done)
	}
	return done
}

func (l *leaving) Err() error {
	if l.waits.Load() > 1 {
		return context.Canceled
	}
	return nil
}

// An agent that has agreed to go is gone for good, whatever became of who asked
// it: the next call brings it back.
func TestWhoAsksForPassivationMayLeave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, runtime.Options{PassivateAfter: -1}, script.Text("one", 1))
		a := w.agent(t, runtime.Spec{ID: "a"})
		p, err := a.Start(t.Context(), dsh.UserText("first"))
		if err == nil {
			err = a.WaitIdle(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Passivate(&leaving{Context: t.Context()}); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := p.Withdraw(t.Context()); err != nil {
			t.Errorf("withdrawing a prompt of a passive agent: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if s, err := a.State(ctx); err != nil || s.LastTurn != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}
