package conformance

import (
	"encoding/json"
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// Trace returns the recording in the trace format, identifiers normalised.
// Messages whose identifiers the scenario wrote down itself keep them.
func (r *Recording) Trace(s *Scenario) (map[string]any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	trace := object{
		"scenario":         s.Name,
		"checkpoints":      list(r.checkpoints),
		"actions":          list(r.actions),
		"modelEntriesLeft": float64(r.left),
	}
	agents := []any{}
	for _, a := range r.agents {
		agent, err := a.trace()
		if err != nil {
			return nil, fmt.Errorf("conformance: agent %s: %w", a.Key, err)
		}
		agents = append(agents, agent)
	}
	trace["agents"] = agents
	requests := []any{}
	for _, req := range r.requests {
		requests = append(requests, req.trace())
	}
	trace["requests"] = requests
	if s.Options.Subagents != nil || s.Children != nil {
		trace["lifecycle"] = list(r.lifecycle)
		trace["summariesLeft"] = float64(r.summaries)
		left := object{}
		for child, n := range r.children {
			left[child] = float64(n)
		}
		trace["childEntriesLeft"] = left
	}
	Normalize(trace, s.literalIDs(), r.names...)
	return trace, nil
}

func (a *AgentRecord) trace() (object, error) {
	out := object{
		"key":    a.Key,
		"origin": a.Origin,
		"header": headerJSON(a.Header),
		"status": string(a.status),
		"live":   list(a.live),
		"seams":  list(a.seams),
	}
	if a.firstLive >= 0 {
		out["firstLiveSeq"] = float64(a.firstLive)
	}
	events := []any{}
	var history dsh.History
	var inbox dsh.Inbox
	for ev := range dsh.Expand(a.events) {
		event, err := eventJSON(&ev)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", ev.Seq, err)
		}
		events = append(events, event)
		if err := history.Apply(&ev); err != nil {
			return nil, fmt.Errorf("event %d: %w", ev.Seq, err)
		}
		splice, ok := ev.Data.(dsh.InboxSpliced)
		if !ok || a.Origin == "fork" && ev.Seq < a.firstLive {
			continue // A fork ignores what its parent had pending.
		}
		_ = inbox.Apply(splice) // A raw append may not fit; the agent takes no note of it either.
	}
	nodes, messages := history.Surface(), history.Messages()
	if a.state != nil {
		nodes, messages, inbox = a.state.Surface, a.state.Messages, a.state.Inbox
	}
	out["events"] = events
	surface := []any{}
	for _, seq := range nodes {
		surface = append(surface, float64(seq))
	}
	out["surface"] = surface
	out["messages"] = messagesJSON(messages)
	out["inbox"] = object{"nextTurn": ids(inbox.NextTurn), "nextStep": ids(inbox.NextStep)}
	return out, nil
}

func (r request) trace() object {
	config := configJSON(r.sent.Header.Config)
	config["session"], config["afterSeq"] = string(r.session), float64(r.afterSeq)
	if r.purpose != "" {
		config["purpose"] = r.purpose
	}
	config["system"] = nil
	if r.sent.Header.System != "" {
		config["system"] = r.sent.Header.System
	}
	tools := []any{}
	for _, t := range r.sent.Header.Tools {
		tools = append(tools, t.Name)
	}
	config["tools"] = tools
	config["messages"] = messagesJSON(r.sent.Messages)
	return config
}

// eventJSON returns the event as it is logged, without its time.
func eventJSON(ev *dsh.Event) (object, error) {
	var out object
	if err := json.Unmarshal(ev.AppendJSON(nil), &out); err != nil {
		return nil, err
	}
	delete(out, "time")
	return out, nil
}

func messagesJSON(messages []*dsh.Message) []any {
	out := []any{}
	for _, m := range messages {
		out = append(out, generic(m.AppendJSON(nil)))
	}
	return out
}

// headerJSON returns a session header without what differs from run to run.
func headerJSON(h dsh.SessionHeader) any {
	header := generic(h.AppendJSON(nil))
	if out, ok := header.(object); ok {
		delete(out, "type")
		delete(out, "createdAt")
		delete(out, "cwd")
	}
	return header
}

// configJSON returns a call configuration; the route is always there.
func configJSON(c dsh.CallConfig) object {
	out := object{"provider": c.Provider, "model": c.Model}
	if c.MaxTokens != 0 {
		out["maxTokens"] = float64(c.MaxTokens)
	}
	if c.ReasoningEffort != "" {
		out["reasoningEffort"] = c.ReasoningEffort
	}
	if c.Temperature != nil {
		out["temperature"] = *c.Temperature
	}
	if c.Stop != nil {
		stop := []any{}
		for _, s := range c.Stop {
			stop = append(stop, s)
		}
		out["stop"] = stop
	}
	return out
}

func failureJSON(f *dsh.Failure) object {
	out := object{"message": f.Message, "code": string(f.Code)}
	if f.Status != 0 {
		out["status"] = float64(f.Status)
	}
	if f.ProviderRetryAfterMs != nil {
		out["providerRetryAfterMs"] = float64(*f.ProviderRetryAfterMs)
	}
	if f.RequestID != "" {
		out["requestId"] = f.RequestID
	}
	return out
}

// Fields of the seams.

func preStepFields(s hook.Step) object {
	return object{"turn": float64(s.Pos.Turn), "step": float64(s.Pos.Step), "messages": ids(s.Messages)}
}

func requestFields(p hook.Proposal) object {
	return object{"turn": float64(p.Pos.Turn), "step": float64(p.Pos.Step), "proposed": configJSON(p.Config)}
}

func requestErrorFields(f hook.FailedRequest) object {
	return object{
		"turn": float64(f.Pos.Turn), "step": float64(f.Pos.Step),
		"provider": f.Provider, "failure": failureJSON(f.Failure),
	}
}

func stoppingFields(t hook.EndingTurn) object { return object{"turn": float64(t.Pos.Turn)} }

func preToolFields(c hook.Call) object {
	return object{"callId": string(c.ID), "tool": c.Tool, "args": generic(c.Args)}
}

func postToolFields(c hook.Call, o hook.Outcome) object {
	return object{"callId": string(c.ID), "tool": c.Tool, "isError": o.IsError}
}

func resultFields(c hook.Call, o hook.Outcome) object {
	return object{"callId": string(c.ID), "isError": o.IsError}
}

func ids(messages []*dsh.Message) []any {
	out := []any{}
	for _, m := range messages {
		out = append(out, string(m.ID))
	}
	return out
}

// list returns values as a JSON list that is not null.
func list(values []any) []any { return append([]any{}, values...) }
