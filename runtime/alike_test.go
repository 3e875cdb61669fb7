package runtime_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// remembering returns a model and what gives the last request of a session.
func remembering() (llm.Provider, func(dsh.SessionID) *dsh.Request) {
	var mu sync.Mutex
	last := map[dsh.SessionID]*dsh.Request{}
	model := script.Func(script.Options{}, func(req *dsh.Request) script.Response {
		mu.Lock()
		defer mu.Unlock()
		last[req.Session] = req
		return script.Text("done", 1)
	})
	return model, func(id dsh.SessionID) *dsh.Request {
		mu.Lock()
		defer mu.Unlock()
		return last[id]
	}
}

// Agents that are alike share a prompt; each of those that are not has its own,
// however they take turns.
func TestAgentsHaveTheirOwnPrompts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		model, request := remembering()
		rt, err := runtime.New(runtime.Options{Providers: map[string]llm.Provider{"one": model, "two": model}, Store: memory.New()})
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close(t.Context())
		extra := []hook.Section{{Name: "extra", Text: "Be brief."}}
		const persona = "You live in {{cwd}} and are {{provider}}/{{model}}."
		cases := []struct {
			spec runtime.Spec
			want string // the prompt behind the runtime's own sentence
		}{
			{runtime.Spec{Provider: "one", Model: "m", CWD: "/a", System: persona}, "You live in /a and are one/m."},
			{runtime.Spec{Provider: "one", Model: "m", CWD: "/a", System: persona}, "You live in /a and are one/m."},
			{runtime.Spec{Provider: "one", Model: "m", CWD: "/b", System: persona}, "You live in /b and are one/m."},
			{runtime.Spec{Provider: "two", Model: "m", CWD: "/a", System: persona}, "You live in /a and are two/m."},
			{runtime.Spec{Provider: "one", Model: "n", CWD: "/a", System: persona}, "You live in /a and are one/n."},
			{runtime.Spec{Provider: "one", Model: "m", CWD: "/a", System: "A cat."}, "A cat."},
			{runtime.Spec{Provider: "one", Model: "m", CWD: "/a", System: persona, Sections: extra}, "Be brief.\n\nYou live in /a and are one/m."},
			{runtime.Spec{Provider: "one", Model: "m", CWD: "/a"}, ""},
		}
		agents := make([]*runtime.Agent, len(cases))
		for i, c := range cases {
			if agents[i], err = rt.Create(t.Context(), c.spec); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			for i, c := range cases {
				if o, err := agents[i].Run(t.Context(), "hi"); err != nil || !o.OK() {
					t.Fatal(o, err)
				}
				_, got, _ := strings.Cut(request(agents[i].Session()).Header.System, "\n\n")
				if got != c.want {
					t.Errorf("agent %d: prompt %q, want %q", i, got, c.want)
				}
			}
		}
	})
}

// A child begins with its parent's options, also those that the parent itself
// has from its log.
func TestChildrenHaveTheirParentsOptions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		model, request := remembering()
		rt, err := runtime.New(runtime.Options{Providers: map[string]llm.Provider{"p": model}, Store: memory.New()})
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close(t.Context())
		seed := int64(7)
		a, err := rt.Create(t.Context(), runtime.Spec{
			Session: "s", Provider: "p", Model: "m", CWD: "/a", System: "A cat in {{cwd}}.", MaxTokens: 9, Seed: &seed,
			ExtraBody: map[string]any{"min_p": 0.5},
		})
		if err != nil {
			t.Fatal(err)
		}
		check := func(parent *runtime.Agent, system string) {
			t.Helper()
			if _, err := parent.Run(t.Context(), "hi"); err != nil {
				t.Fatal(err)
			}
			c, err := parent.Spawn(t.Context(), runtime.ChildSpec{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Run(t.Context(), "hi"); err != nil {
				t.Fatal(err)
			}
			want, got := request(parent.Session()).Header, request(c.Session()).Header
			if !got.Config.Equal(want.Config) || string(got.Config.Parameters.Body) != `{"min_p":0.5}` || got.Config.MaxTokens != 9 {
				t.Errorf("the child asks with %+v, its parent with %+v", got.Config, want.Config)
			}
			if !strings.HasSuffix(got.System, system) {
				t.Errorf("the child's prompt is %q", got.System)
			}
			if err := parent.Dispose(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		check(a, "A cat in /a.")
		back, err := rt.Resume(t.Context(), "s", runtime.Spec{System: "A dog in {{cwd}}."})
		if err != nil {
			t.Fatal(err)
		}
		check(back, "A dog in /a.")
	})
}
