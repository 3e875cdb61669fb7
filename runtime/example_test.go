package runtime_test

import (
	"context"
	"fmt"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
)

// The model here is scripted; a real one is openai.New(openai.Options{…}).
func Example() {
	model := script.New(script.Options{},
		script.Calls(dsh.ToolCall{ID: "c1", Name: "add", Arguments: `{"a":19,"b":23}`}),
		script.Text("The sum is 42.", 3),
	)
	type pair struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	add := tool.Func("add", "Add two numbers.", func(_ context.Context, in pair) (string, error) {
		return fmt.Sprint(in.A + in.B), nil
	})

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rt, err := runtime.New(runtime.Options{Providers: map[string]llm.Provider{"main": model}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
	agent, err := rt.Create(ctx, runtime.Spec{Provider: "main", Model: "m", Tools: []tool.Tool{add}})
	if err != nil {
		panic(err)
	}
	out, err := agent.Run(ctx, "What is 19 + 23?")
	fmt.Println(out.Text(), out.Ending.Kind, err)
	// Output: The sum is 42. completed <nil>
}

// Follow reads the log from any event on and waits for more.
func ExampleAgent_Follow() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	model := script.New(script.Options{}, script.Text("Hello.", 2))
	rt, _ := runtime.New(runtime.Options{Providers: map[string]llm.Provider{"main": model}})
	defer func() { _ = rt.Close(ctx) }()
	agent, _ := rt.Create(ctx, runtime.Spec{Provider: "main", Model: "m"})
	_ = agent.Followup(ctx, dsh.UserText("Hi."))
	for ev, err := range agent.Follow(ctx, 0) {
		if err != nil {
			panic(err)
		}
		switch d := ev.Data.(type) {
		case dsh.AssistantChunk:
			if delta, ok := d.Chunk.(dsh.TextDelta); ok {
				fmt.Printf("%q\n", delta.Text)
			}
		case dsh.TurnEnd:
			fmt.Println("turn", d.Turn, d.Reason.Kind)
			return
		}
	}
	// Output:
	// "Hel"
	// "lo."
	// turn 1 completed
}

// An agent splits its work over children that run at the same time.
func ExampleAgent_Spawn() {
	ctx := context.Background()
	rt, err := runtime.New(runtime.Options{
		Providers: map[string]llm.Provider{"script": script.Repeat(script.Options{}, script.Text("done", 1))},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close(ctx)
	parent, err := rt.Create(ctx, runtime.Spec{ID: "parent", Provider: "script", Model: "any"})
	if err != nil {
		fmt.Println(err)
		return
	}
	child, err := parent.Spawn(ctx, runtime.ChildSpec{Label: "look around"})
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := child.Run(ctx, "Please look.")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(child.Initiator().Parent, child.Initiator().Depth, outcome.Kind, outcome.Text())
	// Output: parent 1 completed done
}
