package replay_test

import (
	"context"
	"fmt"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/policy/audit"
	"github.com/dsh-actor/dsh-actor/replay"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// The requests of an audited agent are derived from its log and are what was
// sent.
func Example() {
	ctx := context.Background()
	store := memory.New()
	rt, err := runtime.New(runtime.Options{
		Providers: map[string]llm.Provider{"main": script.New(script.Options{}, script.Text("Hello.", 2), script.Text("Bye.", 1))},
		Store:     store, Hooks: []any{audit.Witness{}},
	})
	if err != nil {
		panic(err)
	}
	agent, err := rt.Create(ctx, runtime.Spec{Session: "s", Provider: "main", Model: "m"})
	if err != nil {
		panic(err)
	}
	for _, prompt := range []string{"Hi.", "That is all."} {
		if _, err := agent.Run(ctx, prompt); err != nil {
			panic(err)
		}
	}
	if err := rt.Close(ctx); err != nil {
		panic(err)
	}

	log, err := store.Open(ctx, "s")
	if err != nil {
		panic(err)
	}
	events, err := log.Read(ctx, 0, 0)
	if err != nil {
		panic(err)
	}
	report := replay.Run(log.Header(), events)
	for _, r := range report.Requests {
		last := r.Messages[len(r.Messages)-1]
		fmt.Println(r.Pos, len(r.Messages), dsh.TextOf(last.Content), r.Outcome, r.Digest)
	}
	fmt.Println(len(report.Findings), "findings")
	// Output:
	// 1.1.0 1 Hi. answered same
	// 2.1.0 3 That is all. answered same
	// 0 findings
}
