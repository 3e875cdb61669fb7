package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/actortest"
	"github.com/dsh-actor/dsh-actor/internal/actortest/loglaw"
	"github.com/dsh-actor/dsh-actor/internal/loop"
	"github.com/dsh-actor/dsh-actor/policy/audit"
	"github.com/dsh-actor/dsh-actor/replay"
	"github.com/dsh-actor/dsh-actor/tool"
)

// The laws of internal/loop once more, with real actors, goroutines and a
// store: several senders, hooks, tools and a provider that take their time,
// fail, panic, end their goroutines and steer back, some of them deaf to their
// contexts. What each does is drawn from the seed; how it interleaves, from the
// scheduler. DSH_ACTOR_SEED=n tries one, DSH_ACTOR_SEEDS=n sets how many.
func TestAgentLaws(t *testing.T) {
	first, count := uint64(0), uint64(200)
	if testing.Short() {
		count = 20
	}
	if n, err := strconv.ParseUint(os.Getenv("DSH_ACTOR_SEEDS"), 10, 63); err == nil {
		count = n
	}
	if n, err := strconv.ParseUint(os.Getenv("DSH_ACTOR_SEED"), 10, 63); err == nil {
		first, count = n, 1
	}
	for seed := first; seed < first+count && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWild(t, seed)
			w.run()
			if t.Failed() {
				for ev := range dsh.Expand(w.agent.Log()) {
					t.Logf("%s", ev.AppendJSON(nil))
				}
				t.Logf("replay with DSH_ACTOR_SEED=%d go test ./actors/agent -run TestAgentLaws", seed)
			}
		})
	}
}

// wild is an agent among people who cannot be relied upon.
type wild struct {
	t     *testing.T
	seed  uint64
	agent *actortest.Agent

	mu       sync.Mutex
	draws    map[string]*rand.Rand // by who draws
	calm     bool
	broken   []error
	bodies   int // in flight
	most     int
	inFlight map[string]bool // exclusive tools that run
	outcomes []sent
}

type sent struct {
	id      dsh.MessageID
	outcome chan agent.Outcome
}

func newWild(t *testing.T, seed uint64) *wild {
	w := &wild{t: t, seed: seed, draws: map[string]*rand.Rand{}, inFlight: map[string]bool{}}
	o := actortest.Options{
		Model: script.Func(script.Options{}, w.respond), MaxParallelCalls: w.draw("options", 4), PoolLimit: w.draw("options", 3),
		Tools: []tool.Tool{w.tool("par", tool.Parallel), w.tool("exc", tool.Exclusive), w.sometimes()},
	}
	for _, h := range w.hooks() {
		if w.draw("options", 2) == 0 {
			o.Hooks = append(o.Hooks, h)
		}
	}
	if w.draw("options", 2) == 0 {
		o.Store = &actortest.Disk{
			Delay: func() time.Duration { return w.pause("disk") },
			Fail:  func() error { return w.breaks("disk", 20) },
		}
	}
	if w.draw("options", 2) == 0 {
		o.Observer = (*meddler)(w)
	}
	if w.draw("options", 2) == 0 {
		o.Hooks = append(o.Hooks, audit.Witness{})
	}
	w.agent = actortest.NewAgent(t, o)
	return w
}

// draw returns a number below n. Each who has draws of its own, so that the
// order in which they are asked changes little.
func (w *wild) draw(who string, n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.draws[who]
	if r == nil {
		h := uint64(14695981039346656037)
		for _, c := range []byte(who) {
			h = (h ^ uint64(c)) * 1099511628211
		}
		r = rand.New(rand.NewPCG(w.seed, h))
		w.draws[who] = r
	}
	return r.IntN(n)
}

func (w *wild) isCalm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calm
}

// chance is true once in n times, and never once the storm is over.
func (w *wild) chance(who string, n int) bool { return w.draw(who, n) == 0 && !w.isCalm() }

func (w *wild) pause(who string) time.Duration {
	return time.Duration(w.draw(who, 4)*w.draw(who, 30)) * time.Millisecond
}

func (w *wild) breaks(who string, n int) error {
	if w.chance(who, n) {
		return errBroke
	}
	return nil
}

func (w *wild) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Errorf(format, args...))
}

// act is what any user code may do: wait, deaf to ctx or not, talk to the
// agent, fail, panic, end its goroutine.
func (w *wild) act(ctx context.Context, who string) error {
	w.wait(ctx, who, w.pause(who))
	if a, ok := hook.AgentFrom(ctx); ok && w.chance(who, 12) {
		w.talk(ctx, who, a)
	}
	switch {
	case w.chance(who, 50):
		panic(errBroke)
	case w.chance(who, 80):
		runtime.Goexit()
	case ctx.Err() != nil && w.draw(who, 2) == 0:
		return context.Cause(ctx)
	}
	return w.breaks(who, 30)
}

// wait lets time pass, until ctx ends or deaf to it.
func (w *wild) wait(ctx context.Context, who string, d time.Duration) {
	if w.chance(who, 4) {
		time.Sleep(d)
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (w *wild) talk(ctx context.Context, who string, a hook.Agent) {
	var err error
	switch w.draw(who, 11) {
	case 0, 6:
		err = a.Steer(ctx, dsh.PluginText(who, "steered"))
	case 1, 2:
		err = a.Inject(ctx, dsh.PluginText(who, "injected"))
	case 3:
		err = a.Followup(ctx, dsh.PluginText(who, "queued"))
	case 4:
		err = a.Cancel(ctx, dsh.Cause{Kind: dsh.CauseHook, Reason: who}, w.draw(who, 2) == 0)
	default:
		_, err = a.Append(ctx, dsh.Opaque{Name: "todo/write", Raw: json.RawMessage("{}")}, dsh.SurfaceOp{}, nil)
	}
	if err != nil {
		w.complain("%s talks to its agent: %w", who, err)
	}
}

func (w *wild) hooks() []any {
	return []any{
		actortest.Prompt(func(ctx context.Context, a hook.Assembly, next hook.PromptFunc) (hook.Assembly, error) {
			a.Context = append(a.Context, hook.Section{Name: "n", Text: strconv.Itoa(w.draw("prompt", 2))})
			if err := w.act(ctx, "prompt"); err != nil {
				return a, err
			}
			return next(ctx, a)
		}),
		actortest.PreStep(func(ctx context.Context, s hook.Step, next hook.PreStepFunc) (hook.Decision, error) {
			if err := w.act(ctx, "pre-step"); err != nil {
				return hook.Decision{}, err
			}
			if w.chance("pre-step", 12) {
				return hook.Decision{Reject: true}, nil
			}
			if w.chance("pre-step", 12) {
				return hook.Decision{}, nil
			}
			return next(ctx, s)
		}),
		actortest.Request(func(ctx context.Context, p hook.Proposal, next hook.RequestFunc) (dsh.CallConfig, error) {
			if err := w.act(ctx, "request"); err != nil {
				return dsh.CallConfig{}, err
			}
			if w.chance("request", 8) {
				p.Config.Model = "other"
			}
			return next(ctx, p)
		}),
		actortest.RequestError(func(ctx context.Context, f hook.FailedRequest, _ hook.RequestErrorFunc) (bool, error) {
			err := w.act(ctx, "request-error")
			return w.chance("request-error", 2), err
		}),
		actortest.TurnStopping(func(ctx context.Context, _ hook.EndingTurn) error { return w.act(ctx, "stopping") }),
		actortest.PreTool(func(ctx context.Context, c hook.Call, next hook.PreToolFunc) (hook.Verdict, error) {
			if err := w.act(ctx, "pre-execute"); err != nil {
				return hook.Verdict{}, err
			}
			if w.chance("pre-execute", 8) {
				return hook.Verdict{Kind: hook.Ask}, nil
			}
			return next(ctx, c)
		}),
		actortest.Guard(func(ctx context.Context, _ hook.Call) (bool, string, error) {
			return w.chance("guard", 8), "no", w.act(ctx, "guard")
		}),
		actortest.PostTool(func(ctx context.Context, c hook.Call, o hook.Outcome, next hook.PostToolFunc) (hook.Review, error) {
			if err := w.act(ctx, "post-execute"); err != nil {
				return hook.Review{}, err
			}
			if w.chance("post-execute", 8) {
				return hook.Review{Block: true, Feedback: "no", Context: []*dsh.Message{dsh.PluginText("post", "why")}}, nil
			}
			return next(ctx, c, o)
		}),
		actortest.ToolResult(func(ctx context.Context, _ hook.Call, _ hook.Outcome) { _ = w.act(ctx, "tool-result") }),
		actortest.Notified(func(hook.Agent, hook.Notice) {
			if w.chance("notified", 20) {
				panic(errBroke)
			}
		}),
	}
}

// meddler acts synchronously, from the actor's own goroutine.
type meddler wild

func (m *meddler) Logged(_ dsh.Event, do func(loop.Input))    { m.meddle(do) }
func (m *meddler) Noticed(_ hook.Notice, do func(loop.Input)) { m.meddle(do) }

func (m *meddler) meddle(do func(loop.Input)) {
	w := (*wild)(m)
	if !w.chance("meddler", 80) {
		return
	}
	switch w.draw("meddler", 4) {
	case 0:
		do(cancelUser(w.draw("meddler", 2) == 0))
	case 1:
		do(agent.Steer(dsh.UserText("meddled")))
	case 2:
		do(agent.Inject(dsh.UserText("meddled")))
	case 3:
		do(loop.Clear{})
	}
}

// send is one of several people who talk to the agent.
func (w *wild) send(who string) {
	for range 12 {
		time.Sleep(8 * w.pause(who))
		switch w.draw(who, 14) {
		case 0, 1, 2, 3, 12, 13:
			d := followup("hello")
			s := sent{d.Message.ID, make(chan agent.Outcome, 2)}
			if done, _ := w.agent.Try(s.outcome, d); done.Err() == nil {
				w.mu.Lock()
				w.outcomes = append(w.outcomes, s)
				w.mu.Unlock()
			}
		case 4, 5:
			w.agent.Steer("look here")
		case 6:
			w.agent.Inject("by the way")
		case 7:
			w.agent.Do(cancelUser(true), followup("do this instead"))
		case 8:
			if w.draw(who, 2) == 0 {
				w.agent.Do(cancelUser(w.draw(who, 2) == 0))
			}
		case 9:
			err := w.agent.Maintain(func(ctx context.Context) error { return w.act(ctx, "maintenance") })
			if err != nil && w.isCalm() && !errors.Is(err, loop.ErrBusy) {
				w.complain("maintenance: %w", err)
			}
		case 10:
			w.agent.WaitIdle()
		case 11:
			d := agent.Inject(dsh.UserText("edited"))
			w.agent.Do(d, loop.Replace{ID: d.Message.ID, Message: agent.Named(dsh.UserText("better"))})
			w.agent.Do(loop.Remove{ID: d.Message.ID})
		}
	}
}

func (w *wild) run() {
	var people sync.WaitGroup
	for i := range 3 {
		people.Go(func() { w.send(fmt.Sprint("person ", i)) })
	}
	// Who waits for idle waits for models that hang: somebody gets impatient.
	impatient, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		for {
			select {
			case <-time.After(5 * time.Second):
				w.agent.Do(cancelUser(true))
			case <-impatient.Done():
				return
			}
		}
	}()
	people.Wait()
	w.mu.Lock()
	w.calm = true
	w.mu.Unlock()
	if w.seed%3 > 0 { // else it is disposed of in the middle of things
		w.agent.WaitIdle()
		stop()
		synctest.Wait()
		w.check()
	}
	stop()
	synctest.Wait()
	if err := w.agent.Dispose(); err != nil {
		w.t.Errorf("seed %d: dispose: %v", w.seed, err)
	}
	log := w.agent.Log()
	if err := loglaw.Check(log); err != nil {
		w.t.Errorf("seed %d: after the disposal: %v", w.seed, err)
	}
	for _, found := range replay.Run(dsh.SessionHeader{ID: "s"}, log).Findings {
		w.t.Errorf("seed %d: the log does not replay: %v", w.seed, found)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bodies != 0 {
		w.t.Errorf("seed %d: the disposal did not wait for %d bodies", w.seed, w.bodies)
	}
}

// check looks at an agent that is quiet.
func (w *wild) check() {
	t := w.t
	t.Helper()
	if err := w.agent.Failure(); err != nil {
		t.Fatalf("seed %d: the agent failed: %v", w.seed, err)
	}
	state, ok := w.agent.State()
	if !ok || state.Status != hook.Idle {
		t.Fatalf("seed %d: status %s", w.seed, state.Status)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, err := range w.broken {
		t.Errorf("seed %d: %v", w.seed, err)
	}
	if w.bodies != 0 {
		t.Errorf("seed %d: %d bodies run in idle", w.seed, w.bodies)
	}
	log := w.agent.Log()
	var laws loglaw.Laws
	if err := errors.Join(laws.AddAll(log), laws.Closed()); err != nil {
		t.Fatalf("seed %d: %v", w.seed, err)
	}
	if !slices.Equal(state.Messages, laws.History().Messages()) || !slices.Equal(state.Surface, laws.History().Surface()) {
		t.Errorf("seed %d: the agent's history is not what its log makes", w.seed)
	}
	if inbox := laws.Inbox(); !slices.Equal(state.Inbox.NextTurn, inbox.NextTurn) || !slices.Equal(state.Inbox.NextStep, inbox.NextStep) {
		t.Errorf("seed %d: the agent's inbox is not what its log makes", w.seed)
	}
	m, err := loop.Restore(loop.Config{Session: "s"}, log, 0)
	if err != nil || m.LastTurn() != state.LastTurn || m.Next() != state.Next {
		t.Errorf("seed %d: restored to turn %d of %d: %v", w.seed, m.LastTurn(), state.LastTurn, err)
	}
	for _, s := range w.outcomes {
		_, i := state.Inbox.Find(s.id)
		if want := 1; i >= 0 && len(s.outcome) != 0 || i < 0 && len(s.outcome) != want {
			t.Errorf("seed %d: %d outcomes of message %s (pending: %v)", w.seed, len(s.outcome), s.id, i >= 0)
		}
	}
}
