package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// left is a log as a process left it.
type left struct {
	id, parent dsh.SessionID
	depth      int
	facts      []dsh.Fact
}

// leave puts logs into the family's store.
func (f *family) leave(t *testing.T, logs ...left) {
	t.Helper()
	for i, l := range logs {
		h := dsh.SessionHeader{Version: dsh.FormatVersion, ID: l.id, CreatedAt: int64(i + 1), DelegationDepth: l.depth}
		if l.parent != "" {
			h.ParentSession, h.Origin = l.parent, "subagent"
		}
		events := make([]dsh.Event, len(l.facts))
		cited := dsh.Cite()
		for i, fact := range l.facts {
			events[i] = dsh.Event{Seq: dsh.Seq(i), Time: int64(i), Data: fact}
			switch fact.(type) {
			case dsh.AssistantChunk:
				cited = cited.With(dsh.Seq(i), dsh.Seq(i))
			case dsh.AssistantMessage:
				events[i].Surface, events[i].Sources = dsh.Append, cited
			case dsh.UserMessage:
				events[i].Surface = dsh.Append
			default:
			}
		}
		log, err := f.store.Create(t.Context(), h)
		if err == nil {
			err = errors.Join(session.Extend(t.Context(), log, events), log.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Facts of a child's log.
func described(mode delegation.Mode, label string) dsh.Fact {
	return delegation.Descriptor{Mode: mode, Transport: delegation.BySpawn, Label: label, Provider: "mock", Model: "m"}.Fact()
}

func taskOf(id dsh.MessageID) *dsh.Message {
	return &dsh.Message{ID: id, Role: dsh.RoleUser, Source: dsh.UserSource{}, Content: []dsh.Block{dsh.Text{Text: "please"}}}
}

// halfway is a child that was cut short when it had said something.
func halfway(mode delegation.Mode, label, words string) []dsh.Fact {
	m := taskOf("task-" + dsh.MessageID(label))
	return []dsh.Fact{
		described(mode, label), dsh.EndSeed{},
		dsh.InboxSpliced{Target: dsh.NextTurn, Inserted: []*dsh.Message{m}},
		dsh.TurnStart{Turn: 1}, dsh.InboxSpliced{Target: dsh.NextTurn, Removed: 1},
		dsh.StepStart{Turn: 1, Step: 1}, dsh.UserMessage{Message: m},
		dsh.RequestHeader{Reason: dsh.HeaderInitial, Header: &dsh.Header{Config: dsh.CallConfig{Provider: "mock", Model: "m"}}},
		dsh.RequestContext{Provider: "mock", Model: "m"},
		dsh.AssistantChunk{Turn: 1, Step: 1, Chunk: dsh.TextDelta{Text: words}},
		dsh.AssistantChunk{Turn: 1, Step: 1, Chunk: dsh.Usage{InputTokens: 7}},
		dsh.AssistantChunk{Turn: 1, Step: 1, Chunk: dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}}},
		dsh.AssistantMessage{Turn: 1, Step: 1, Usage: &dsh.Usage{InputTokens: 7}, Message: &dsh.Message{
			ID: "said-" + dsh.MessageID(label), Role: dsh.RoleAssistant, Content: []dsh.Block{dsh.Text{Text: words}},
			Source: dsh.ModelSource{Provider: "mock", Model: "m"},
		}},
	}
}

func finished(mode delegation.Mode, label, words string) []dsh.Fact {
	return append(halfway(mode, label, words), dsh.StepEnd{Turn: 1, Step: 1},
		dsh.TurnEnd{Turn: 1, Reason: dsh.Ending{Kind: dsh.EndCompleted}})
}

func (f *family) resume(t *testing.T, id dsh.SessionID) *runtime.Agent {
	t.Helper()
	a, err := f.Resume(t.Context(), id, runtime.Spec{ID: dsh.AgentID(id), Provider: "mock", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// pending returns what an agent finds in its inbox for its next step.
func pending(t *testing.T, a *runtime.Agent) (texts []string) {
	t.Helper()
	s, err := a.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Inbox.NextTurn) > 0 {
		t.Errorf("%d messages wait for a turn", len(s.Inbox.NextTurn))
	}
	for _, m := range s.Inbox.NextStep {
		texts = append(texts, dsh.TextOf(m.Content))
	}
	return texts
}

// closers counts what is missing at the end of a stored log.
func (f *family) closers(t *testing.T, id dsh.SessionID) int {
	t.Helper()
	return len(dsh.Closers(f.stored(t, id)))
}

func (f *family) stored(t *testing.T, id dsh.SessionID) []dsh.Event {
	t.Helper()
	log, err := f.store.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	events, err := log.Read(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestResumeFindsChildren(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFamily(t, runtime.Options{}, answers(script.Text("on it", 1)))
		f.leave(t,
			left{"p", "", 0, nil},
			left{"asked", "p", 1, finished(delegation.OneShot, "asked", "found it")},
			left{"cut", "p", 1, halfway(delegation.OneShot, "cut", "so far")},
			left{"ready", "p", 1, finished(delegation.Continuable, "ready", "all done")},
			left{"works", "p", 1, halfway(delegation.Continuable, "works", "in the middle")},
			left{"idle", "p", 1, []dsh.Fact{described(delegation.Continuable, "idle"), dsh.EndSeed{}}},
			left{"unborn", "p", 1, nil},
		)
		p := f.resume(t, "p")
		told := pending(t, p)
		if len(told) != 2 || !strings.Contains(told[0], "ready (ready) has settled: it completed") || !strings.Contains(told[0], "all done") ||
			!strings.Contains(told[1], "works (works) has settled: it was interrupted") || !strings.Contains(told[1], "in the middle") {
			t.Errorf("told %q", told)
		}
		list, err := p.Children(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range list {
			line := fmt.Sprintf("%s %s %s%s", e.ID, e.Mode, e.Status, e.Problem)
			if e.Outcome != nil {
				line += fmt.Sprintf(" %s %q %d", e.Outcome.Kind, e.Outcome.Text(), e.Outcome.Usage.InputTokens)
			}
			got = append(got, line)
		}
		want := []string{
			`asked one-shot ready completed "found it" 7`,
			`cut one-shot interrupted interrupted "so far" 7`,
			`ready continuable ready completed "all done" 7`,
			`works continuable interrupted interrupted "in the middle" 7`,
			`idle continuable ready`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("children\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, e := range list {
			if n := f.closers(t, e.ID); n > 0 {
				t.Errorf("%s lacks %d closers", e.ID, n)
			}
		}
		// A message lets it go on.
		if err := p.Message(t.Context(), "works", dsh.UserText("go on"), delegation.Gear{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s, err := p.State(t.Context())
		if err != nil || s.LastTurn != 1 || len(s.Inbox.NextStep) != 0 {
			t.Errorf("%d turns, %d messages pending, %v", s.LastTurn, len(s.Inbox.NextStep), err)
		}
		if n := len(s.Messages); n != 4 { // three notices and an answer
			t.Errorf("%d messages", n)
		}
	})
}

// What a child is to hear of its own children is in its log before its parent
// hears of it.
func TestResumeCatchesUpDeep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFamily(t, runtime.Options{}, answers(script.Text("ok", 1)))
		f.leave(t,
			left{"p", "", 0, nil},
			left{"kid", "p", 1, finished(delegation.Continuable, "kid", "waiting")},
			left{"deep", "kid", 2, halfway(delegation.Continuable, "deep", "half")},
		)
		told := pending(t, f.resume(t, "p"))
		if len(told) != 1 || !strings.Contains(told[0], "kid (kid) has settled: it was interrupted") {
			t.Errorf("told %q", told)
		}
		events := f.stored(t, "kid")
		splice, ok := events[len(events)-1].Data.(dsh.InboxSpliced)
		if !ok || splice.Target != dsh.NextStep || splice.Inserted[0].ID != delegation.NoticeID("deep", 1) {
			t.Errorf("the child's log ends with %+v", events[len(events)-1])
		}
	})
}

// A child is an agent whose session can be resumed like any other, with its
// place in the tree as to depth. Its parent hears of what became of it then.
func TestResumeOfAChild(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFamily(t, runtime.Options{Delegation: runtime.Delegation{MaxDepth: 2}}, answers(script.Text("done after all", 1)))
		f.leave(t,
			left{"p", "", 0, nil},
			left{"kid", "p", 1, halfway(delegation.Continuable, "kid", "half")},
			left{"deep", "kid", 2, halfway(delegation.Continuable, "deep", "half")},
		)
		kid := f.resume(t, "kid")
		if told := pending(t, kid); len(told) != 1 || !strings.Contains(told[0], "deep (deep)") {
			t.Errorf("told %q", told)
		}
		if i := kid.Initiator(); i.Depth != 1 {
			t.Errorf("initiator %+v", i)
		}
		p := f.resume(t, "p")
		if told := pending(t, p); len(told) != 0 {
			t.Errorf("told of a child that somebody works with: %q", told)
		}
		c, err := kid.Spawn(t.Context(), runtime.ChildSpec{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Spawn(t.Context(), runtime.ChildSpec{}); !errors.Is(err, &delegation.Error{Code: delegation.CodeDepth}) {
			t.Errorf("too deep: %v", err)
		}
		if o, err := kid.Run(t.Context(), "go on"); err != nil || !o.OK() {
			t.Fatal(o, err)
		}
		if err := errors.Join(kid.Dispose(t.Context()), p.Dispose(t.Context())); err != nil {
			t.Fatal(err)
		}
		told := pending(t, f.resume(t, "p"))
		if len(told) != 1 || !strings.Contains(told[0], "completed") || !strings.Contains(told[0], "done after all") {
			t.Errorf("told %q", told)
		}
	})
}

// Nobody is told who does not want to be, but logs are closed.
func TestResumeDropsNotices(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFamily(t, runtime.Options{Delegation: runtime.Delegation{DropNotices: true}}, answers(nil))
		f.leave(t, left{"p", "", 0, nil}, left{"kid", "p", 1, halfway(delegation.Continuable, "kid", "half")})
		if told := pending(t, f.resume(t, "p")); len(told) != 0 || f.closers(t, "kid") != 0 {
			t.Errorf("told %q, %d closers are missing", told, f.closers(t, "kid"))
		}
	})
}

// What cannot be caught up with is left alone and keeps nobody from being
// resumed; when it can, it is.
func TestResumeWithChildrenOutOfReach(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFamily(t, runtime.Options{}, answers(nil))
		f.leave(t,
			left{"p", "", 0, nil},
			left{"alien", "p", 1, append(halfway(delegation.Continuable, "alien", "half"), dsh.Opaque{Name: "x/unknown", Raw: json.RawMessage("{}")})},
			left{"used", "p", 1, halfway(delegation.Continuable, "used", "half")},
			left{"below", "used", 2, halfway(delegation.Continuable, "below", "half")},
			left{"loop", "loop", 1, halfway(delegation.Continuable, "loop", "half")},
		)
		somebody, err := f.store.Open(t.Context(), "used")
		if err != nil {
			t.Fatal(err)
		}
		p := f.resume(t, "p")
		if told := pending(t, p); len(told) != 0 {
			t.Errorf("told %q", told)
		}
		for _, id := range []dsh.SessionID{"alien", "below"} {
			if f.closers(t, id) == 0 {
				t.Errorf("%s was written to", id)
			}
		}
		if err := errors.Join(somebody.Close(), p.Dispose(t.Context())); err != nil {
			t.Fatal(err)
		}
		if told := pending(t, f.resume(t, "p")); len(told) != 1 || !strings.Contains(told[0], "used (used)") {
			t.Errorf("told %q", told)
		}
		if told := pending(t, f.resume(t, "loop")); len(told) != 0 {
			t.Errorf("its own child: told %q", told)
		}
		f.unclosed = []dsh.SessionID{"alien"}
	})
}

// A parent that was told by somebody who names notices otherwise is not told
// again.
func TestResumeKnowsForeignNotices(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFamily(t, runtime.Options{}, answers(nil))
		foreign := delegation.Notice("kid", "kid", delegation.Outcome{Kind: delegation.Completed})
		foreign.ID = "5e0c4d3c"
		seen := make([]dsh.Fact, 20) // behind the child's last event
		for i := range seen {
			seen[i] = dsh.InboxSpliced{Target: dsh.NextTurn}
		}
		note := dsh.InboxSpliced{Target: dsh.NextStep, Inserted: []*dsh.Message{foreign}}
		f.leave(t,
			left{"p", "", 0, append(seen, note)},
			left{"kid", "p", 1, finished(delegation.Continuable, "kid", "done")},
			left{"q", "", 0, []dsh.Fact{note}},
			left{"kid2", "q", 1, finished(delegation.Continuable, "kid2", "done")},
		)
		if told := pending(t, f.resume(t, "p")); len(told) != 1 {
			t.Errorf("told %q", told)
		}
		if told := pending(t, f.resume(t, "q")); len(told) != 2 {
			t.Errorf("of another child: told %q", told)
		}
	})
}

// A child that settles while its parent is resumed in the same process tells it
// once.
func TestResumeBesideASettlingChild(t *testing.T) {
	for n := range 20 {
		bubble(t, func(t *testing.T) {
			gate := make(chan struct{})
			f := newFamily(t, runtime.Options{Delegation: runtime.Delegation{OutliveDispose: true}}, func(i dsh.Initiator, _ *dsh.Request) script.Response {
				if i.Depth == 1 {
					<-gate
				}
				return script.Text("done", 1)
			})
			c := f.spawn(t, runtime.ChildSpec{ID: "kid", Label: "bg", Background: true})
			if err := errors.Join(c.Begin(t.Context(), dsh.UserText("go")), f.top.Dispose(t.Context())); err != nil {
				t.Fatal(err)
			}
			close(gate)
			for range n * 60 { // somewhere in the middle
				select {
				case <-c.Done():
				default:
				}
			}
			top := f.resume(t, "top")
			<-c.Done()
			synctest.Wait()
			if err := top.WaitIdle(t.Context()); err != nil {
				t.Fatal(err)
			}
			told := 0
			for ev, err := range top.Events(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				splice, _ := ev.Data.(dsh.InboxSpliced)
				told += len(splice.Inserted)
			}
			if told != 1 {
				t.Errorf("told %d times", told)
			}
		})
	}
}

// slowKin is a store that has to be waited for when it is asked for children.
type slowKin struct {
	*memory.Store
	wait func()
}

func (s *slowKin) Children(ctx context.Context, parent dsh.SessionID) iter.Seq2[dsh.SessionHeader, error] {
	s.wait()
	return s.Store.Children(ctx, parent)
}

// A child that settles behind its parent's back tells it itself, with a turn.
func TestResumeLeavesTheTellingToTheChild(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		store := &slowKin{Store: memory.New()}
		rt, err := runtime.New(runtime.Options{
			Store: store, Delegation: runtime.Delegation{OutliveDispose: true},
			Providers: map[string]llm.Provider{"mock": brain(func(i dsh.Initiator, _ *dsh.Request) script.Response {
				if i.Depth == 1 {
					<-gate
				}
				return script.Text("done", 1)
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop(t, rt)
		top, err := rt.Create(t.Context(), topSpec)
		if err != nil {
			t.Fatal(err)
		}
		c, err := top.Spawn(t.Context(), runtime.ChildSpec{ID: "kid", Label: "bg", Background: true})
		if err == nil {
			err = errors.Join(c.Begin(t.Context(), dsh.UserText("go")), top.Dispose(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
		store.wait = func() {
			store.wait = func() {}
			close(gate)
			for there := true; there; _, there = rt.Agent("kid") {
				time.Sleep(time.Second)
			}
		}
		if top, err = rt.Resume(t.Context(), "top", topSpec); err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		synctest.Wait()
		s, err := top.State(t.Context())
		if err != nil || s.LastTurn != 1 || len(s.Messages) != 2 || !s.Inbox.Empty() {
			t.Errorf("%d turns, %d messages, %d pending, %v", s.LastTurn, len(s.Messages), len(s.Inbox.NextStep), err)
		}
	})
}
