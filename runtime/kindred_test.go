package runtime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/toolset/subagent"
)

// disk is a store that remembers what a crash could have left at any moment:
// of each log what was synced and any part of what was appended since.
type disk struct {
	*memory.Store
	mu      sync.Mutex
	headers map[dsh.SessionID]dsh.SessionHeader
	events  map[dsh.SessionID][]dsh.Event
	first   map[dsh.SessionID]int // length of the first append, which is stored as a whole
	now     moment
	moments []moment
}

// span is how much of a log a crash leaves: from synced to appended events.
type span struct{ synced, appended int }

type moment map[dsh.SessionID]span

// newDisk returns a disk that holds the first events of logs, all durable.
func newDisk(t *testing.T, from *disk, left map[dsh.SessionID]int) *disk {
	t.Helper()
	d := &disk{
		Store: memory.New(), headers: map[dsh.SessionID]dsh.SessionHeader{}, events: map[dsh.SessionID][]dsh.Event{},
		first: map[dsh.SessionID]int{}, now: moment{},
	}
	for id, n := range left {
		log, err := d.Create(t.Context(), from.headers[id])
		if err == nil {
			err = session.Extend(t.Context(), log, from.events[id][:n:n])
		}
		if err == nil {
			err = log.Sync(t.Context())
		}
		if err == nil {
			err = log.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		d.first[id] = from.first[id]
	}
	d.moments = nil
	return d
}

func (*disk) Volatile() bool { return false }

func (d *disk) Create(ctx context.Context, h dsh.SessionHeader) (session.Log, error) {
	log, err := d.Store.Create(ctx, h)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.headers[h.ID] = h
	return &diskLog{Log: log, disk: d}, err
}

func (d *disk) Open(ctx context.Context, id dsh.SessionID) (session.Log, error) {
	log, err := d.Store.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	return &diskLog{Log: log, disk: d}, nil
}

type diskLog struct {
	session.Log
	disk *disk
}

func (l *diskLog) Append(ctx context.Context, fence session.Fence, events []dsh.Event) error {
	return l.note(l.Log.Append(ctx, fence, events), func(s *span) {
		id := l.Header().ID
		l.disk.events[id] = slices.AppendSeq(l.disk.events[id], dsh.Expand(events))
		s.appended = len(l.disk.events[id])
		if l.disk.first[id] == 0 {
			l.disk.first[id] = s.appended
		}
	})
}

func (l *diskLog) Sync(ctx context.Context) error {
	return l.note(l.Log.Sync(ctx), func(s *span) { s.synced = s.appended })
}

func (l *diskLog) note(err error, change func(*span)) error {
	d := l.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		return err
	}
	s := d.now[l.Header().ID]
	change(&s)
	d.now[l.Header().ID] = s
	now := moment{}
	for id, s := range d.now {
		now[id] = s
	}
	d.moments = append(d.moments, now)
	return nil
}

// crashes returns what crashes at all moments could have left: everything,
// what was synced, one log behind or ahead of the others, and something between.
func (d *disk) crashes(rng *rand.Rand) []map[dsh.SessionID]int {
	var all []map[dsh.SessionID]int
	known := map[string]bool{}
	add := func(m moment, length func(id dsh.SessionID, s span) int) {
		left := map[dsh.SessionID]int{}
		for id, s := range m {
			if n := length(id, s); n >= d.first[id] && n > 0 {
				left[id] = n
			}
		}
		if key := fmt.Sprint(left); !known[key] {
			known[key] = true
			all = append(all, left)
		}
	}
	for _, m := range d.moments {
		least := func(_ dsh.SessionID, s span) int { return s.synced }
		most := func(_ dsh.SessionID, s span) int { return s.appended }
		add(m, least)
		add(m, most)
		for one := range m {
			for range 2 {
				add(m, func(id dsh.SessionID, s span) int {
					if id == one {
						return least(id, s)
					}
					return most(id, s)
				})
				least, most = most, least
			}
		}
		for range 3 {
			add(m, func(_ dsh.SessionID, s span) int { return s.synced + rng.IntN(s.appended-s.synced+1) })
		}
	}
	return all
}

// start starts a runtime on the disk.
func (d *disk) start(t *testing.T, b brain) *runtime.Runtime {
	t.Helper()
	set, err := subagent.New(subagent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.New(runtime.Options{
		Store: d, Providers: map[string]llm.Provider{"mock": b}, Tools: set.Tools(), Hooks: set.Hooks(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

var topSpec = runtime.Spec{ID: "top", Session: "top", Provider: "mock", Model: "m"}

func stop(t *testing.T, rt *runtime.Runtime) {
	t.Helper()
	if err := rt.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// grown is a disk on which an agent had a child in the foreground, and one in
// the background that had one itself and lived twice. The pace decides who
// settles while his parent works.
func grown(t *testing.T, pace time.Duration) *disk {
	d := newDisk(t, nil, nil)
	order := func(label string, background bool) script.Response {
		return script.Calls(call(dsh.CallID("call-"+label), "subagent",
			fmt.Sprintf(`{"description":%q,"prompt":%q,"run_in_background":%t}`, label, label, background)))
	}
	rt := d.start(t, func(_ dsh.Initiator, req *dsh.Request) script.Response {
		results := 0
		for _, m := range req.Messages {
			if _, ok := m.Source.(dsh.ToolSource); ok {
				results++
			}
		}
		switch task := dsh.TextOf(req.Messages[0].Content); {
		case task == "start" && results == 0:
			return order("job", true)
		case task == "start" && results == 1:
			return order("look", false)
		case task == "job" && results == 0:
			return append(script.Response{script.Delay{For: pace / 2}}, order("deep", true)...)
		case task == "look":
			return append(script.Response{script.Delay{For: 300 * time.Millisecond}}, script.Text("seen", 2)...)
		case task == "deep":
			return append(script.Response{script.Delay{For: pace}}, script.Text("dug", 2)...)
		}
		return script.Text("done", 2)
	})
	defer stop(t, rt)
	top, err := rt.Create(t.Context(), topSpec)
	if err != nil {
		t.Fatal(err)
	}
	if o, err := top.Run(t.Context(), "start"); err != nil || !o.OK() {
		t.Fatal(o, err)
	}
	time.Sleep(10 * time.Second)
	synctest.Wait()
	m := dsh.UserText("more")
	m.ID = "more"
	id := child(t, top, "job")
	if err := top.Message(t.Context(), id, m, delegation.Gear{}); err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	if durable := d.events[id][:d.now[id].synced]; !slices.ContainsFunc(durable, func(ev dsh.Event) bool {
		splice, ok := ev.Data.(dsh.InboxSpliced)
		return ok && len(splice.Inserted) > 0 && splice.Inserted[0].ID == "more"
	}) {
		t.Error("the message that was handed on is not durable")
	}
	d.mu.Unlock()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	return d
}

// child returns the session of the child with a label.
func child(t *testing.T, a *runtime.Agent, label string) dsh.SessionID {
	t.Helper()
	list, err := a.Children(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.Label == label {
			return e.ID
		}
	}
	return ""
}

// Whenever a process dies and whatever it leaves of its logs, the agent that is
// resumed finds all its descendants; every log is closed; whoever asked for a
// background child is told once how each last life ended; and nobody heard of
// what is lost. The same holds if the process that resumes it dies over it.
// DSH_ACTOR_SEED=n draws other crashes.
func TestCrashesOfATree(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("DSH_ACTOR_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	for _, pace := range []time.Duration{20 * time.Millisecond, 2 * time.Second} {
		t.Run(pace.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, uint64(pace)))
				d := grown(t, pace)
				kinds := map[delegation.OutcomeKind]int{}
				crashes := d.crashes(rng)
				if testing.Short() {
					crashes = some(rng, crashes, 30)
				}
				for n, left := range crashes {
					if left["top"] == 0 {
						continue
					}
					after := newDisk(t, d, left)
					after.resume(t, kinds, n%7 == 0)
					for _, again := range some(rng, after.crashes(rng), 1) {
						for id, n := range left { // older ones are in crashes
							again[id] = max(again[id], n)
						}
						newDisk(t, after, again).resume(t, kinds, false)
					}
					if t.Failed() {
						t.Fatalf("crash %d of %d left %v", n, len(crashes), left)
					}
				}
				t.Logf("%d crashes: %v", len(crashes), kinds)
				for _, k := range []delegation.OutcomeKind{delegation.Completed, delegation.Interrupted} {
					if kinds[k] == 0 {
						t.Errorf("no child was found %s", k)
					}
				}
			})
		})
	}
}

func some[T any](rng *rand.Rand, all []T, n int) []T {
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

// resume resumes the agent twice, with a turn after the first time, and checks
// what it finds. With more, a child is sent a message as well.
func (d *disk) resume(t *testing.T, kinds map[delegation.OutcomeKind]int, more bool) {
	t.Helper()
	d.known(t)
	var asked []*dsh.Message
	rt := d.start(t, func(i dsh.Initiator, req *dsh.Request) script.Response {
		if err := dsh.CheckRequest(req.Messages); err != nil {
			t.Error(err)
		}
		if i.Depth == 0 {
			asked = req.Messages
		}
		return script.Text("well", 1)
	})
	top, err := rt.Resume(t.Context(), "top", topSpec)
	if err != nil {
		t.Fatal(err)
	}
	d.check(t, top, kinds)
	pending, err := top.State(t.Context())
	if err != nil || pending.Status != hook.Idle {
		t.Errorf("resumed, it is %s, %v", pending.Status, err)
	}
	if o, err := top.Run(t.Context(), "go on"); err != nil || !o.OK() {
		t.Errorf("%+v, %v", o, err)
	}
	for _, m := range pending.Inbox.NextStep {
		if !slices.ContainsFunc(asked, func(a *dsh.Message) bool { return a.ID == m.ID }) {
			t.Errorf("the model never saw %s", m.ID)
		}
	}
	if id := child(t, top, "job"); more && id != "" {
		if err := top.Message(t.Context(), id, dsh.UserText("more"), delegation.Gear{}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		d.check(t, top, kinds)
	}
	stop(t, rt)
	rt = d.start(t, answers(nil))
	if top, err = rt.Resume(t.Context(), "top", topSpec); err != nil {
		t.Fatal(err)
	}
	d.check(t, top, map[delegation.OutcomeKind]int{})
	stop(t, rt)
}

// known checks that the logs have what is said of them: a child that works in
// the background has its task, and one whose answer is known has given it.
func (d *disk) known(t *testing.T) {
	t.Helper()
	for parent, events := range d.events {
		for i := range events {
			r, ok := events[i].Data.(dsh.ToolFinished)
			if !ok || r.Error != nil {
				continue
			}
			text := dsh.TextOf(r.Message.Content[0].(dsh.ToolResult).Content)
			name, begun := strings.CutSuffix(strings.TrimPrefix(text, "Sub-agent "), " works in the background. You will be told when it has settled; do not wait for it or ask.")
			if begun {
				id := dsh.SessionID(name)
				if life, err := delegation.LastLife(d.events[id], 0, delegation.Continuable); err != nil || !life.Begun {
					t.Errorf("%s believes that %s works: %d events, %v", parent, id, len(d.events[id]), err)
				}
			} else if !slices.ContainsFunc(d.below(parent), func(id dsh.SessionID) bool {
				life, err := delegation.LastLife(d.events[id], 0, delegation.OneShot)
				return err == nil && life.Outcome.Text() == text && len(dsh.Closers(d.events[id])) == 0
			}) {
				t.Errorf("%s knows that a child said %q, and none did", parent, text)
			}
		}
	}
}

func (d *disk) below(parent dsh.SessionID) (ids []dsh.SessionID) {
	for id, h := range d.headers {
		if h.ParentSession == parent {
			ids = append(ids, id)
		}
	}
	return ids
}

// check checks what a resumed agent finds.
func (d *disk) check(t *testing.T, top *runtime.Agent, kinds map[delegation.OutcomeKind]int) {
	t.Helper()
	list, err := top.Children(t.Context(), true)
	if err != nil || len(list) != len(d.headers)-1 {
		t.Errorf("%d children of %d, %v", len(list), len(d.headers)-1, err)
	}
	for _, e := range list {
		log, err := d.Store.Open(t.Context(), e.ID)
		if err != nil {
			t.Fatalf("%s: %v", e.ID, err)
		}
		events, _ := log.Read(t.Context(), 0, 0)
		_ = log.Close()
		if n := len(dsh.Closers(events)); n > 0 {
			t.Errorf("%s needs %d closers", e.ID, n)
		}
		life, err := delegation.LastLife(events, 0, e.Mode)
		if err != nil || e.Problem != "" || life.Begun != (e.Outcome != nil) {
			t.Errorf("%s: %+v, %v", e.ID, e, err)
			continue
		}
		if !life.Begun {
			continue
		}
		kinds[e.Outcome.Kind]++
		if (e.Outcome.Kind == delegation.Interrupted) != (e.Status == delegation.CutShort) {
			t.Errorf("%s is %s and %s", e.ID, e.Status, e.Outcome)
		}
		told := d.told(t, top, e)
		if want := delegation.NoticeID(e.ID, life.At); e.Mode == delegation.Continuable && told[want] != 1 {
			t.Errorf("%s, which %s, was told of %d times as %s: %v", e.ID, e.Outcome, told[want], want, told)
		}
		for id, n := range told {
			if n != 1 || e.Mode != delegation.Continuable {
				t.Errorf("%s is told of %d times by %s", e.ID, n, id)
			}
		}
	}
}

// told counts the notices of a child in its parent's log.
func (d *disk) told(t *testing.T, top *runtime.Agent, e delegation.Entry) map[dsh.MessageID]int {
	t.Helper()
	var events []dsh.Event
	if e.Parent == top.Session() {
		for ev, err := range top.Events(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, ev)
		}
	} else {
		log, err := d.Store.Open(t.Context(), e.Parent)
		if err != nil {
			t.Fatal(err)
		}
		events, _ = log.Read(t.Context(), 0, 0)
		_ = log.Close()
	}
	told := map[dsh.MessageID]int{}
	for i := range events {
		splice, _ := events[i].Data.(dsh.InboxSpliced)
		for _, m := range splice.Inserted {
			if kind, sender := delegation.Sender(m); kind == delegation.SettledSource && sender == e.ID {
				told[m.ID]++
			}
		}
	}
	return told
}
