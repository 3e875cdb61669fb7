package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/toolset/subagent"
)

// children is what a world knows of its sub-agents.
type children struct {
	w     *world
	tools []string // the delegation tools

	mu       sync.Mutex
	named    int                      // children so far
	runs     int                      // lives so far
	started  map[string]chan struct{} // by key of a life, closed behind its start edge
	ended    map[string]chan struct{} // by key of a life, closed behind its end edge
	starting map[string][]*start      // by key of a parent: delegations that have no child yet, in order
}

// start is a delegation that has no child yet.
type start struct {
	call dsh.CallID
	over chan struct{}
}

// delegates gives a world the sub-agents that the scenario asks for, as the
// reference has them: background children outlive their parents, and what
// nobody hears is lost.
func (w *world) delegates(opts *runtime.Options) error {
	o := w.options.Subagents
	if o == nil {
		return nil
	}
	c := &children{
		w: w, started: map[string]chan struct{}{}, ended: map[string]chan struct{}{}, starting: map[string][]*start{},
	}
	w.children = c
	opts.Delegation = runtime.Delegation{
		MaxDepth: 1000, Grace: -1, OutliveAbort: true, OutliveDispose: true, DropNotices: true,
		NewID: c.name, Adopt: c.adopt,
	}
	set := subagent.Options{
		Tools: []subagent.Tool{}, NoControl: !o.Control, NoList: !o.List, NoReport: o.Report == "",
		QuietReports: o.Report == "quiet", Ephemeral: !o.Persistence,
	}
	for _, t := range o.Tools {
		if !o.has(t.Provider) {
			continue
		}
		made, err := t.tool()
		if err != nil {
			return err
		}
		set.Tools = append(set.Tools, made)
		c.tools = append(c.tools, made.Name)
	}
	tools, err := subagent.New(set)
	if err != nil {
		return err
	}
	opts.Tools = append(opts.Tools, tools.Tools()...)
	opts.Hooks = append(opts.Hooks, tools.Hooks()...)
	return nil
}

func (s *Subagents) jobs() bool { return len(s.Jobs) > 0 && string(s.Jobs) != "false" }

// has reports whether there is a transport.
func (s *Subagents) has(transport string) bool {
	if len(s.Providers) == 0 {
		return transport == "spawn"
	}
	return slices.Contains(s.Providers, transport)
}

// tool returns a delegation tool as ours is configured.
func (t *DelegationTool) tool() (subagent.Tool, error) {
	made := subagent.Tool{
		Name: t.ToolName, Transport: delegation.Transport(t.Provider), Persona: t.Persona, MaxDepth: t.MaxDepth,
		Background: subagent.Refused, LateDescriptor: true,
	}
	if made.Name == "" {
		made.Name = "subagent"
	}
	if made.MaxDepth == nil {
		made.MaxDepth = new(int)
		*made.MaxDepth = 3
	}
	if t.BackgroundMode == "continuable" {
		made.Background = subagent.ByDefault
	}
	if t.EnableRunInBackground != nil && !*t.EnableRunInBackground {
		made.Background = subagent.Never
	}
	if t.ToolFilter != nil {
		made.Filter = delegation.Filter(*t.ToolFilter)
	}
	var spec delegation.Spec
	err := route(&spec, t.AgentOptions)
	made.Provider, made.Model, made.MaxTokens = spec.Provider, spec.Model, spec.MaxTokens
	return made, err
}

// route sets the options of an agent that a scenario wrote down.
func route(spec *delegation.Spec, options json.RawMessage) error {
	if len(options) == 0 {
		return nil
	}
	var o struct {
		Provider, Model, ReasoningEffort string
		MaxTokens                        int
	}
	if err := strict(options, &o); err != nil {
		return err
	}
	spec.Provider, spec.Model, spec.ReasoningEffort, spec.MaxTokens = o.Provider, o.Model, o.ReasoningEffort, o.MaxTokens
	return nil
}

var childName = regexp.MustCompile(`\{(child\d+)\}`)

// childNames puts the identifiers of children where a scenario names them.
func childNames(text string) string { return childName.ReplaceAllString(text, "$1") }

// name gives children their names in the order in which they are made.
func (c *children) name() dsh.SessionID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.named++
	return dsh.SessionID(fmt.Sprintf("child%d", c.named))
}

// adopt begins to record a life of a child.
func (c *children) adopt(child *runtime.Child, header dsh.SessionHeader, events []dsh.Event) agent.Observer {
	name, key, origin := string(header.ID), string(header.ID), "subagent"
	if before := c.w.find(name); before != nil {
		before.freeze()
		n := 1
		for _, s := range c.w.all() {
			if s.name == name {
				n++
			}
		}
		key, origin = fmt.Sprintf("%s#%d", name, n), "subagent-resume"
	}
	s := &subject{
		key: key, name: name, world: c.w, record: c.w.d.r.Agent(key, origin), made: make(chan struct{}), agent: child.Agent,
	}
	s.record.Logged(slices.Collect(dsh.Expand(events))...)
	s.record.Seeded()
	s.record.Header = header
	watch := &observing{subject: s}
	for i := range events {
		if events[i].Seq >= header.SeedLength {
			watch.follow(&events[i])
		}
	}
	c.mu.Lock()
	c.started[key], c.ended[key] = make(chan struct{}), make(chan struct{})
	c.mu.Unlock()
	c.w.mu.Lock()
	c.w.subjects = append(c.w.subjects, s)
	c.w.mu.Unlock()
	close(s.made)
	return watch
}

// admit holds a step back until the edges that come before it were told: the
// start of the child itself, and the ends that its messages tell of. So the
// edges stand where the reference has them, whatever the scheduler does.
func (c *children) admit(s *subject, messages []*dsh.Message) {
	if c == nil {
		return
	}
	c.mu.Lock()
	var before []chan struct{}
	if edge := c.started[s.key]; edge != nil {
		before = append(before, edge)
	}
	for _, m := range messages {
		kind, sender := delegation.Sender(m)
		if kind != delegation.SettledSource {
			continue
		}
		if child := c.w.find(string(sender)); child != nil {
			before = append(before, c.ended[child.key])
		}
	}
	c.mu.Unlock()
	for _, edge := range before {
		select {
		case <-edge:
		case <-c.w.d.over:
		}
	}
}

// inTurn lets a delegation begin when the one before it has its child, so that
// children are named in the order of the calls.
func (c *children) inTurn(s *subject, call hook.Call) {
	if c == nil || !slices.Contains(c.tools, call.Tool) {
		return
	}
	c.mu.Lock()
	line := c.starting[s.key]
	c.starting[s.key] = append(line, &start{call: call.ID, over: make(chan struct{})})
	c.mu.Unlock()
	if len(line) > 0 {
		select {
		case <-line[len(line)-1].over:
		case <-c.w.d.over:
		}
	}
}

// begun lets the next delegation of a parent begin: behind the one of a call or,
// without one, behind the first.
func (c *children) begun(key string, call dsh.CallID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.starting[key] {
		if call == "" || s.call == call {
			close(s.over)
			c.starting[key] = slices.Delete(c.starting[key], i, i+1)
			return
		}
	}
}

// AroundTool lets the next delegation begin also where this one has no child.
func (p *plugin) AroundTool(ctx context.Context, call hook.Call, next hook.AroundToolFunc) (hook.Outcome, error) {
	if c := p.w.children; c != nil && slices.Contains(c.tools, call.Tool) {
		defer c.begun(p.w.subject(call.Agent.ID()).key, call.ID)
	}
	return next(ctx, call)
}

// Naps keep agents that work side by side in the order in which the reference
// has them: a goroutine that naps goes on when all others wait or nap longer.
// The deeper an agent is, the sooner it goes on; a life is over last.
const (
	edgeNap   = time.Nanosecond
	modelNap  = time.Microsecond // of a top-level agent
	settleNap = time.Millisecond
)

func (d *driver) nap(length time.Duration) {
	d.napping.Add(1)
	time.Sleep(length)
	d.napping.Add(-1)
}

// think lets agents ask their models one after the other, children first.
func (c *children) think(i dsh.Initiator) {
	if c != nil {
		c.w.d.nap(modelNap / time.Duration(i.Depth*i.Depth*10+1))
	}
}

// settle lets a life end when all others rest.
func (c *children) settle(n hook.Notice) {
	if _, over := n.(hook.Disposed); over && c != nil {
		c.w.d.nap(settleNap)
	}
}

// rest waits until nothing can happen any more by itself.
func (d *driver) rest() {
	synctest.Wait()
	for d.napping.Load() > 0 {
		time.Sleep(settleNap)
		synctest.Wait()
	}
}

// ChildStarted records the edge.
func (p *plugin) ChildStarted(s delegation.Started) {
	p.w.children.begunNap(s)
	p.edge("subagent/start", s, nil)
}

func (c *children) begunNap(s delegation.Started) {
	c.w.d.nap(edgeNap)
	c.mu.Lock()
	c.runs++
	c.w.d.r.Name(s.Run, fmt.Sprintf("run%d", c.runs))
	c.mu.Unlock()
}

// ChildEnded records the edge.
func (p *plugin) ChildEnded(e delegation.Ended) {
	p.w.d.nap(edgeNap)
	p.edge("subagent/end", e.Started, &e)
}

// edge records a live edge of a child and lets those go on who wait for it.
func (p *plugin) edge(name string, s delegation.Started, end *delegation.Ended) {
	c := p.w.children
	child, parent := p.w.find(string(s.Initiator.Session)), p.w.find(string(s.Initiator.Parent))
	fields := object{
		"edge": name, "runId": s.Run, "provider": string(s.Transport), "id": string(s.Initiator.Session), "local": true,
		"parentSeq": float64(len(parent.record.Events())), "childSeq": float64(len(child.record.Events())),
		"childRegistered": end == nil || end.Registered,
	}
	if end != nil {
		fields["stopReason"] = stopReason(end.Outcome)
		if len(end.Outcome.Output) > 0 {
			fields["lastAssistantMessage"] = blocksJSON(end.Outcome.Output)
		}
	}
	p.w.d.r.Edge(fields)
	c.mu.Lock()
	edge := c.started[child.key]
	if end != nil {
		edge = c.ended[child.key]
	}
	c.mu.Unlock()
	close(edge)
	if end == nil {
		c.begun(parent.key, "")
	}
}

// stopReason is what the reference calls an outcome.
func stopReason(o delegation.Outcome) string {
	switch o.Kind {
	case delegation.Completed:
		return "completed"
	case delegation.Limited:
		if o.Limit == delegation.LimitTokens {
			return "max-tokens"
		}
		return "aborted"
	case delegation.Aborted:
		return "aborted"
	case delegation.Rejected:
		return "refusal"
	}
	return "error"
}

func blocksJSON(blocks []dsh.Block) any {
	m := dsh.Message{ID: "x", Role: dsh.RoleAssistant, Content: blocks, Source: dsh.UserSource{}}
	return generic(m.AppendJSON(nil)).(object)["content"]
}
