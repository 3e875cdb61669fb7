package script_test

import (
	"context"
	"fmt"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A model that asks for a tool and then answers in two pieces.
func Example() {
	p := script.New(script.Options{},
		script.Calls(dsh.ToolCall{ID: "c1", Name: "clock", Arguments: "{}"}),
		script.Text("It is noon.", 2),
	)
	for range 2 {
		for chunk := range p.Stream(context.Background(), &dsh.Request{}) {
			switch c := chunk.(type) {
			case dsh.ToolCallDelta:
				fmt.Println("call", *c.Name)
			case dsh.TextDelta:
				fmt.Printf("text %q\n", c.Text)
			case dsh.Finish:
				fmt.Println("finish", c.Reason.Kind)
			}
		}
	}
	// Output:
	// call clock
	// finish tool-calls
	// text "It is "
	// text "noon."
	// finish stop
}
