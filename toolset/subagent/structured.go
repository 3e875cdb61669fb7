package subagent

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/tool"
)

// StructuredOutput is the name of the tool that keeps an output of a given
// shape.
const StructuredOutput = "structured_output"

// A Capture is the output that one child was asked for. It is the child's tool
// and its hooks.
type Capture struct {
	tool tool.Tool

	mu       sync.Mutex
	proposed json.RawMessage // by the call that runs or is being reviewed
	value    json.RawMessage // of the call whose result was no error
}

// Structured returns a capture of outputs that fit a JSON Schema of an object.
func Structured(schema json.RawMessage) (*Capture, error) {
	c := &Capture{}
	c.tool = tool.New(tool.Definition{
		Name: StructuredOutput, Description: "Hands over the result of the task. The arguments are the result; calling it ends the task.",
		Parameters: schema, Execute: c.execute,
	})
	if err := tool.NewRegistry(nil).Register(c.tool); err != nil {
		return nil, &delegation.Error{Code: delegation.CodeSchema, Message: err.Error(), Cause: err}
	}
	return c, nil
}

// Equip gives the capture to a child that is to be made.
func (c *Capture) Equip(spec *delegation.Spec) {
	spec.Tools = append(spec.Tools, c.tool)
	spec.Hooks = append(spec.Hooks, c)
	spec.Sections = append(spec.Sections, hook.Section{
		Name: "subagent:structured_output", Order: structuredOrder,
		Text: "When the task is done, call the tool structured_output with the result. Nothing else you say counts.",
	})
}

// Seal puts what was captured into the outcome. A child that completed without
// it has failed.
func (c *Capture) Seal(o *delegation.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.Structured = c.value
	if c.value == nil && o.Kind == delegation.Completed {
		o.Kind = delegation.Failed
		o.Failure = &dsh.Failure{Code: delegation.CodeNoStructured, Message: "it ended without calling structured_output"}
	}
}

func (c *Capture) execute(_ context.Context, call tool.Call) (tool.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proposed = append(json.RawMessage(nil), call.Args...)
	r := tool.Text("The result is recorded.")
	r.Conclude = true
	return r, nil
}

// ToolResult keeps what was proposed once its result is known to be no error.
func (c *Capture) ToolResult(_ context.Context, call hook.Call, o hook.Outcome) {
	if call.Tool != StructuredOutput {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !o.IsError && c.value == nil {
		c.value = c.proposed
	}
	c.proposed = nil
}

// Guard denies calls behind the one that was kept.
func (c *Capture) Guard(context.Context, hook.Call) (denied bool, reason string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.value == nil {
		return false, "", nil
	}
	return true, "the result is recorded and the task is over; this call did not run", nil
}
