package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

type refusing struct{}

func (refusing) PreStep(context.Context, hook.Step, hook.PreStepFunc) (hook.Decision, error) {
	return hook.Decision{Reject: true}, nil
}

func TestChildOutcomes(t *testing.T) {
	bad := &dsh.Failure{Code: dsh.CodeQuota, Message: "no credit"}
	for _, tc := range []struct {
		name     string
		response script.Response
		spec     runtime.ChildSpec
		want     runtime.ChildOutcome
		code     string
		text     string
	}{
		{"completed", script.Text("found it", 2), runtime.ChildSpec{}, runtime.ChildOutcome{Kind: delegation.Completed}, "", "found it"},
		{"empty", script.Chunks(dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}}), runtime.ChildSpec{}, runtime.ChildOutcome{Kind: delegation.Completed}, "", ""},
		{"cut off", script.MaxTokens("found"), runtime.ChildSpec{}, runtime.ChildOutcome{Kind: delegation.Limited, Limit: delegation.LimitTokens}, "CHILD_MAX_TOKENS", "found"},
		{"failed", script.Error(bad, dsh.TextDelta{Text: "so"}), runtime.ChildSpec{}, runtime.ChildOutcome{Kind: delegation.Failed}, "QUOTA", "so"},
		{"rejected", nil, runtime.ChildSpec{Gear: delegation.Gear{Hooks: []any{refusing{}}}}, runtime.ChildOutcome{Kind: delegation.Rejected, Reason: "a hook refused its input"}, "CHILD_REJECTED", ""},
		{"out of time", hang(dsh.TextDelta{Text: "half"}), runtime.ChildSpec{Timeout: time.Minute}, runtime.ChildOutcome{Kind: delegation.Limited, Limit: delegation.LimitTime}, "CHILD_TIMEOUT", "half"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFamily(t, runtime.Options{}, answers(tc.response))
				tc.spec.Label = "job"
				o, err := f.spawn(t, tc.spec).Run(t.Context(), "please")
				if err != nil {
					t.Fatal(err)
				}
				if o.Kind != tc.want.Kind || o.Limit != tc.want.Limit || o.Reason != tc.want.Reason {
					t.Errorf("outcome %+v, want %+v", o, tc.want)
				}
				if o.Code() != tc.code || o.Text() != tc.text || (o.Err() == nil) != o.OK() {
					t.Errorf("code %q text %q err %v", o.Code(), o.Text(), o.Err())
				}
				if tc.name == "failed" && !errors.Is(o.Err(), dsh.ErrQuota) {
					t.Errorf("Err() = %v, which is no quota failure", o.Err())
				}
				if got := f.ends(); !slices.Equal(got, []string{"job " + o.String()}) {
					t.Errorf("observed %q", got)
				}
			})
		})
	}
}

func TestChildOutlivesNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFamily(t, runtime.Options{}, answers(hang()))
		c := f.spawn(t, runtime.ChildSpec{Label: "bg", Background: true})
		if err := c.Begin(t.Context(), dsh.UserText("go")); err != nil {
			t.Fatal(err)
		}
		idle := f.spawn(t, runtime.ChildSpec{Label: "idle"})
		synctest.Wait()
		if err := f.top.Dispose(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(f.Agents()); n != 0 {
			t.Errorf("%d agents are left", n)
		}
		for _, c := range []*runtime.Child{c, idle} {
			if o, err := c.Wait(t.Context()); err != nil || o.Kind != delegation.Aborted {
				t.Errorf("outcome %+v, %v", o, err)
			}
		}
		if _, err := f.top.Spawn(t.Context(), runtime.ChildSpec{}); err == nil {
			t.Error("a disposed agent has a child")
		}
	})
}

func TestChildHeaderAndDescriptor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFamily(t, runtime.Options{}, answers(script.Text("ok", 1)))
		c := f.spawn(t, runtime.ChildSpec{ID: "kid", Label: "look", Background: true, Filter: delegation.Filter{Deny: []string{}}})
		if err := c.Begin(t.Context(), dsh.UserText("go")); err != nil {
			t.Fatal(err)
		}
		<-c.Done()
		log, err := f.store.Open(t.Context(), "kid")
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		h := log.Header()
		if h.ParentSession != "top" || h.Origin != "subagent" || h.DelegationDepth != 1 || h.HasSeed {
			t.Errorf("header %+v", h)
		}
		events, _ := log.Read(t.Context(), 0, 0)
		d, ok, err := delegation.ReadDescriptor(events, 0)
		if err != nil || !ok || d.Mode != delegation.Continuable || d.Label != "look" || d.Provider != "mock" || d.Model != "m" {
			t.Errorf("descriptor %+v, %v, %v", d, ok, err)
		}
		if got := c.Initiator(); got != (dsh.Initiator{Agent: "kid", Session: "kid", Parent: "top", Root: "top", Depth: 1}) {
			t.Errorf("initiator %+v", got)
		}
	})
}

func TestForkBeginsWithTheCompletedTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen [][]string
		f := newFamily(t, runtime.Options{}, func(_ dsh.Initiator, req *dsh.Request) script.Response {
			var texts []string
			for _, m := range req.Messages {
				texts = append(texts, dsh.TextOf(m.Content))
			}
			seen = append(seen, texts)
			return script.Text("answer", 1)
		})
		if _, err := f.top.Run(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		c, err := f.top.Fork(t.Context(), runtime.ChildSpec{Label: "fork"})
		if err != nil {
			t.Fatal(err)
		}
		if o, err := c.Run(t.Context(), "second"); err != nil || !o.OK() || o.Turns != 1 {
			t.Fatalf("outcome %+v, %v", o, err)
		}
		if want := []string{"first", "answer", "second"}; !slices.Equal(seen[1][:3], want) {
			t.Errorf("the fork saw %q", seen[1])
		}
	})
}

// delegating is a tool that splits its work: it asks one child with the text
// and answers with the child's answer.
func delegating(waits bool) tool.Tool {
	return tool.New(tool.Definition{
		Name: "delegate", Mode: tool.Parallel, Waits: waits,
		Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`),
		Execute: func(ctx context.Context, call tool.Call) (tool.Result, error) {
			p, ok := delegation.From(ctx)
			if !ok {
				return tool.Result{}, errors.New("no parent")
			}
			c, err := p.Delegate(ctx, delegation.Spec{Label: string(call.ID)})
			if err != nil {
				return tool.Result{}, err
			}
			o, err := c.RunMessage(ctx, dsh.UserText("deeper"))
			if err == nil {
				err = o.Err()
			}
			return tool.Text(o.Text()), err
		},
	})
}

// A chain of agents that wait for each other needs no place in the pool.
func TestPoolOfOneWithDepthFive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFamily(t, runtime.Options{
			Tools: []tool.Tool{delegating(true)}, MaxToolBodies: 1, Delegation: runtime.Delegation{MaxDepth: 5},
		}, func(i dsh.Initiator, req *dsh.Request) script.Response {
			switch {
			case i.Depth == 5:
				return script.Text("bottom", 1)
			case asked(req):
				return script.Text(fmt.Sprintf("%d saw %s", i.Depth, resultText(req)), 1)
			}
			return script.Calls(call("c", "delegate", "{}"))
		})
		o, err := f.top.Run(t.Context(), "go")
		if err != nil || o.Text() != "0 saw 1 saw 2 saw 3 saw 4 saw bottom" {
			t.Errorf("%q, %v", o.Text(), err)
		}
	})
}

func resultText(req *dsh.Request) string {
	last := req.Messages[len(req.Messages)-1]
	r, _ := last.Content[0].(dsh.ToolResult)
	return dsh.TextOf(r.Content)
}

func TestLimits(t *testing.T) {
	for _, tc := range []struct {
		name  string
		limit runtime.Delegation
		depth *int
		code  string
	}{
		{"no children", runtime.Delegation{MaxDepth: -1}, nil, delegation.CodeDepth},
		{"depth of the call", runtime.Delegation{}, new(int), delegation.CodeDepth},
		{"children", runtime.Delegation{MaxChildren: 1}, nil, delegation.CodeChildren},
		{"tree", runtime.Delegation{MaxTree: 1}, nil, delegation.CodeTree},
		{"process", runtime.Delegation{MaxProcess: 1}, nil, delegation.CodeProcess},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFamily(t, runtime.Options{Delegation: tc.limit}, answers(script.Text("ok", 1)))
				spec := runtime.ChildSpec{MaxDepth: tc.depth}
				var err error
				if tc.code != delegation.CodeDepth {
					first := f.spawn(t, spec)
					_, err = f.top.Spawn(t.Context(), spec)
					if _, err := first.Run(t.Context(), "go"); err != nil {
						t.Fatal(err)
					}
					if _, err := f.spawn(t, spec).Run(t.Context(), "go"); err != nil {
						t.Errorf("after the first ended: %v", err)
					}
				} else {
					_, err = f.top.Spawn(t.Context(), spec)
				}
				if !errors.Is(err, &delegation.Error{Code: tc.code}) {
					t.Errorf("Spawn = %v, want %s", err, tc.code)
				}
			})
		})
	}
}

// Code knows on whose behalf it runs, whoever runs beside it.
func TestInitiators(t *testing.T) {
	const trees, kids = 1000, 3
	var mu sync.Mutex
	seen := map[dsh.Initiator]int{}
	note := func(ctx context.Context) {
		i, ok := dsh.InitiatorFrom(ctx)
		a, _ := runtime.Of(ctx)
		if !ok || a == nil || a.Initiator() != i {
			t.Errorf("initiator %+v of agent %v", i, a)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		seen[i]++
	}
	split := tool.New(tool.Definition{Name: "split", Waits: true, Mode: tool.Parallel, Execute: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		note(ctx)
		p, _ := delegation.From(ctx)
		c, err := p.Delegate(ctx, delegation.Spec{Label: "part"})
		if err != nil {
			return tool.Result{}, err
		}
		o, err := c.RunMessage(ctx, dsh.UserText("go"))
		return tool.Text(o.Text()), err
	}})
	f := newFamily(t, runtime.Options{Tools: []tool.Tool{split}, Hooks: []any{noting(note)}}, func(i dsh.Initiator, req *dsh.Request) script.Response {
		if i.Depth == 0 && !asked(req) {
			return script.Calls(call("a", "split", "{}"), call("b", "split", "{}"), call("c", "split", "{}"))
		}
		return script.Text(string(i.Agent), 1)
	})
	var group sync.WaitGroup
	for n := range trees {
		group.Go(func() {
			a, err := f.Create(context.Background(), runtime.Spec{ID: dsh.AgentID(fmt.Sprint("a", n)), Provider: "mock", Model: "m"})
			if err != nil {
				t.Error(err)
				return
			}
			if o, err := a.Run(context.Background(), "go"); err != nil || o.Text() != string(a.ID()) {
				t.Errorf("%s: %q, %v", a.ID(), o.Text(), err)
			}
		})
	}
	group.Wait()
	mu.Lock()
	defer mu.Unlock()
	depths := map[int]int{}
	for i := range seen {
		depths[i.Depth]++
		if i.Depth == 1 && (i.Root != i.Parent || i.Agent == i.Root) {
			t.Errorf("initiator %+v", i)
		}
	}
	if depths[0] != trees || depths[1] != trees*kids {
		t.Errorf("agents by depth %v", depths)
	}
}

type noting func(ctx context.Context)

func (n noting) PreStep(ctx context.Context, s hook.Step, next hook.PreStepFunc) (hook.Decision, error) {
	n(ctx)
	return next(ctx, s)
}

func (n noting) SessionStart(ctx context.Context, a hook.Agent, _ hook.Source) error {
	if i, ok := dsh.InitiatorFrom(ctx); !ok || i.Agent != a.ID() {
		return fmt.Errorf("session-start of %s for %+v", a.ID(), i)
	}
	return nil
}

func TestAsAndOutside(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFamily(t, runtime.Options{}, answers(script.Text("ok", 1)))
		err := runtime.As(t.Context(), f.top, func(ctx context.Context) error {
			if a, ok := runtime.Of(ctx); !ok || a != f.top {
				t.Errorf("as the agent: %v, %v", a, ok)
			}
			return runtime.Outside(ctx, func(ctx context.Context) error {
				if _, ok := runtime.Of(ctx); ok {
					t.Error("outside, there is an agent")
				}
				if _, ok := dsh.InitiatorFrom(ctx); ok {
					t.Error("outside, there is an initiator")
				}
				return errors.New("done")
			})
		})
		if err == nil || err.Error() != "done" {
			t.Errorf("error %v", err)
		}
	})
}

func TestUsageIsSummedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		usage := dsh.Usage{InputTokens: 10, OutputTokens: 1}
		f := newFamily(t, runtime.Options{Tools: []tool.Tool{delegating(true)}}, func(i dsh.Initiator, req *dsh.Request) script.Response {
			if i.Depth < 2 && !asked(req) {
				return script.Answer{Calls: []dsh.ToolCall{call("a", "delegate", "{}"), call("b", "delegate", "{}")}, Usage: &usage}.Response()
			}
			return script.Answer{Text: "ok", Usage: &usage}.Response()
		})
		o, err := f.top.Run(t.Context(), "go")
		if err != nil || o.Usage.InputTokens != 20 {
			t.Errorf("own usage %+v, %v", o.Usage, err)
		}
		// Two children with two requests each, four grandchildren with one.
		if got := f.top.DescendantUsage(); got.InputTokens != 80 || got.OutputTokens != 8 {
			t.Errorf("descendants %+v", got)
		}
	})
}

func TestFilteredToolIsAbsentAndRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var names []string
		var result string
		f := newFamily(t, runtime.Options{Tools: []tool.Tool{delegating(true), deafTool(0)}}, func(_ dsh.Initiator, req *dsh.Request) script.Response {
			names = nil
			for _, s := range req.Header.Tools {
				names = append(names, s.Name)
			}
			if asked(req) {
				result = resultText(req)
				return script.Text("ok", 1)
			}
			return script.Calls(call("c", "deaf", "{}"))
		})
		c := f.spawn(t, runtime.ChildSpec{Filter: delegation.Filter{Deny: []string{"deaf"}}})
		if o, err := c.Run(t.Context(), "go"); err != nil || !o.OK() {
			t.Errorf("outcome %+v, %v", o, err)
		}
		if !slices.Equal(names, []string{"delegate"}) || !strings.Contains(result, "no tool") {
			t.Errorf("tools %q, result %q", names, result)
		}
		_, err := f.top.Spawn(t.Context(), runtime.ChildSpec{Filter: delegation.Filter{Allow: []string{"deaff"}}})
		if !errors.Is(err, &delegation.Error{Code: delegation.CodeFilter}) {
			t.Errorf("Spawn = %v", err)
		}
	})
}
