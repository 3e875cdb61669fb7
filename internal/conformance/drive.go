package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// Bounds of a run. Time is the bubble's.
const (
	patience     = time.Minute // of whoever waits for an agent
	mostRequests = 1_000       // behind them streams hang: the run is going round in circles
)

// Drive plays a scenario against the runtime and returns its trace. It must be
// called inside a testing/synctest bubble, and leaves nothing running there.
// NewStore is called once for every world. An error is about the run itself:
// what an agent does wrong is in the trace.
func Drive(s *Scenario, newStore func() session.Store) (map[string]any, error) {
	if missing := s.unsupported(); len(missing) > 0 {
		return nil, fmt.Errorf("not supported yet: %s", strings.Join(missing, ", "))
	}
	core, log := observer.New(zapcore.ErrorLevel)
	d := &driver{
		Scenario: s, newStore: newStore, r: new(Recording), gates: new(script.Gates), over: make(chan struct{}), logger: zap.New(core),
		replies: s.Model, triggers: make(map[string][]*trigger),
		agents: make(map[string]*subject), labels: make(map[string]*dsh.Message),
		ofChild: maps.Clone(s.Children), aborts: make(map[string]func()),
	}
	for _, point := range hookPoints {
		d.triggers[point] = s.triggers(point)
	}
	defer d.end()
	d.play()
	trace, err := d.trace()
	for _, entry := range log.All() {
		err = errors.Join(err, fmt.Errorf("%s: %v", entry.Message, entry.ContextMap()["error"]))
	}
	d.problems = append(d.problems, d.r.replayed(s.Name)...)
	return trace, errors.Join(append(d.problems, err)...)
}

// A driver plays one scenario.
type driver struct {
	*Scenario
	newStore func() session.Store
	r        *Recording
	gates    *script.Gates
	logger   *zap.Logger
	triggers map[string][]*trigger // by point
	over     chan struct{}         // closed when nothing counts any more
	running  sync.WaitGroup        // disposals and maintenance that nobody waits for

	// Only the driver's own goroutine uses these.
	worlds   []*world
	agents   map[string]*subject // by key
	aborts   map[string]func()   // by the label of what they abort
	napping  atomic.Int32        // goroutines that wait for all others to rest
	current  *subject            // the most recent one
	problems []error

	mu      sync.Mutex // guards the rest
	replies []Reply    // not asked for yet
	ofChild map[string][]Reply
	labels  map[string]*dsh.Message
}

// play runs the script, with the state behind each entry as a checkpoint.
func (d *driver) play() {
	if len(d.Script) == 0 || d.Script[0].Resume == nil || d.Script[0].Resume.Log == nil {
		if err := d.startup("a1"); err != nil {
			d.problems = append(d.problems, err)
			return
		}
	}
	for i := range d.Script {
		a := &d.Script[i]
		d.step(fmt.Sprintf("script[%d]", i), a)
		d.rest()
		if a.ThenIdle {
			d.waitIdle(d.target(a))
			d.rest()
		}
		if d.current != nil {
			d.r.Checkpoint(i, d.current.record)
		}
	}
}

// step performs one entry of the script.
func (d *driver) step(where string, a *Action) {
	s := d.target(a)
	if s == nil && a.Resume == nil {
		d.r.Failed(where, a, fmt.Errorf("no agent %q", a.Agent))
		return
	}
	var err error
	switch {
	case a.Batch != nil:
		d.batch(where, s, a)
	case a.Resume != nil:
		err = d.resume(a)
	case a.Fork != nil:
		err = d.fork(a)
	case a.Maintenance != nil:
		d.maintain(where, s, a)
	case a.Dispose:
		d.dispose(a, s)
	case a.DisposeLoop:
		d.dispose(a, s.world.all()...)
	case a.WhenIdle:
		d.waitIdle(s)
	case a.Wait != nil:
		d.await(s, a.Wait)
	case a.Settle:
	case d.delegation(s, a):
	default:
		d.act(where, s, a)
	}
	if err != nil {
		d.r.Failed(where, a, err)
	}
}

// target returns the agent that an action addresses, or nil.
func (d *driver) target(a *Action) *subject {
	if a.Agent != "" {
		if s := d.agents[a.Agent]; s != nil {
			return s
		}
		return d.current.world.find(a.Agent)
	}
	return d.current
}

// batch performs actions with nothing in between: what agents are told goes
// out as one batch of commands. The rest of the world changes before it, and
// gates open behind it, since nobody can notice within a burst.
func (d *driver) batch(where string, s *subject, a *Action) {
	var burst []order
	var behind []func()
	send := func() {
		if len(burst) > 0 {
			d.send(where, s, burst)
		}
		burst = nil
	}
	for i := range a.Batch {
		b := &a.Batch[i]
		if t := d.target(b); b.Agent != "" && t != nil && t != s {
			send()
			s = t
		}
		switch {
		case b.Release != nil:
			behind = append(behind, func() { d.gates.Open(b.Release...) })
		case b.Dispose:
			burst = append(burst, order{b, tell(disposing())})
			behind = append(behind, func() { d.dispose(b, s) })
		case d.environment(where, s, b):
		default:
			c, ok, err := s.command(b)
			switch {
			case err != nil:
				d.r.Failed(where, b, err)
			case ok:
				burst = append(burst, order{b, c})
			default:
				send()
				d.step(where, b)
			}
		}
	}
	send()
	for _, do := range behind {
		do()
	}
}

// maintain starts a maintenance task and returns when it has begun or was
// refused.
func (d *driver) maintain(where string, s *subject, a *Action) {
	begun := make(chan struct{})
	refused := make(chan struct{})
	d.running.Go(func() {
		began := false
		err := s.api().Maintain(context.Background(), func(ctx context.Context) error {
			began = true
			finish := d.r.Begun("maintenance", a)
			close(begun)
			err := d.task(ctx, s, a.Maintenance)
			finish("done", err)
			return err
		})
		if !began {
			d.r.Failed(where, a, err)
			close(refused)
		}
	})
	select {
	case <-begun:
	case <-refused:
	}
}

// task is what maintenance does.
func (d *driver) task(ctx context.Context, s *subject, m *Maintenance) error {
	for i := range m.Do {
		d.act("hook", s, &m.Do[i])
	}
	if m.OnAbort == "ignore" {
		ctx = context.WithoutCancel(ctx)
	}
	if m.Gate != "" && !d.gates.Wait(ctx, m.Gate) {
		return errors.New("maintenance aborted")
	}
	s.hold()
	if m.Throw != nil {
		return errors.New(*m.Throw)
	}
	return nil
}

// dispose disposes of agents without waiting for it.
func (d *driver) dispose(a *Action, agents ...*subject) {
	finish := d.r.Begun("dispose", a)
	errs := make(chan error, len(agents))
	for _, s := range agents {
		go func() { errs <- s.api().Dispose(context.Background()) }()
	}
	d.running.Go(func() {
		var err error
		for range agents {
			err = errors.Join(err, <-errs)
		}
		finish("disposed", err)
	})
}

func (d *driver) waitIdle(s *subject) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.api().WaitIdle(ctx); err != nil {
		d.problems = append(d.problems, fmt.Errorf("waiting for %s to be idle: %w", s.key, err))
	}
}

// await lets time pass until what is waited for is there.
func (d *driver) await(s *subject, w *WaitFor) {
	there := func() bool {
		switch {
		case w.Event != "":
			n := 0
			for _, ev := range s.record.Events() {
				if ev.Type() == w.Event {
					n++
				}
			}
			return n >= max(w.Nth, 1)
		case w.Status != "":
			return string(s.record.Status()) == w.Status
		}
		return d.r.Requests() >= w.Requests
	}
	for range int(patience / time.Millisecond) {
		d.rest()
		if there() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	d.problems = append(d.problems, fmt.Errorf("what %+v waits for never came", *w))
}

// trace notes the state at the end and returns the trace.
func (d *driver) trace() (map[string]any, error) {
	var errs []error
	for _, w := range d.worlds {
		for _, s := range w.all() {
			errs = append(errs, s.check())
			s.snapshot()
		}
	}
	d.mu.Lock()
	d.r.Left(len(d.replies))
	for key := range d.Children {
		d.r.LeftOf(key, len(d.ofChild[key]))
	}
	d.mu.Unlock()
	trace, err := d.r.Trace(d.Scenario)
	return trace, errors.Join(append(errs, err)...)
}

// end lets go of everything and closes the worlds.
func (d *driver) end() {
	close(d.over)
	d.gates.OpenAll()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, w := range d.worlds {
		if err := w.Close(ctx); err != nil {
			return // The bubble's end says what is left.
		}
	}
	d.running.Wait()
}

// ended reports whether nothing counts any more.
func (d *driver) ended() bool {
	select {
	case <-d.over:
		return true
	default:
		return false
	}
}

// reply takes the next scripted response: of the child's own list, if it has
// one, else of the one that all share.
func (d *driver) reply(s *subject) (r Reply, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if own, listed := d.ofChild[s.name]; listed {
		if len(own) == 0 {
			return Reply{}, false
		}
		r, d.ofChild[s.name] = own[0], own[1:]
		return r, true
	}
	if len(d.replies) == 0 {
		return Reply{}, false
	}
	r, d.replies = d.replies[0], d.replies[1:]
	return r, true
}

func (d *driver) label(name string, m *dsh.Message) {
	if name == "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.labels[name] = m
}

func (d *driver) labelled(name string) (*dsh.Message, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.labels[name]; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("no message is labelled %q", name)
}

// unsupported names what of a scenario the driver cannot play.
func (s *Scenario) unsupported() []string {
	var missing []string
	need := func(name string, used bool) {
		if used && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	options := func(o Options) {
		need("options.subagents.jobs", o.Subagents != nil && o.Subagents.jobs())
		need("options.compaction", o.Compaction != nil)
		need("options.pruner", o.Pruner != nil)
	}
	need("summaries", s.Summaries != nil)
	options(s.Options)
	actions := func(list []Action) {
		for i := range list {
			list[i].walk(func(a *Action) {
				need(a.Verb(), a.later())
				if a.Resume != nil {
					options(a.Resume.Options)
				}
			})
		}
	}
	pieces := func(list []Piece) {
		for _, p := range list {
			actions(p.Do)
		}
	}
	actions(s.Script)
	for _, h := range s.Hooks {
		actions(h.Actions)
	}
	for _, r := range s.Model {
		pieces(r.Chunks)
		pieces(r.After)
		pieces(r.HangAfter)
	}
	for _, t := range s.Tools {
		for _, step := range t.Do {
			actions(step.Do)
		}
		for _, steps := range t.Calls {
			for _, step := range steps {
				actions(step.Do)
			}
		}
	}
	return missing
}

// later reports whether the action is about what cannot be played yet.
func (a *Action) later() bool {
	return a.CompactNow != "" || a.CompactRegion != nil ||
		a.PruneSession != nil || a.Measure != ""
}

// moments returns the scripted hooks that act at this moment.
func (d *driver) moments(point string, m moment) []*trigger {
	if d.ended() {
		return nil
	}
	var fire []*trigger
	for _, t := range d.triggers[point] {
		if t.pull(m) {
			fire = append(fire, t)
		}
	}
	return fire
}

// placed returns the moment of an agent at a position.
func (s *subject) placed(pos dsh.Pos) moment {
	return moment{agent: s.key, turn: pos.Turn, step: pos.Step}
}

// calling returns the moment of a tool call.
func (s *subject) calling(c hook.Call) moment {
	m := s.placed(c.Pos)
	m.callID, m.tool = string(c.ID), c.Tool
	return m
}
