package pebble_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/stores/pebble"
)

// A program keeps its sessions in a database, ends, and goes on with one.
func Example() {
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := life(dir, func(ctx context.Context, rt *runtime.Runtime) (*runtime.Agent, error) {
		return rt.Create(ctx, runtime.Spec{Session: "s", Provider: "main", Model: "m"})
	}); err != nil {
		fmt.Println(err)
		return
	}
	if err := life(dir, func(ctx context.Context, rt *runtime.Runtime) (*runtime.Agent, error) {
		return rt.Resume(ctx, "s", runtime.Spec{Provider: "main", Model: "m"})
	}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// turn 1 completed
	// turn 2 completed
}

// life is that of a program, which asks its agent one thing.
func life(dir string, agent func(context.Context, *runtime.Runtime) (*runtime.Agent, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	store, err := pebble.Open(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	model := script.New(script.Options{}, script.Text("Hello.", 2))
	rt, err := runtime.New(runtime.Options{Providers: map[string]llm.Provider{"main": model}, Store: store})
	if err != nil {
		return err
	}
	defer rt.Close(ctx)
	a, err := agent(ctx, rt)
	if err != nil {
		return err
	}
	out, err := a.Run(ctx, "Hi.")
	if err != nil {
		return err
	}
	fmt.Println("turn", out.Turn, out.Ending.Kind)
	return nil
}
