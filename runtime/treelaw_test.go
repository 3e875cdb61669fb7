package runtime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
	"github.com/dsh-actor/dsh-actor/toolset/subagent"
)

// dice is a random source for many goroutines.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (d *dice) roll(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// mind answers at random: with words, with work for children in front and
// behind, with tools that panic or do not listen, with failures, or not at all.
func (d *dice) mind(i dsh.Initiator, req *dsh.Request) script.Response {
	usage := dsh.Usage{InputTokens: 1, OutputTokens: 1}
	wait := script.Delay{For: time.Duration(d.roll(50)) * time.Millisecond}
	say := func(a script.Answer) script.Response {
		a.Usage = &usage
		return append(script.Response{wait}, a.Response()...)
	}
	if len(req.Messages) > 12 {
		return say(script.Answer{Text: "enough"})
	}
	switch d.roll(10) {
	case 0:
		return append(script.Response{wait}, script.Error(&dsh.Failure{Code: dsh.CodeServer, Message: "down"})...)
	case 1:
		return script.Response{script.Emit{Chunk: dsh.TextDelta{Text: "hm"}}, script.Delay{For: time.Hour}}
	case 2:
		return say(script.Answer{Calls: []dsh.ToolCall{call("p", "panic", "{}")}})
	case 3:
		return say(script.Answer{Calls: []dsh.ToolCall{call("d", "deaf", "{}")}})
	case 4, 5, 6:
		var calls []dsh.ToolCall
		for n := range 1 + d.roll(3) {
			calls = append(calls, call(dsh.CallID(fmt.Sprint("c", n)), "subagent",
				fmt.Sprintf(`{"description":"part","prompt":"go","run_in_background":%t}`, d.roll(2) == 0)))
		}
		return say(script.Answer{Calls: calls})
	}
	return say(script.Answer{Text: fmt.Sprint("depth ", i.Depth)})
}

// The laws of trees hold whatever happens in whatever order: children start and
// settle, any agent is cancelled, interrupted, told something or disposed of,
// tools panic, and children are slower than the abort of their parents.
//
//   - every child that started ended once, behind its own children unless it
//     was left to itself, with the outcome that everybody sees;
//   - all logs are balanced;
//   - no agent and no goroutine is left.
//
// A failure names its seed: DSH_ACTOR_SEED=n replays it alone.
func TestTreeLaws(t *testing.T) {
	first, count := uint64(1), uint64(150)
	if s := os.Getenv("DSH_ACTOR_SEED"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
		count = 1
	}
	if testing.Short() {
		count = min(count, 20)
	}
	children := 0
	kinds := map[delegation.OutcomeKind]int{}
	for seed := first; seed < first+count && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				for _, e := range growTree(t, seed) {
					children++
					kinds[e.Outcome.Kind]++
				}
			})
		})
	}
	t.Logf("%d children: %v", children, kinds)
	if count >= 150 && (kinds[delegation.Completed] == 0 || kinds[delegation.Failed] == 0 ||
		kinds[delegation.Aborted] == 0 || kinds[delegation.Limited] == 0) {
		t.Errorf("not every kind of outcome was seen: %v", kinds)
	}
}

// growTree lets a tree grow and be disturbed, closes it, and returns its ends.
func growTree(t *testing.T, seed uint64) []delegation.Ended {
	d := &dice{rng: rand.New(rand.NewPCG(seed, 1))}
	set, err := subagent.New(subagent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	opts := runtime.Options{
		Tools: append(set.Tools(), deafTool(time.Duration(1+d.roll(60))*time.Second), tool.New(tool.Definition{
			Name: "panic", Execute: func(context.Context, tool.Call) (tool.Result, error) { panic("at the tool") },
		})),
		Hooks: set.Hooks(), MaxToolBodies: 1 + d.roll(4),
		Delegation: runtime.Delegation{
			MaxDepth: 1 + d.roll(4), MaxChildren: 1 + d.roll(5), OutliveAbort: d.roll(3) == 0, OutliveDispose: d.roll(3) == 0,
			DropNotices: d.roll(3) == 0,
		},
	}
	f := newFamily(t, opts, d.mind)
	for range 20 {
		f.disturb(t, d)
		time.Sleep(time.Duration(d.roll(5000)) * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
	defer cancel()
	if err := f.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	synctest.Wait()
	if left := f.Agents(); len(left) > 0 {
		t.Errorf("%d agents are left", len(left))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !opts.Delegation.OutliveDispose {
		childFirst(t, f.ended)
	}
	if !opts.Delegation.DropNotices {
		f.toldOnce(t)
	}
	return append([]delegation.Ended(nil), f.ended...)
}

// childFirst checks that nobody ended for the last time before a child that it
// waited for.
func childFirst(t *testing.T, ended []delegation.Ended) {
	t.Helper()
	last, deaf := map[dsh.AgentID]int{}, map[dsh.AgentID]bool{}
	for n, e := range ended {
		last[e.Initiator.Agent] = n
		deaf[e.Initiator.Agent] = deaf[e.Initiator.Agent] || e.Outcome.Limit == delegation.LimitDeaf
	}
	for n, e := range ended {
		at, known := last[e.Initiator.Parent]
		if known && at < n && !deaf[e.Initiator.Agent] && !deaf[e.Initiator.Parent] {
			t.Errorf("%s ended before its child %s", e.Initiator.Parent, e.Initiator.Agent)
		}
	}
}

// toldOnce checks that parents were told once of each life of a background
// child that did anything.
func (f *family) toldOnce(t *testing.T) {
	t.Helper()
	told := map[dsh.SessionID]int{}
	for h := range f.store.List(context.Background()) {
		log, err := f.store.Open(context.Background(), h.ID)
		if err != nil {
			t.Fatal(err)
		}
		events, _ := log.Read(context.Background(), h.SeedLength, 0)
		_ = log.Close()
		for i := range events {
			splice, _ := events[i].Data.(dsh.InboxSpliced)
			for _, m := range splice.Inserted {
				if kind, sender := delegation.Sender(m); kind == delegation.SettledSource {
					told[sender]++
				}
			}
		}
	}
	lives, worked := map[dsh.SessionID]int{}, map[dsh.SessionID]int{}
	for _, e := range f.ended {
		if id := e.Initiator.Session; e.Background {
			lives[id]++
			if e.Outcome.Turns > 0 {
				worked[id]++
			}
		}
	}
	for id, n := range lives {
		if told[id] > n || told[id] < worked[id] {
			t.Errorf("%s lived %d times and worked %d times, its parent was told %d times", id, n, worked[id], told[id])
		}
	}
}

// disturb does something to some agent; what is refused is refused.
func (f *family) disturb(t *testing.T, d *dice) {
	t.Helper()
	agents := f.Agents()
	if len(agents) == 0 {
		return
	}
	a := agents[d.roll(len(agents))]
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	switch d.roll(9) {
	case 0:
		_ = a.Cancel(ctx, dsh.Cause{Kind: dsh.CauseUser}, d.roll(2) == 0)
	case 1:
		_ = f.top.InterruptChild(ctx, a.Session())
	case 2:
		_ = f.top.Message(ctx, a.Session(), dsh.UserText("more"), delegation.Gear{})
	case 3:
		if a != f.top {
			go func() { _ = a.Dispose(context.Background()) }()
		}
	case 4:
		if c, err := a.Spawn(ctx, runtime.ChildSpec{Label: "go", Timeout: time.Duration(d.roll(3)) * time.Second}); err == nil {
			go func() { _, _ = c.Run(context.Background(), "from outside") }()
		}
	case 5:
		_ = a.Steer(ctx, dsh.UserText("steer"))
	default:
		_ = f.top.Followup(ctx, dsh.UserText("go"))
	}
}
