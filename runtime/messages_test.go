package runtime_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

// What a turn costs is above all how often its actors hand something over. The
// bounds leave room for chunks that the agent finds one at a time.
func TestMessagesPerTurn(t *testing.T) {
	echo := tool.Func("echo", "Echo.", func(context.Context, struct{}) (string, error) { return "ok", nil })
	call := script.Calls(dsh.ToolCall{ID: "c", Name: "echo", Arguments: "{}"})
	for _, tc := range []struct {
		name      string
		responses []script.Response
		chunks    int
		fixed     int // messages besides those that bring chunks
	}{
		{"text", []script.Response{script.Text("abcdefghij", 10)}, 13, 14},
		{"tool", []script.Response{call, script.Text("abcdefghij", 10)}, 17, 32},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, runtime.Options{}, tc.responses...)
				a := w.agent(t, runtime.Spec{Tools: []tool.Tool{echo}})
				synctest.Wait()
				handled := w.CountMessages()
				if o, err := a.Run(t.Context(), "go"); err != nil || !o.OK() {
					t.Fatalf("Run = %+v, %v", o, err)
				}
				synctest.Wait()
				// A chunk that travels alone is two messages: to the agent and to the log.
				if n := int(handled.Load()); n > tc.fixed+2*tc.chunks {
					t.Errorf("%d messages, want at most %d and 2 for each of %d chunks", n, tc.fixed, tc.chunks)
				} else {
					t.Logf("%d messages", n)
				}
			})
		})
	}
}
