package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/actors/dispatch"
	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/admission"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/actors/toolpool"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
	"github.com/dsh-actor/dsh-actor/tool"
)

// Errors of this package, to be compared with errors.Is.
var (
	// ErrClosed: the runtime is closed or closing.
	ErrClosed = errors.New("runtime is closed")
	// ErrExists: an agent with this ID is there already.
	ErrExists = errors.New("agent exists already")
	// ErrDisposed: the agent was disposed.
	ErrDisposed = errors.New("agent is disposed")
	// ErrNotDurable: the agent did as it was told, and its log could not be made
	// durable. It is tried again; a crash before that succeeds undoes it.
	ErrNotDurable = errors.New("not durable yet")
	// ErrBusy: maintenance needs an agent that is idle.
	ErrBusy = loop.ErrBusy
	// ErrDuplicate: a message with this ID is pending already.
	ErrDuplicate = loop.ErrDuplicate
	// ErrNotPending: the message is not pending (any more).
	ErrNotPending = loop.ErrNotPending
	// ErrNotRecordable: only the agent itself records facts of this type.
	ErrNotRecordable = agent.ErrNotRecordable
	// ErrNotFound: the store has no such session.
	ErrNotFound = session.ErrNotFound
	// ErrInUse: somebody else has the session open.
	ErrInUse = session.ErrInUse
	// ErrStale: somebody else has taken the session over while the agent had it.
	// What it did since then is not in the log; the next call opens it again.
	ErrStale = session.ErrStale
)

// Options of a runtime. The zero value works for agents that need no model.
type Options struct {
	// Providers by the name that agents and logs use for them.
	Providers map[string]llm.Provider
	// Limits of a provider's keys, by the provider's name: agents then share
	// each key politely (see package actors/llm/admission). A provider with
	// several keys ([llm.Keys]) has an entry without limits if there is none.
	Limits map[string]llm.Limits
	// Tools that every agent has.
	Tools []tool.Tool
	// Hooks that every agent has: values with interfaces of package hook, or
	// with [delegation.Observer].
	Hooks []any
	// Store keeps the sessions; nil keeps them in memory.
	Store session.Store
	// MaxToolBodies bounds the tool bodies that run at once in the process;
	// 0 means 1,024.
	MaxToolBodies int
	// PassivateAfter is how long an agent is idle before its memory is given
	// back: its log is made durable and closed and its actors stop. It returns
	// with the next call, as if it had never been away. 0 means ten minutes, a
	// negative one never. Children stay, and agents that somebody follows.
	PassivateAfter time.Duration
	// Delegation bounds agents' children.
	Delegation Delegation
	// Logger gets the runtime's own messages; nil discards them. Message
	// contents are logged at debug level only.
	Logger *zap.Logger
}

// A Runtime runs agents. Make one with [New] and end it with [Runtime.Close];
// one per process is enough, whatever the number of agents.
type Runtime struct {
	opts    Options
	system  *actor.ActorSystem
	workers *dispatch.Pool
	writers *dispatch.Pool
	write   func(work func()) // on one of the writers
	pool    *actor.PID
	gates   []*admission.Provider
	served  map[string]llm.Provider // behind their gates
	props   struct{ agent, session *actor.Props }
	shared  agent.Shared
	hooks   *hook.Set
	tools   *tool.Registry
	brief   latch // held by who has a stored log open just to look or to add to it
	watch   []delegation.Observer
	tree    tree
	telling telling
	rest    passivation

	mu       sync.RWMutex
	agents   map[dsh.AgentID]*Agent // nil entries are reserved
	sessions map[dsh.SessionID]*Agent
	reviving map[dsh.SessionID]chan struct{} // children that are being brought back
	closed   bool
}

// New starts a runtime. It reports every problem of opts at once.
func New(opts Options) (*Runtime, error) {
	watch := observers(opts.Hooks)
	opts.Hooks = chained(opts.Hooks)
	hooks, hookErr := hook.NewSet(opts.Hooks...)
	tools := tool.NewRegistry(nil)
	errs := []error{hookErr, tools.Register(opts.Tools...)}
	for name, p := range opts.Providers {
		if p == nil || name == "" {
			errs = append(errs, fmt.Errorf("provider %q: a name and a provider are needed", name))
		}
	}
	for name, l := range opts.Limits {
		if opts.Providers[name] == nil {
			errs = append(errs, fmt.Errorf("limits of %q: there is no such provider", name))
		}
		if err := l.Check(); err != nil {
			errs = append(errs, fmt.Errorf("limits of %q: %w", name, err))
		}
	}
	errs = append(errs, opts.Delegation.check())
	if opts.MaxToolBodies < 0 {
		errs = append(errs, fmt.Errorf("MaxToolBodies is %d: it must not be negative", opts.MaxToolBodies))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	if opts.Store == nil {
		opts.Store = memory.New()
	}
	if opts.Logger == nil {
		opts.Logger = zap.NewNop()
	}
	system := dispatch.NewSystem(slog.New(zapslog.NewHandler(warnings(opts.Logger), zapslog.WithName("actor"))))
	workers := dispatch.New()
	rt := &Runtime{
		opts: opts, system: system, workers: workers, hooks: hooks, tools: tools,
		pool:   system.Root.Spawn(toolpool.Props(toolpool.Config{Limit: opts.MaxToolBodies}, workers.Inline())),
		watch:  watch,
		tree:   tree{roots: map[dsh.AgentID]int{}},
		agents: map[dsh.AgentID]*Agent{}, sessions: map[dsh.SessionID]*Agent{},
		reviving: map[dsh.SessionID]chan struct{}{},
	}
	rt.writers = dispatch.NewWaiting()
	rt.write = rt.writers.Run
	rt.props.agent, rt.props.session = agent.Props(workers.Mailbox()), session.Props(workers.Inline())
	rt.rest.init(rt, opts.PassivateAfter)
	rt.shared = agent.Shared{
		Pool: rt.pool, Streams: llm.Props(workers.Inline()), Providers: rt.provider, Logger: opts.Logger,
	}
	if rt.rest.after >= 0 {
		rt.shared.Rests = rt.rest.arm
	}
	rt.admit()
	return rt, nil
}

// admit puts a gate before each provider that has limits or several keys.
func (rt *Runtime) admit() {
	rt.served = make(map[string]llm.Provider, len(rt.opts.Providers))
	for name, p := range rt.opts.Providers {
		limits, limited := rt.opts.Limits[name]
		if _, several := p.(*llm.Keys); limited || several {
			gate := admission.Start(rt.system.Root, p, limits, rt.workers.Mailbox())
			rt.gates = append(rt.gates, gate)
			p = gate
		}
		rt.served[name] = p
	}
}

// warnings returns where the actor library logs: the logger from warnings on.
func warnings(log *zap.Logger) zapcore.Core {
	core, err := zapcore.NewIncreaseLevelCore(log.Core(), zap.WarnLevel)
	if err != nil {
		return log.Core() // it lets less through already
	}
	return core
}

// Tools returns the registry of the tools that every agent has. Changes take
// effect with each agent's next step.
func (rt *Runtime) Tools() *tool.Registry { return rt.tools }

// Agent returns the agent with this ID, if there is one.
func (rt *Runtime) Agent(id dsh.AgentID) (*Agent, bool) {
	rt.mu.RLock()
	defer rt.mu.RUnlock()
	a := rt.agents[id]
	return a, a != nil
}

// Agents returns all agents, in no order.
func (rt *Runtime) Agents() []*Agent {
	rt.mu.RLock()
	defer rt.mu.RUnlock()
	all := make([]*Agent, 0, len(rt.agents))
	for _, a := range rt.agents {
		if a != nil {
			all = append(all, a)
		}
	}
	return all
}

// Close cancels every turn, waits for everything that was started, makes the
// logs durable and stops the actors. Pending input stays in the logs. When ctx
// ends first, Close returns its error and the rest goes on by itself.
func (rt *Runtime) Close(ctx context.Context) error {
	rt.mu.Lock()
	if rt.closed {
		rt.mu.Unlock()
		return nil
	}
	rt.closed = true
	rt.mu.Unlock()
	rt.rest.close()
	var errs []error
	// Parents take their children with them; what is left then has none.
	for _, tops := range []bool{true, false} {
		var agents []*Agent
		for _, a := range rt.Agents() {
			if a.child == nil || !tops {
				agents = append(agents, a)
			}
		}
		done := make(chan error, len(agents))
		for _, a := range agents {
			go func() { done <- a.dispose(ctx, true) }()
		}
		for range agents {
			errs = append(errs, <-done)
		}
	}
	errs = append(errs, rt.tree.wait(ctx))
	if ctx.Err() == nil {
		rt.system.Root.Stop(rt.pool)
		for _, g := range rt.gates {
			g.Stop()
		}
		rt.system.Shutdown()
		rt.workers.Close()
		rt.writers.Close()
	}
	return errors.Join(errs...)
}

// reserve takes an ID for an agent that is being made.
func (rt *Runtime) reserve(id dsh.AgentID) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.closed {
		return ErrClosed
	}
	if _, taken := rt.agents[id]; taken {
		return fmt.Errorf("%w: %s", ErrExists, id)
	}
	rt.agents[id] = nil
	return nil
}

// settle puts the agent in its reserved place, or gives the place up. It
// fails if the runtime was closed in between.
func (rt *Runtime) settle(id dsh.AgentID, a *Agent) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if a == nil {
		delete(rt.agents, id)
		return nil
	}
	if rt.closed {
		delete(rt.agents, id)
		return ErrClosed
	}
	rt.agents[id] = a
	rt.sessions[a.session] = a
	return nil
}

// found makes a the agent that has its session open: while it was passive,
// another one may have been.
func (rt *Runtime) found(a *Agent) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.sessions[a.session] = a
}

func (rt *Runtime) forget(a *Agent) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.agents[a.id] == a {
		delete(rt.agents, a.id)
	}
	if rt.sessions[a.session] == a {
		delete(rt.sessions, a.session)
	}
}

// openLog opens a stored log for an agent. Whoever has it open for a moment only
// is waited for.
func (rt *Runtime) openLog(ctx context.Context, id dsh.SessionID) (session.Log, error) {
	if err := rt.brief.take(ctx); err != nil {
		return nil, err
	}
	defer rt.brief.let()
	return rt.opts.Store.Open(ctx, id)
}

// revival waits until nobody brings the session's agent back any more, and
// reports whether somebody did. With claim it is the caller who does from then
// on, unless somebody did; it must call over.
func (rt *Runtime) revival(id dsh.SessionID, claim bool) (waited bool, over func()) {
	rt.mu.Lock()
	other := rt.reviving[id]
	if other == nil && claim {
		mine := make(chan struct{})
		rt.reviving[id] = mine
		over = func() {
			rt.mu.Lock()
			delete(rt.reviving, id)
			rt.mu.Unlock()
			close(mine)
		}
	}
	rt.mu.Unlock()
	if other != nil {
		<-other
	}
	return other != nil, over
}

// briefly opens a stored log, hands it to use and closes it.
func (rt *Runtime) briefly(ctx context.Context, id dsh.SessionID, use func(session.Log) error) error {
	if err := rt.brief.take(ctx); err != nil {
		return err
	}
	defer rt.brief.let()
	log, err := rt.opts.Store.Open(ctx, id)
	if err != nil {
		return err
	}
	return errors.Join(use(log), log.Close())
}

// live returns the agent that has a session open, or nil.
func (rt *Runtime) live(id dsh.SessionID) *Agent {
	rt.mu.RLock()
	defer rt.mu.RUnlock()
	return rt.sessions[id]
}

func (rt *Runtime) provider(name string) (llm.Provider, bool) {
	p, ok := rt.served[name]
	return p, ok
}

// observer is how the project's own tests watch an agent from inside.
type observer = agent.Observer
