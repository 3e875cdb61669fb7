package runtime_test

import (
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// A resumed agent is, without being told, where and what the session was.
func TestResumeRestoresRouteAndDirectory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, runtime.Options{}, script.Text("one", 1), script.Text("two", 1), script.Text("three", 1))
		hot := 0.5
		a := w.agent(t, runtime.Spec{ID: "a", CWD: "/srv/demo", MaxTokens: 9, Temperature: &hot, TopP: &hot, Stop: []string{"."}})
		if _, err := a.Run(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		f, err := w.Fork(t.Context(), a.Session(), runtime.End, runtime.Spec{ID: "f"})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Dispose(t.Context()); err != nil {
			t.Fatal(err)
		}
		b, err := w.Resume(t.Context(), a.Session(), runtime.Spec{MaxTokens: 11})
		if err != nil {
			t.Fatal(err)
		}
		for agent, most := range map[*runtime.Agent]int{b: 11, f: 9} {
			if o, err := agent.Run(t.Context(), "go on"); err != nil || !o.OK() || o.Turn != 2 {
				t.Fatalf("%+v, %v", o, err)
			}
			var header dsh.HeaderFold
			for ev, err := range agent.Events(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				header.Apply(&ev)
			}
			c := header.Header.Config
			if c.Provider != "mock" || c.Model != "m" || c.MaxTokens != most || *c.Temperature != hot || *c.Parameters.TopP != hot ||
				len(c.Stop) != 1 {
				t.Errorf("%s goes on with %+v", agent.ID(), c)
			}
		}
		dirs := 0
		for h, err := range w.store.List(t.Context()) {
			if err != nil || h.CWD != "/srv/demo" {
				t.Errorf("header %+v, %v", h, err)
			}
			dirs++
		}
		if dirs != 2 {
			t.Errorf("%d sessions", dirs)
		}
	})
}
