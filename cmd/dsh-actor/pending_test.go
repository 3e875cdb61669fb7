//go:build unix

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// What was pending runs when its session goes on: alone without a prompt, and
// before it with one.
func TestResumePending(t *testing.T) {
	pendingIn := func(t *testing.T, h *house) string {
		t.Helper()
		s := h.shot()
		s.hooks = []any{later{}}
		h.srv.Add(llmtest.ToolCalls(dsh.ToolCall{ID: "c", Name: "shell", Arguments: `{"command":"sleep 300"}`}))
		s.begin("run", "--provider", "openai", "--model", "m", "-o", "stream-json", "hi")
		await(t, "the call", func() bool { return strings.Contains(s.err.String(), "→ shell") })
		await(t, "the message", func() bool { return strings.Contains(s.out.String(), "and then this") })
		s.signals <- os.Interrupt
		s.end()
		_, last := stream(t, s.out.String())
		if last.Pending != 1 {
			t.Fatalf("result %+v", last)
		}
		s.says(&s.err, "still pending in session "+string(last.Session))
		return string(last.Session)
	}
	t.Run("without a prompt", func(t *testing.T) {
		h := newHouse(t)
		id := pendingIn(t, h)
		h.srv.Add(llmtest.Text("done"))
		s := h.want(exitOK, "run", "--resume", id, "-o", "json")
		if r := resultOf(t, s); r.Turn != 2 || r.Text != "done" || r.Pending != 0 {
			t.Errorf("result %+v", r)
		}
		s.says(&s.err, "still pending, and coming first: 1 message")
		if said := h.asked(1).said(); !strings.HasSuffix(said, "\nuser: and then this") {
			t.Errorf("said:\n%s", said)
		}
		s = h.want(exitUsage, "run", "--resume", id)
		s.says(&s.err, "nothing is pending in session "+id+", so a prompt is needed")
		s = h.shot()
		s.stdin = strings.NewReader("\n")
		s.want(exitUsage, "run", "--resume", id)
		s.says(&s.err, "nothing is pending")
	})
	t.Run("with a prompt", func(t *testing.T) {
		h := newHouse(t)
		id := pendingIn(t, h)
		h.srv.Add(llmtest.Text("first"), llmtest.Text("second"))
		r := resultOf(t, h.want(exitOK, "run", "--resume", id, "-o", "json", "my prompt"))
		if r.Turn != 3 || r.Text != "second" || r.Steps != 2 {
			t.Errorf("result %+v", r)
		}
		if said := h.asked(2).said(); !strings.HasSuffix(said, "\nuser: and then this\nassistant: first\nuser: my prompt") {
			t.Errorf("said:\n%s", said)
		}
	})
}
