package tool_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/tool"
)

func ExampleFunc() {
	type weather struct {
		City string `json:"city" jsonschema:"name of the city"`
		Days int    `json:"days,omitempty" jsonschema:"how many days ahead"`
	}
	forecast := tool.Func("forecast", "Tells the weather to come.",
		func(_ context.Context, in weather) (string, error) {
			return fmt.Sprintf("%s in %d days: rain", in.City, in.Days), nil
		}, tool.Parallel)

	tools := tool.NewRegistry(nil)
	if err := tools.Register(forecast); err != nil {
		fmt.Println(err)
		return
	}
	set := tools.Snapshot()
	fmt.Println(string(set.Schemas()[0].Parameters))

	entry, _ := set.Lookup("forecast")
	for _, raw := range []string{`{"city":"Bergen","days":2}`, `{"days":2}`} {
		res, err := entry.Run(context.Background(), tool.Call{Name: "forecast", Args: tool.NormalizeArgs(raw)})
		fmt.Println(dsh.TextOf(res.Content), err)
	}
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"name of the city"},"days":{"type":"integer","description":"how many days ahead"}},"required":["city"],"additionalProperties":false}
	// Bergen in 2 days: rain <nil>
	//  Invalid arguments for forecast, which was not run. city: missing, expected string. Required: city (string). Got: {"days":2}
}

func ExampleNew() {
	echo := tool.New(tool.Definition{
		Name:       "echo",
		Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`),
		Mode:       tool.Parallel,
		Execute: func(_ context.Context, call tool.Call) (tool.Result, error) {
			return tool.Textf("%s", call.Args), nil
		},
	})
	tools := tool.NewRegistry(nil)
	fmt.Println(tools.Register(echo))
	entry, _ := tools.Snapshot().Lookup("echo")
	fmt.Println(entry.ModeOf(json.RawMessage(`{"text":"a"}`)), entry.ModeOf(json.RawMessage(`{"text":1}`)))
	// Output:
	// <nil>
	// parallel exclusive
}

func ExampleUnknownTool() {
	tools := tool.NewRegistry(nil)
	_ = tools.Register(tool.Func("read_file", "", func(context.Context, struct{}) (string, error) { return "", nil }))
	fmt.Println(tool.UnknownTool(tools.Snapshot(), "raed"))
	// Output: There is no tool "raed". Did you mean read_file?
}

func ExampleRegistry() {
	run := func(context.Context, struct{}) (string, error) { return "", nil }
	process := tool.NewRegistry(nil)
	agent := tool.NewRegistry(process)
	_ = process.Register(tool.Func("shell", "", run), tool.Func("search", "", run))
	_ = agent.Register(tool.Func("deploy", "", run))
	for _, schema := range agent.Snapshot().Schemas() {
		fmt.Println(schema.Name)
	}
	// Output:
	// deploy
	// search
	// shell
}
