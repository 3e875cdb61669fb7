package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/policy/retry"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

// A world is a runtime with a store of its own and the scripted plugins. A
// resume begins a new one.
type world struct {
	*runtime.Runtime
	d       *driver
	options Options
	store   *noting

	children *children // nil without sub-agents

	mu       sync.Mutex
	contexts []Context
	modes    map[string]string // of tools, where they were changed
	subjects []*subject
}

func (d *driver) newWorld(o Options) (*world, error) {
	w := &world{
		d: d, options: o, store: &noting{Store: d.newStore()}, contexts: slices.Clone(o.Contexts), modes: make(map[string]string),
	}
	plugged := &plugin{w: w}
	hooks := []any{plugged}
	if o.Retry != nil {
		hooks = append(hooks, retry.New(o.Retry.options()))
	}
	var tools []tool.Tool
	for i := range d.Tools {
		if t := &d.Tools[i]; t.Registered == nil || *t.Registered {
			tools = append(tools, &scripted{w, t})
		}
	}
	opts := runtime.Options{
		Providers: map[string]llm.Provider{"mock": &provider{w}},
		Tools:     tools, Hooks: hooks, Store: w.store, Logger: d.logger,
	}
	err := w.delegates(&opts)
	if err != nil {
		return nil, err
	}
	if w.Runtime, err = runtime.New(opts); err != nil {
		return nil, err
	}
	d.worlds = append(d.worlds, w)
	return w, nil
}

// options returns the policy as ours is configured. The reference's jitter
// sample is 0.5, the middle.
func (r *Retry) options() retry.Options {
	o := retry.Options{
		Mode:    retry.Mode(r.Mode),
		Initial: time.Duration(r.Backoff.InitialDelayMs) * time.Millisecond,
		Max:     time.Duration(r.Backoff.MaxDelayMs) * time.Millisecond,
		Jitter:  r.Backoff.JitterRatio,
		Rand:    func() float64 { return 0.5 },
	}
	if o.Jitter == 0 {
		o.Jitter = -1
	}
	if r.MaxRetries != nil {
		if o.MaxRetries = *r.MaxRetries; o.MaxRetries == 0 {
			o.MaxRetries = -1
		}
	}
	return o
}

// spec returns an agent's specification.
func (w *world) spec(s *subject) runtime.Spec {
	o := w.options
	spec := runtime.Spec{
		ID: dsh.AgentID(s.key), Session: dsh.SessionID(s.key), MaxTokens: o.MaxTokens, System: o.System,
		MaxParallelToolCalls: o.MaxParallelToolCalls,
	}
	spec.Provider, spec.Model = o.Route()
	return spec
}

// all returns the agents of the world, in the order in which they were made.
func (w *world) all() []*subject {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.subjects)
}

// subject returns the agent with an ID.
func (w *world) subject(id dsh.AgentID) *subject {
	if s := w.find(string(id)); s != nil {
		return s
	}
	panic(fmt.Sprintf("conformance: nobody made agent %s", id)) // by this driver
}

// find returns the latest life of the agent with a key, or nil.
func (w *world) find(key string) *subject {
	var found *subject
	for _, s := range w.all() {
		if s.name == key {
			found = s
		}
	}
	return found
}

// A subject is one lifecycle of an agent.
type subject struct {
	key    string
	name   string // the key without the number of the life
	world  *world
	record *AgentRecord
	made   chan struct{} // closed when agent is set
	agent  *runtime.Agent
	frozen atomic.Bool
}

// api returns the agent, once it is made.
func (s *subject) api() *runtime.Agent {
	<-s.made
	return s.agent
}

// hold keeps a goroutine of a frozen lifecycle, or of one that goes round in
// circles, until the end.
func (s *subject) hold() {
	if d := s.world.d; s.frozen.Load() || d.r.Requests() > mostRequests {
		<-d.over
	}
}

// freeze ends the lifecycle: its state is what it is now, and what it does
// from now on counts for nothing.
func (s *subject) freeze() {
	if s.frozen.CompareAndSwap(false, true) {
		s.snapshot()
		s.record.Freeze()
	}
}

// snapshot records the state, unless the agent is gone.
func (s *subject) snapshot() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if state, err := s.agent.State(ctx); err == nil {
		s.record.State(state)
	}
}

// check returns an error if the session's log is not what was observed.
func (s *subject) check() error {
	if s.frozen.Load() {
		return nil
	}
	seen, n := s.record.Events(), 0
	for ev, err := range s.agent.Events(context.Background(), 0) {
		if err != nil {
			return fmt.Errorf("agent %s: %w", s.key, err)
		}
		if n >= len(seen) || !bytes.Equal(ev.AppendJSON(nil), seen[n].AppendJSON(nil)) {
			return fmt.Errorf("agent %s: event %d of the log is not what was observed: %s", s.key, n, ev.AppendJSON(nil))
		}
		n++
	}
	if n < len(seen) {
		return fmt.Errorf("agent %s: %d events were observed, %d are in the log", s.key, len(seen), n)
	}
	return nil
}

// enter makes an agent of the world by open and makes it the most recent one.
// The seed is what its log begins with.
func (w *world) enter(
	key, origin string, seed []dsh.Event, open func(runtime.Spec) (*runtime.Agent, error),
) error {
	d := w.d
	s := &subject{key: key, name: key, world: w, record: d.r.Agent(key, origin), made: make(chan struct{})}
	if origin != "startup" {
		s.record.Logged(seed...)
		s.record.Seeded()
	}
	w.mu.Lock()
	w.subjects = append(w.subjects, s)
	w.mu.Unlock()
	spec, watch := w.spec(s), &observing{subject: s}
	if origin == "resume" { // a fork does not take over what is pending
		for i := range seed {
			watch.follow(&seed[i])
		}
	}
	spec.Observer = watch
	var err error
	if s.agent, err = open(spec); err != nil {
		d.r.Drop(s.record)
		w.mu.Lock()
		w.subjects = slices.DeleteFunc(w.subjects, func(o *subject) bool { return o == s })
		w.mu.Unlock()
		return err
	}
	close(s.made)
	s.record.Header = w.store.header(s.agent.Session())
	d.agents[key], d.current = s, s
	return nil
}

// startup makes an agent on an empty session, in a new world.
func (d *driver) startup(key string) error {
	w, err := d.newWorld(d.Options)
	if err != nil {
		return err
	}
	return w.enter(key, "startup", nil, func(spec runtime.Spec) (*runtime.Agent, error) {
		return w.Create(context.Background(), spec)
	})
}

// fork makes an agent over a prefix of another's log, in the same world. The
// boundary of a scenario is the last event of the prefix; ours is its length.
func (d *driver) fork(a *Action) error {
	f := a.Fork
	from, err := d.source(f.From)
	if err != nil {
		return err
	}
	seed := from.record.Events()
	boundary := runtime.End
	if f.Boundary != nil {
		boundary = dsh.Seq(*f.Boundary)
		if boundary >= 0 {
			boundary++
		}
		seed = seed[:min(max(*f.Boundary+1, 0), len(seed))]
	}
	w := from.world
	return w.enter(f.As, "fork", seed, func(spec runtime.Spec) (*runtime.Agent, error) {
		agent, err := w.Fork(context.Background(), from.agent.Session(), boundary, spec)
		return agent, traced(err)
	})
}

// resume stores a log and resumes it in a new world. The lifecycle that it
// comes from is frozen.
func (d *driver) resume(a *Action) error {
	r := a.Resume
	options, header, events := d.Options, dsh.SessionHeader{ID: dsh.SessionID(r.As)}, []dsh.Event(nil)
	if r.Log != nil {
		var err error
		if events, err = literal(r.Log); err != nil {
			return err
		}
	} else {
		from, err := d.source(r.From)
		if err != nil {
			return err
		}
		from.freeze()
		options, header, events = from.world.options, from.record.Header, from.record.Events()
		if r.UpTo != nil {
			events = events[:min(*r.UpTo+1, len(events))]
		}
	}
	if r.Header != nil {
		if err := overlay(&header, r.Header); err != nil {
			return err
		}
	}
	w, err := d.newWorld(options.Overlay(r.Options))
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := w.keep(ctx, header, events); err != nil {
		return err
	}
	seed := append(slices.Clip(events), dsh.Closers(events)...)
	return w.enter(r.As, "resume", seed, func(spec runtime.Spec) (*runtime.Agent, error) {
		return w.Resume(ctx, header.ID, spec)
	})
}

// noting is a store that remembers the headers of the logs that were opened. A
// store need not list a log that holds nothing.
type noting struct {
	session.Store
	mu      sync.Mutex
	headers map[dsh.SessionID]dsh.SessionHeader
}

// Create implements [session.Store].
func (n *noting) Create(ctx context.Context, h dsh.SessionHeader) (session.Log, error) {
	return n.note(n.Store.Create(ctx, h))
}

// Open implements [session.Store].
func (n *noting) Open(ctx context.Context, id dsh.SessionID) (session.Log, error) {
	return n.note(n.Store.Open(ctx, id))
}

func (n *noting) note(log session.Log, err error) (session.Log, error) {
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.headers == nil {
		n.headers = make(map[dsh.SessionID]dsh.SessionHeader)
	}
	h := log.Header()
	n.headers[h.ID] = h
	return log, nil
}

func (n *noting) header(id dsh.SessionID) dsh.SessionHeader {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.headers[id]
}

// keep stores a log as an earlier process would have.
func (w *world) keep(ctx context.Context, header dsh.SessionHeader, events []dsh.Event) error {
	log, err := w.store.Create(ctx, header)
	if err != nil {
		return err
	}
	if err := session.Extend(ctx, log, events); err != nil {
		return err
	}
	return log.Close()
}

// source returns the agent that a resume or a fork starts from.
func (d *driver) source(key string) (*subject, error) {
	s := d.current
	if key != "" {
		s = d.agents[key]
	}
	if s == nil {
		return nil, fmt.Errorf("no agent %q", key)
	}
	return s, nil
}

// literal decodes the events of a log that the scenario wrote down. They are
// numbered here.
func literal(log []json.RawMessage) ([]dsh.Event, error) {
	events := make([]dsh.Event, len(log))
	for i, raw := range log {
		event, ok := generic(raw).(object)
		if !ok {
			return nil, fmt.Errorf("event %d is no object", i)
		}
		event["seq"], event["time"] = i, 0
		text, err := json.Marshal(event)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &events[i]); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
	}
	return events, nil
}

// overlay sets the members of a header that the scenario wrote down.
func overlay(h *dsh.SessionHeader, by json.RawMessage) error {
	header, _ := generic(h.AppendJSON(nil)).(object)
	set, ok := generic(by).(object)
	if !ok {
		return fmt.Errorf("the header %s is no object", brief(by))
	}
	for name, value := range set {
		header[name] = value
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, h)
}

// provider serves the scenario's responses in one world.
type provider struct{ w *world }

// Model returns what the scenario says of a model.
func (p *provider) Model(name string) llm.Model {
	m := p.w.options.Models[name]
	model := llm.Model{ContextWindow: m.ContextWindow, MaxTokens: m.DefaultMaxTokens}
	if m.Reasoning != nil {
		model.ReasoningEffort = m.Reasoning.DefaultEffort
	}
	return model
}

// Stream records the request and plays the next response.
func (p *provider) Stream(ctx context.Context, req *dsh.Request) iter.Seq2[dsh.Chunk, error] {
	return func(yield func(dsh.Chunk, error) bool) {
		initiator, _ := dsh.InitiatorFrom(ctx)
		s, d := p.w.subject(initiator.Agent), p.w.d
		s.hold()
		if d.ended() {
			return
		}
		d.r.Requested(s.record, "", req)
		p.w.children.think(initiator)
		reply, ok := d.reply(s)
		if !ok {
			yield(nil, script.ErrExhausted)
			return
		}
		e := Expander{Substitute: childNames, Do: func(_ context.Context, actions []Action) { d.actions(s, actions) }}
		for chunk, err := range script.New(script.Options{Gates: d.gates}, e.Expand(reply)).Stream(ctx, req) {
			s.hold()
			if !yield(chunk, err) {
				return
			}
		}
	}
}
