package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A childResult is a sub-agent in the result of a run.
type childResult struct {
	Agent      dsh.AgentID   `json:"agent"`
	Session    dsh.SessionID `json:"session"`
	Parent     dsh.AgentID   `json:"parent"`
	Depth      int           `json:"depth"`
	Label      string        `json:"label,omitempty"`
	Outcome    string        `json:"outcome"`
	Code       string        `json:"code,omitempty"`
	Usage      tokens        `json:"usage"` // without that of its own sub-agents
	DurationMs int64         `json:"duration_ms"`
}

// A tree shows the sub-agents of a run as they work.
type tree struct {
	d *drive

	mu     sync.Mutex    // guards the rest, and the view
	spent  []*dsh.Ledger // of each life of an agent
	begun  map[string]time.Time
	ended  []childResult
	reader sync.WaitGroup
}

var _ delegation.Observer = (*tree)(nil)

func newTree(d *drive) *tree { return &tree{d: d, begun: map[string]time.Time{}} }

// account returns the ledger of an agent that is about to be followed.
func (t *tree) account() *dsh.Ledger {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := new(dsh.Ledger)
	t.spent = append(t.spent, l)
	return l
}

// routes returns what the run spent on each model. It is complete when all
// readers are done.
func (t *tree) routes() []dsh.RouteUsage {
	t.mu.Lock()
	defer t.mu.Unlock()
	var sum dsh.Ledger
	for _, l := range t.spent {
		for _, r := range l.Routes() {
			sum.Add(r)
		}
	}
	return sum.Routes()
}

// indent is where the lines of a sub-agent begin.
func indent(depth int) string { return strings.Repeat("  ", depth+1) }

// ChildStarted shows that a sub-agent begins, and follows its log.
func (t *tree) ChildStarted(s delegation.Started) {
	t.mu.Lock()
	t.begun[s.Run] = time.Now()
	t.mu.Unlock()
	t.d.progress.line(plain, "%s⤷ %s", indent(s.Initiator.Depth), first(s.Label, "sub-agent"))
	if a, ok := t.d.rt.Agent(s.Initiator.Agent); ok {
		t.reader.Go(func() {
			names, ledger := map[dsh.CallID]string{}, t.account()
			for ev, err := range a.Follow(context.Background(), 0) {
				if err != nil {
					return
				}
				t.show(ev, s, names, ledger)
			}
		})
	}
}

// show tells of an event of a sub-agent.
func (t *tree) show(ev dsh.Event, s delegation.Started, names map[dsh.CallID]string, ledger *dsh.Ledger) {
	t.event(ev, &s.Initiator, ledger)
	in := indent(s.Initiator.Depth+1) + first(s.Label, "sub-agent") + " "
	switch d := ev.Data.(type) {
	case dsh.ToolStarted:
		names[d.CallID] = d.Name
		t.d.progress.line(faint, "%s→ %s%s", in, d.Name, preview(d.Arguments))
	case dsh.ToolFinished:
		r, _ := d.Message.Content[0].(dsh.ToolResult)
		mark, c := "✓", faint
		if r.IsError {
			mark, c = "✗", fail
		}
		t.d.progress.line(c, "%s%s %s%s", in, mark, names[r.CallID], summary(dsh.TextOf(r.Content), r.IsError))
	default:
	}
}

// event hands an event to the view, which takes one at a time, and to the
// agent's ledger; what came before a seed's end was paid by others. Who is nil
// for the run's own agent.
func (t *tree) event(ev dsh.Event, who *dsh.Initiator, ledger *dsh.Ledger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := ev.Data.(dsh.EndSeed); ok {
		*ledger = dsh.Ledger{}
	}
	ledger.Apply(&ev)
	t.d.view.event(ev, who)
}

// ChildEnded shows how a sub-agent ended, how long it took and what it used.
func (t *tree) ChildEnded(e delegation.Ended) {
	t.mu.Lock()
	took := time.Since(t.begun[e.Run])
	delete(t.begun, e.Run)
	i := e.Initiator
	t.ended = append(t.ended, childResult{
		Agent: i.Agent, Session: i.Session, Parent: i.Parent, Depth: i.Depth, Label: e.Label,
		Outcome: string(e.Outcome.Kind), Code: e.Outcome.Code(), Usage: tokensOf(e.Outcome.Usage), DurationMs: took.Milliseconds(),
	})
	t.mu.Unlock()
	mark, c, how := "✓", good, ""
	if !e.Outcome.OK() {
		mark, c, how = "✗", fail, " · "+oneLine(e.Outcome.String(), 200)
	}
	t.d.progress.line(c, "%s%s %s · %s · %s%s", indent(i.Depth), mark, first(e.Label, "sub-agent"), count(e.Outcome.Total()), short(took), how)
}
