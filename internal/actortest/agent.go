package actortest

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/actors/dispatch"
	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/actors/toolpool"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
	"github.com/dsh-actor/dsh-actor/tool"
)

// Options say what an agent works with. The zero value has a model without
// answers, no tools, no hooks and a store in memory.
type Options struct {
	// Model serves the route "mock/m".
	Model llm.Provider
	Tools []tool.Tool
	Hooks []any
	Store session.Store
	// MaxParallelCalls and PoolLimit bound the tool bodies of the agent and
	// of the pool; 0 means the defaults.
	MaxParallelCalls int
	PoolLimit        int
	System           string
	Observer         agent.Observer
}

// Agent is an agent under test.
type Agent struct {
	*agent.Handle
	t       testing.TB
	system  *actor.ActorSystem
	session *actor.PID
	closed  <-chan struct{} // the session stopped
	log     session.Log
}

// NewAgent starts an agent on a new session "s". The end of the test disposes
// it, which waits for everything that it started.
func NewAgent(t testing.TB, o Options) *Agent {
	t.Helper()
	if o.Model == nil {
		o.Model = script.New(script.Options{})
	}
	if o.Store == nil {
		o.Store = memory.New()
	}
	hooks, err := hook.NewSet(o.Hooks...)
	if err != nil {
		t.Fatal(err)
	}
	tools := tool.NewRegistry(nil)
	if err := tools.Register(o.Tools...); err != nil {
		t.Fatal(err)
	}
	log, err := o.Store.Create(context.Background(), dsh.SessionHeader{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	system, mailbox := System(t)
	gone := make(chan struct{})
	a := &Agent{t: t, system: system, closed: gone, log: log}
	a.session = session.Spawn(system.Root, session.Props(mailbox), session.Config{
		Log: log, Volatile: o.Store.Volatile(), Gone: gone,
		Failed: func(err error) { a.Send(session.Failed{Err: err}) },
	})
	a.Handle = agent.Spawn(system.Root, agent.Props(mailbox), &agent.Config{
		Initiator: dsh.Initiator{Agent: "a", Session: "s", Root: "a"},
		Machine: loop.New(loop.Config{
			Session: "s", Call: &dsh.CallConfig{Provider: "mock", Model: "m"},
			MaxParallelCalls: o.MaxParallelCalls, Volatile: o.Store.Volatile(),
		}),
		Source: hook.Startup, Session: a.session,
		Shared: &agent.Shared{
			Pool:      system.Root.Spawn(toolpool.Props(toolpool.Config{Limit: o.PoolLimit}, mailbox)),
			Streams:   llm.Props(mailbox),
			Providers: func(name string) (llm.Provider, bool) { return o.Model, name == "mock" },
			Logger:    zap.NewNop(),
		},
		Tools: tools, Hooks: hooks, Prompt: &agent.Prompt{System: o.System}, Observer: o.Observer,
	}, gone)
	t.Cleanup(func() { _ = a.Dispose() })
	return a
}

// System returns an actor system that says nothing and the mailbox that its
// actors run on. Both end with the test.
func System(t testing.TB) (*actor.ActorSystem, actor.PropsOption) {
	t.Helper()
	system := dispatch.NewSystem(slog.New(slog.DiscardHandler))
	workers := dispatch.New()
	t.Cleanup(func() {
		system.Shutdown()
		workers.Close()
	})
	return system, workers.Mailbox()
}

// Do applies commands in one go and fails the test if the agent is gone. The
// refusals are in the answer.
func (a *Agent) Do(commands ...loop.Input) agent.Done {
	a.t.Helper()
	done, ok := a.Try(nil, commands...)
	if !ok {
		a.t.Fatalf("the agent is gone: %v", a.Err())
	}
	return done
}

// Try is Do for an agent that may be gone. Outcome may be nil; see [agent.Do].
func (a *Agent) Try(outcome chan<- agent.Outcome, commands ...loop.Input) (agent.Done, bool) {
	reply := make(chan agent.Done, 1)
	a.Send(agent.Do{Commands: commands, Reply: reply, Outcome: outcome})
	return receive(a, reply)
}

// receive waits for a reply or for the agent to be gone.
func receive[T any](a *Agent, reply <-chan T) (T, bool) {
	select {
	case v := <-reply:
		return v, true
	case <-a.Gone():
		select {
		case v := <-reply:
			return v, true
		default:
			var zero T
			return zero, false
		}
	}
}

// Followup, Steer and Inject send a user's text.
func (a *Agent) Followup(text string) { a.t.Helper(); a.Do(agent.Followup(dsh.UserText(text))) }

// Steer sends a text for the nearest step.
func (a *Agent) Steer(text string) { a.t.Helper(); a.Do(agent.Steer(dsh.UserText(text))) }

// Inject sends a text for the nearest step without waking.
func (a *Agent) Inject(text string) { a.t.Helper(); a.Do(agent.Inject(dsh.UserText(text))) }

// Cancel aborts what runs as a user does, and drops what is pending.
func (a *Agent) Cancel() {
	a.t.Helper()
	a.Do(loop.Cancel{Cause: dsh.Cause{Kind: dsh.CauseUser}})
}

// Maintain runs a task and waits for it.
func (a *Agent) Maintain(task func(ctx context.Context) error) error {
	reply := make(chan error, 1)
	a.Send(agent.Maintain{Task: task, Reply: reply})
	err, ok := receive(a, reply)
	if !ok {
		return a.Err()
	}
	return err
}

// WaitIdle returns when neither a turn nor maintenance is open, false when the
// agent is gone.
func (a *Agent) WaitIdle() bool {
	reply := make(chan struct{}, 1)
	a.Send(agent.WaitIdle{Reply: reply})
	_, ok := receive(a, reply)
	return ok
}

// State returns a snapshot.
func (a *Agent) State() (agent.State, bool) {
	reply := make(chan agent.State, 1)
	a.Send(agent.Inspect{Reply: reply})
	return receive(a, reply)
}

// Dispose disposes the agent, if it is there, and waits for its session to
// have stopped.
func (a *Agent) Dispose() error {
	reply := make(chan error, 1)
	a.Send(agent.Dispose{KeepInbox: true, Reply: reply})
	select {
	case <-a.Gone():
		if a.Failure() != nil {
			closed := make(chan error, 1)
			a.system.Root.Send(a.session, session.Close{Reply: closed})
		}
		<-a.closed
	case <-a.closed:
		<-a.Gone()
	}
	select {
	case err := <-reply:
		return err
	default:
		return nil
	}
}

// Log returns what the session holds, packed.
func (a *Agent) Log() []dsh.Event {
	a.t.Helper()
	var all []dsh.Event
	for next := dsh.Seq(0); ; {
		more := a.read(next)
		if len(more) == 0 {
			return all
		}
		all = append(all, more...)
		next = more[len(more)-1].Last() + 1
	}
}

func (a *Agent) read(from dsh.Seq) []dsh.Event {
	a.t.Helper()
	reply := make(chan session.Available, 1)
	a.system.Root.Send(a.session, session.Read{From: from, Reply: reply})
	stored := true
	select {
	case <-a.closed:
	case available := <-reply:
		if !available.Stored {
			return available.Events
		}
		stored = available.Stored
	}
	events, err := a.log.Read(context.Background(), from, 0)
	if err != nil && stored {
		a.t.Fatal(err)
	}
	return events
}

// Lines tells the log in short: the type of each event, a turn's end with its
// reason, a row of chunks as one line, and no inbox.
func (a *Agent) Lines() []string {
	a.t.Helper()
	var lines []string
	for _, ev := range a.Log() {
		text := ev.Type()
		switch d := ev.Data.(type) {
		case dsh.InboxSpliced:
			continue
		case dsh.TurnEnd:
			text += " " + string(cmp.Or(d.Reason.Kind, "?"))
		case dsh.ChunkRun:
			if len(lines) > 0 && lines[len(lines)-1] == text {
				continue
			}
		}
		lines = append(lines, text)
	}
	return lines
}

// WantLog compares the log's [Agent.Lines].
func (a *Agent) WantLog(want ...string) {
	a.t.Helper()
	if got := a.Lines(); !slices.Equal(got, want) {
		a.t.Errorf("log\n got %q\nwant %q", got, want)
	}
}
