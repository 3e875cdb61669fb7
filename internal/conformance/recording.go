package conformance

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// A Recording collects what a run shows, piece by piece, from the goroutines
// of agents, hooks and streams. [Recording.Trace] turns it into a trace.
type Recording struct {
	mu          sync.Mutex
	agents      []*AgentRecord
	requests    []request
	checkpoints []any
	actions     []any
	lifecycle   []any
	left        int
	children    map[string]int // responses left, by child
	summaries   int
	names       []string // pairs of identifier and name
}

// An AgentRecord is one lifecycle of an agent.
type AgentRecord struct {
	Key    string
	Origin string // startup, resume, fork, subagent, subagent-resume
	Header dsh.SessionHeader

	r         *Recording // whose mutex guards the rest
	firstLive dsh.Seq    // -1 without a seed
	events    []dsh.Event
	next      dsh.Seq
	live      []any
	seams     []any
	status    hook.Status
	state     *runtime.State // at the end; nil of an agent that was gone by then
	frozen    bool
}

type request struct {
	session  dsh.SessionID
	afterSeq dsh.Seq
	purpose  string
	sent     *dsh.Request
}

// Agent begins a lifecycle. Its header is written by the caller before the
// trace is built.
func (r *Recording) Agent(key, origin string) *AgentRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &AgentRecord{Key: key, Origin: origin, r: r, firstLive: -1, status: hook.Idle}
	r.agents = append(r.agents, a)
	return a
}

// Drop takes back an agent that could not be made.
func (r *Recording) Drop(a *AgentRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agents = slices.DeleteFunc(r.agents, func(o *AgentRecord) bool { return o == a })
}

// Seeded says that the events so far are history: the next one is the first
// of this life.
func (a *AgentRecord) Seeded() {
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	a.firstLive = a.next
}

// Logged adds events, in order. Packed ones count for what they hold.
func (a *AgentRecord) Logged(events ...dsh.Event) {
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	if a.frozen {
		return
	}
	a.events = append(a.events, events...)
	for i := range events {
		a.next = events[i].Last() + 1
	}
}

// Noticed adds a live event.
func (a *AgentRecord) Noticed(n hook.Notice) {
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	if a.frozen {
		return
	}
	if s, ok := n.(hook.StatusChanged); ok {
		a.status = s.Status
	}
	live := noticeJSON(n)
	live["afterSeq"] = float64(a.next)
	a.live = append(a.live, live)
}

// Called adds a call of an extension point. The fields are those of the trace
// format without afterSeq.
func (a *AgentRecord) Called(seam string, fields object) {
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	if a.frozen {
		return
	}
	call := object{"seam": seam, "afterSeq": float64(a.next)}
	for name, value := range fields {
		call[name] = value
	}
	a.seams = append(a.seams, call)
}

// State sets the agent's own view at the end. Without it surface, messages and
// inbox are folded from the log.
func (a *AgentRecord) State(state runtime.State) {
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	a.status, a.state = state.Status, &state
}

// Freeze ends the lifecycle: nothing more is recorded of it.
func (a *AgentRecord) Freeze() {
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	a.frozen = true
}

// Events returns the log so far.
func (a *AgentRecord) Events() []dsh.Event {
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	return a.events[:len(a.events):len(a.events)]
}

// surface returns the sequence numbers of the surface.
func (a *AgentRecord) surface() ([]dsh.Seq, error) {
	var history dsh.History
	for _, ev := range a.Events() {
		if err := history.Apply(&ev); err != nil {
			return nil, err
		}
	}
	return history.Surface(), nil
}

// Status returns the last status that was noticed.
func (a *AgentRecord) Status() hook.Status {
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	return a.status
}

// Requested adds a request that reached the adapter. A may be nil, as in a
// world whose lifecycle nobody records any more.
func (r *Recording) Requested(a *AgentRecord, purpose string, sent *dsh.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	req := request{session: sent.Session, purpose: purpose, sent: sent}
	if a != nil {
		if a.frozen {
			return
		}
		req.afterSeq = a.next
	}
	r.requests = append(r.requests, req)
}

// Requests returns how many requests were made.
func (r *Recording) Requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

// Checkpoint adds the state of an agent behind a script entry.
func (r *Recording) Checkpoint(afterAction int, a *AgentRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checkpoints = append(r.checkpoints, object{
		"afterAction": float64(afterAction),
		"agent":       a.Key,
		"seq":         float64(a.next),
		"status":      string(a.status),
		"live":        float64(len(a.live)),
		"requests":    float64(len(r.requests)),
	})
}

// Result adds what became of an action.
func (r *Recording) Result(where string, action *Action, result any) {
	r.action(where, action, "result", result)
}

// Failed adds an error that an action raised.
func (r *Recording) Failed(where string, action *Action, err error) {
	r.action(where, action, "error", errorJSON(err))
}

// Begun adds an action that takes its time, at its place among the others. Its
// outcome is noted when finish is called.
func (r *Recording) Begun(where string, action *Action) (finish func(result any, err error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := actionEntry(where, action)
	r.actions = append(r.actions, entry)
	return func(result any, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			entry["error"] = errorJSON(err)
		} else {
			entry["result"] = result
		}
	}
}

func (r *Recording) action(where string, action *Action, member string, value any) {
	entry := actionEntry(where, action)
	entry[member] = value
	r.mu.Lock()
	defer r.mu.Unlock()
	r.actions = append(r.actions, entry)
}

func actionEntry(where string, action *Action) object {
	entry := object{"where": where, "action": generic(action.Raw)}
	if action.As != "" {
		entry["as"] = action.As
	}
	return entry
}

// Noted adds an entry about an action as it is.
func (r *Recording) Noted(entry object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.actions = append(r.actions, entry)
}

// Edge adds a live edge of a child's life.
func (r *Recording) Edge(fields object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lifecycle = append(r.lifecycle, fields)
}

// Left sets how many responses nobody asked for.
func (r *Recording) Left(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = n
}

// LeftOf sets how many responses of a child nobody asked for.
func (r *Recording) LeftOf(child string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children == nil {
		r.children = make(map[string]int)
	}
	r.children[child] = n
}

// Name says that an identifier, of a session or a run, appears in the trace
// under a name.
func (r *Recording) Name(id, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, id, name)
}

// A coded error is one that programs tell apart; its name and code appear in
// the trace.
type coded interface {
	error
	TraceName() (name, code string)
}

// errorJSON returns an error as traces show it: the name of its class, its
// message, and a code if it has one.
func errorJSON(err error) object {
	out := object{"name": "Error", "message": err.Error()}
	if f := (*dsh.Failure)(nil); errors.As(err, &f) {
		out["name"], out["code"] = "LlmError", string(f.Code)
	}
	if c := coded(nil); errors.As(err, &c) {
		name, code := c.TraceName()
		out["name"] = name
		if code != "" {
			out["code"] = code
		}
	}
	if errors.Is(err, dsh.ErrInboxSplice) {
		out["cause"] = dsh.ErrInboxSplice.Error()
	}
	return out
}

func noticeJSON(n hook.Notice) object {
	out := object{"type": n.Type()}
	message := func(m *dsh.Message) {
		out["message"], out["text"] = string(m.ID), dsh.TextOf(m.Content)
	}
	switch n := n.(type) {
	case hook.Created, hook.Disposed:
	case hook.SessionStarted:
		out["source"] = string(n.Source)
	case hook.Inserted:
		message(n.Message)
	case hook.Claimed:
		message(n.Message)
		out["turn"] = float64(n.Turn)
	case hook.Discarded:
		message(n.Message)
	case hook.StatusChanged:
		out["status"] = string(n.Status)
	case hook.Erred:
		out["turn"], out["step"] = float64(n.Turn), float64(n.Step)
		out["error"] = errorJSON(n.Err)
	}
	return out
}

// An object is a JSON object as encoding/json decodes it.
type object = map[string]any

// generic returns the decoded form of a JSON text.
func generic(text []byte) any {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return "invalid JSON: " + string(text)
	}
	return v
}
