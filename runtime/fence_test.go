package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/actortest/loglaw"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

// database is a store that machines share and that has no lock: whoever opens a
// log is its owner, and the epoch tells who was before.
type database struct {
	mu   sync.Mutex
	rows map[dsh.SessionID]*row
}

type row struct {
	header dsh.SessionHeader
	epoch  session.Epoch
	next   dsh.Seq
	events []dsh.Event
}

var _ session.Store = (*database)(nil)

func (*database) Volatile() bool { return false }

func (d *database) Create(_ context.Context, h dsh.SessionHeader) (session.Log, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rows[h.ID] != nil {
		return nil, session.ErrExists
	}
	if d.rows == nil {
		d.rows = map[dsh.SessionID]*row{}
	}
	d.rows[h.ID] = &row{header: h, epoch: 1}
	return &connection{d, d.rows[h.ID], 1}, nil
}

func (d *database) Open(_ context.Context, id dsh.SessionID) (session.Log, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rows[id]
	if r == nil {
		return nil, session.ErrNotFound
	}
	r.epoch++
	return &connection{d, r, r.epoch}, nil
}

func (d *database) List(context.Context) iter.Seq2[dsh.SessionHeader, error] {
	d.mu.Lock()
	defer d.mu.Unlock()
	var headers []dsh.SessionHeader
	for _, r := range d.rows {
		headers = append(headers, r.header)
	}
	return func(yield func(dsh.SessionHeader, error) bool) {
		for _, h := range headers {
			if !yield(h, nil) {
				return
			}
		}
	}
}

// connection is the log as one owner has it.
type connection struct {
	d     *database
	row   *row
	epoch session.Epoch
}

func (c *connection) Header() dsh.SessionHeader  { return c.row.header }
func (c *connection) Epoch() session.Epoch       { return c.epoch }
func (c *connection) Sync(context.Context) error { return nil }

func (c *connection) Close() error {
	time.Sleep(50 * time.Millisecond)
	return nil
}

func (c *connection) Append(_ context.Context, fence session.Fence, events []dsh.Event) error {
	time.Sleep(time.Millisecond)
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	switch {
	case len(events) == 0:
		return nil
	case fence.Epoch != c.row.epoch:
		return fmt.Errorf("database: %w", session.ErrStale)
	case fence.Next != c.row.next:
		return fmt.Errorf("database: %w", session.ErrConflict)
	}
	c.row.events = append(c.row.events, events...)
	c.row.next = length(c.row.events)
	return nil
}

func (c *connection) Read(_ context.Context, from dsh.Seq, _ int) ([]dsh.Event, error) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	at := slices.IndexFunc(c.row.events, func(ev dsh.Event) bool { return ev.Last() >= from })
	if at < 0 {
		return nil, nil
	}
	return slices.Clone(c.row.events[at:]), nil
}

func length(events []dsh.Event) dsh.Seq {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].Last() + 1
}

// machine is one of those that share the database.
type machine struct {
	*runtime.Runtime
	name string

	mu       sync.Mutex
	requests int
	bodies   []dsh.CallID
}

// newMachine starts a runtime whose model answers with calls of a slow tool, and
// with words to their results.
func newMachine(t *testing.T, d *database, name string) *machine {
	t.Helper()
	m := &machine{name: name}
	model := script.Func(script.Options{}, func(req *dsh.Request) script.Response {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.requests++
		if err := dsh.CheckRequest(req.Messages); err != nil {
			t.Error(err)
		}
		wait := script.Response{script.Delay{For: 500 * time.Millisecond}}
		if last := req.Messages[len(req.Messages)-1]; dsh.TextOf(last.Content) != "work" {
			return append(wait, script.Text("by "+name, 1)...)
		}
		var calls []dsh.ToolCall
		for i := range 3 {
			calls = append(calls, call(dsh.CallID(fmt.Sprintf("%s-%d-%d", name, m.requests, i)), "touch", "{}"))
		}
		return append(wait, script.Calls(calls...)...)
	})
	touch := tool.New(tool.Definition{Name: "touch", Description: "Touches.", Mode: tool.Parallel,
		Execute: func(ctx context.Context, c tool.Call) (tool.Result, error) {
			m.mu.Lock()
			m.bodies = append(m.bodies, c.ID)
			m.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			return tool.Result{}, ctx.Err()
		}})
	var err error
	m.Runtime, err = runtime.New(runtime.Options{
		Store: d, Providers: map[string]llm.Provider{"mock": model}, Tools: []tool.Tool{touch}, MaxToolBodies: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) did() (requests, bodies int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests, len(m.bodies)
}

func (m *machine) resume(t *testing.T) *runtime.Agent {
	t.Helper()
	a, err := m.Resume(t.Context(), "s", runtime.Spec{ID: "a", Provider: "mock", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// An agent whose session another machine has taken over says so, does nothing
// more to the outside, keeps nothing, and comes back behind what the other did.
func TestAnAgentThatLostItsSession(t *testing.T) {
	for _, at := range []struct {
		name           string
		after          time.Duration // of the sleep of the machine into its turn
		requests, done int           // of that turn, and no more
	}{
		{"idle", 0, 0, 0},
		{"streaming", 100 * time.Millisecond, 1, 0},
		{"in a tool", 700 * time.Millisecond, 1, 2}, // the third is queued still
		{"in the last tool", 2700 * time.Millisecond, 1, 3},
	} {
		t.Run(at.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := &database{}
				one, two := newMachine(t, d, "one"), newMachine(t, d, "two")
				defer stop(t, one.Runtime)
				a, err := one.Create(t.Context(), runtime.Spec{ID: "a", Session: "s", Provider: "mock", Model: "m"})
				if err != nil {
					t.Fatal(err)
				}
				var followed error
				var reader sync.WaitGroup
				reader.Go(func() {
					for _, err := range a.Follow(context.Background(), 0) {
						followed = err
					}
				})
				var work sync.WaitGroup
				var outcome runtime.Outcome
				run := func() { outcome, err = a.Run(t.Context(), "work") }
				if at.after > 0 {
					work.Go(run)
					time.Sleep(at.after)
				}
				b := two.resume(t)
				if at.after == 0 {
					run()
				}
				work.Wait()
				reader.Wait()
				if outcome.OK() || !errors.Is(err, runtime.ErrStale) || errors.Is(err, runtime.ErrNotDurable) {
					t.Errorf("Run = %+v, %v", outcome, err)
				}
				if !errors.Is(followed, runtime.ErrStale) {
					t.Errorf("the reader is told %v", followed)
				}
				time.Sleep(time.Minute)
				if requests, bodies := one.did(); requests != at.requests || bodies != at.done {
					t.Errorf("%d requests and %d bodies, want %+v", requests, bodies, at)
				}
				if o, err := b.Run(t.Context(), "hello"); err != nil || o.Text() != "by two" {
					t.Errorf("the other machine: %+v, %v", o, err)
				}
				stop(t, two.Runtime)
				if o, err := a.Run(t.Context(), "hello"); err != nil || o.Text() != "by one" {
					t.Errorf("the first machine again: %+v, %v", o, err)
				}
				if got := fmt.Sprint(types(t, a)); countOf(got, "turn/end completed") != 2 {
					t.Errorf("log %s", got)
				}
				if err := loglaw.Check(d.rows["s"].events); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func countOf(s, part string) (n int) {
	for i := range len(s) - len(part) + 1 {
		if s[i:i+len(part)] == part {
			n++
		}
	}
	return n
}

// However often machines take a session from each other: the log obeys the laws,
// what was acknowledged is in it once, and a body ran at most once and only for
// a call that the log has.
func TestMachinesTakeASessionFromEachOther(t *testing.T) {
	taken := 0
	seeds(t, 150, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 7))
		d := &database{}
		machines := []*machine{newMachine(t, d, "one"), newMachine(t, d, "two")}
		first, err := machines[0].Create(t.Context(), runtime.Spec{ID: "a", Session: "s", Provider: "mock", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		agents := []*runtime.Agent{first, machines[1].resume(t)}
		var mu sync.Mutex
		accepted := map[dsh.MessageID]bool{}
		var work sync.WaitGroup
		for n := range 16 {
			time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
			a, kind := agents[rng.IntN(2)], rng.IntN(4)
			m := *dsh.UserText([]string{"work", "hello"}[rng.IntN(2)])
			m.ID = dsh.MessageID(fmt.Sprint("message-", n))
			work.Go(func() {
				var err error
				switch kind {
				case 0:
					err = a.Steer(t.Context(), &m)
				case 1:
					err = a.Passivate(t.Context())
				default:
					_, err = a.RunMessage(t.Context(), &m)
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					accepted[m.ID] = kind != 1
				case session.Lost(err):
					taken++
				case !errors.Is(err, runtime.ErrBusy):
					t.Errorf("%s: %v", m.ID, err)
				}
			})
		}
		work.Wait()
		for _, m := range machines {
			if err := m.Close(context.Background()); err != nil && !session.Lost(err) {
				t.Error(err)
			}
		}
		synctest.Wait()
		events := d.rows["s"].events
		if err := loglaw.Check(append(events, dsh.Closers(events)...)); err != nil {
			t.Error(err)
		}
		in, calls := tallyLog(events)
		for id, counts := range accepted {
			if counts && in[id] != 1 {
				t.Errorf("%s was acknowledged and is in the log %d times", id, in[id])
			}
		}
		ran := map[dsh.CallID]int{}
		for _, id := range slices.Concat(machines[0].bodies, machines[1].bodies) {
			if ran[id]++; ran[id] > 1 || calls[id] != 1 {
				t.Errorf("%s ran %d times; the log has it %d times", id, ran[id], calls[id])
			}
		}
	})
	if taken == 0 {
		t.Error("no session was taken")
	}
	t.Logf("%d calls were told that the session was taken", taken)
}

// tallyLog counts the messages that inboxes took, and the calls that started.
func tallyLog(events []dsh.Event) (messages map[dsh.MessageID]int, calls map[dsh.CallID]int) {
	messages, calls = map[dsh.MessageID]int{}, map[dsh.CallID]int{}
	for ev := range dsh.Expand(events) {
		switch d := ev.Data.(type) {
		case dsh.InboxSpliced:
			for _, m := range d.Inserted {
				messages[m.ID]++
			}
		case dsh.ToolStarted:
			calls[d.CallID]++
		}
	}
	return messages, calls
}

// A session that breaks tells whoever has its agent's place by then.
func TestASessionBreaksUnderASuccessor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := &database{}
		one, two := newMachine(t, d, "one"), newMachine(t, d, "two")
		defer stop(t, one.Runtime)
		a, err := one.Create(t.Context(), runtime.Spec{
			ID: "a", Session: "s", Provider: "mock", Model: "m", Observer: &breaker{at: dsh.TypeStepEnd},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Run(t.Context(), "hello"); err == nil {
			t.Error("the agent did not break")
		}
		if o, err := a.Run(t.Context(), "hello"); err != nil || !o.OK() {
			t.Errorf("its successor: %+v, %v", o, err)
		}
		two.resume(t)
		stop(t, two.Runtime)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := a.Run(ctx, "hello"); !errors.Is(err, runtime.ErrStale) {
			t.Errorf("Run = %v", err)
		}
		if o, err := a.Run(ctx, "hello"); err != nil || !o.OK() {
			t.Errorf("the next: %+v, %v", o, err)
		}
	})
}

// A background child whose parent lost its session to a process that keeps it
// comes to its end all the same; whoever resumes the parent finds the notice.
func TestAChildSettlesWhenItsParentIsElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		disk := newMoody(&dice{rng: rand.New(rand.NewPCG(1, 1))})
		rt, err := runtime.New(runtime.Options{Store: disk, Providers: map[string]llm.Provider{
			"mock": script.Repeat(script.Options{}, append(script.Response{script.Delay{For: time.Minute}}, script.Text("yes", 1)...)),
		}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := rt.Create(t.Context(), runtime.Spec{ID: "a", Session: "s", Provider: "mock", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		c, err := a.Spawn(t.Context(), runtime.ChildSpec{Label: "job", Background: true})
		if err == nil {
			err = c.Begin(t.Context(), dsh.UserText("go"))
		}
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		disk.lose()
		if err := a.Inject(t.Context(), dsh.UserText("lost")); !session.Lost(err) {
			t.Errorf("Inject = %v", err)
		}
		synctest.Wait()
		log, err := disk.Open(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if o, err := c.Wait(ctx); err != nil || o.Kind != delegation.Completed {
			t.Errorf("the child: %+v, %v", o, err)
		}
		if err := rt.Close(ctx); err != nil && !session.Lost(err) {
			t.Error(err)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		again, err := runtime.New(runtime.Options{Store: disk})
		if err != nil {
			t.Fatal(err)
		}
		defer stop(t, again)
		a, err = again.Resume(t.Context(), "s", runtime.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := a.State(t.Context())
		if err != nil || len(s.Inbox.NextStep) != 1 {
			t.Fatalf("%+v, %v", s.Inbox, err)
		}
		if kind, from := delegation.Sender(s.Inbox.NextStep[0]); kind != delegation.SettledSource || from != c.Session() {
			t.Errorf("a message by %v %v", kind, from)
		}
	})
}
