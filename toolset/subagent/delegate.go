package subagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/tool"
)

// delegate is a delegation tool.
type delegate struct {
	set *Set
	Tool
}

var (
	_ tool.Moded  = (*delegate)(nil)
	_ tool.Waiter = (*delegate)(nil)
)

// Mode lets several children work side by side.
func (*delegate) Mode() tool.Mode { return tool.Parallel }

// Waits says that calls wait for other agents.
func (*delegate) Waits() bool { return true }

// arguments of a call.
type arguments struct {
	Description string          `json:"description"`
	Prompt      string          `json:"prompt"`
	Background  *bool           `json:"run_in_background"`
	Kind        string          `json:"kind"`
	Schema      json.RawMessage `json:"output_schema"`
}

// Schema tells the model of the tool. Kinds are offered only where there are
// any.
func (d *delegate) Schema() dsh.ToolSchema {
	properties := map[string]any{
		"description": text("What the task is about, in a few words."),
		"prompt":      text("The whole task. The sub-agent knows nothing else of what you know" + d.knows() + "."),
	}
	if d.Background != Never {
		wait := "Set it to have the sub-agent's ID at once and a message when it is done. By default the call waits for the result."
		if d.Background == ByDefault {
			wait = "By default the sub-agent works in the background: you have its ID at once and a message when it is done. Set it to false to wait for the result."
		}
		properties["run_in_background"] = map[string]any{"type": "boolean", "description": wait}
	}
	if d.Structured {
		properties["output_schema"] = map[string]any{
			"type": "object", "description": "A JSON Schema of an object. If you give one, the result is JSON that fits it; only where you wait for the result.",
		}
	}
	if kinds := d.set.opts.Kinds; len(kinds) > 0 {
		names := make([]string, len(kinds))
		var about strings.Builder
		for i, k := range kinds {
			names[i] = k.Name
			fmt.Fprintf(&about, " %s: %s", k.Name, k.Description)
		}
		properties["kind"] = map[string]any{
			"type": "string", "enum": names, "description": "What kind of sub-agent to give the task to; leave it out for one like yourself." + about.String(),
		}
	}
	return dsh.ToolSchema{Name: d.Name, Description: d.describe(), Parameters: object(properties, "description", "prompt")}
}

func (d *delegate) knows() string {
	if d.Transport == delegation.ByFork {
		return " beside the conversation so far"
	}
	return ""
}

func (d *delegate) describe() string {
	about := "Gives a task to a sub-agent, which works on it by itself with tools of its own, and answers with its last message. " +
		"Several calls in one message run side by side."
	if d.Transport == delegation.ByFork {
		about += " The sub-agent begins with the conversation up to your last completed turn."
	}
	return about
}

// Execute gives a task to a child.
func (d *delegate) Execute(ctx context.Context, call tool.Call) (tool.Result, error) {
	var args arguments
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tool.Result{}, err
	}
	parent, ok := delegation.From(ctx)
	if !ok {
		return tool.Result{}, coded(delegation.Errorf(delegation.CodeNoAgent, "there is no agent to delegate for"))
	}
	background := d.Background == ByDefault
	if args.Background != nil {
		background = *args.Background
	}
	spec, err := d.spec(args, background)
	if err != nil {
		return tool.Result{}, coded(err)
	}
	var capture *Capture
	if len(args.Schema) > 0 && !background {
		if capture, err = Structured(args.Schema); err != nil {
			return tool.Result{}, coded(err)
		}
		capture.Equip(&spec)
	}
	child, err := parent.Delegate(ctx, spec)
	if err != nil {
		return tool.Result{}, coded(err)
	}
	if background {
		if err := child.Begin(ctx, dsh.UserText(args.Prompt)); err != nil {
			return tool.Result{}, coded(errors.Join(err, child.Dispose(context.WithoutCancel(ctx))))
		}
		return begun(child.Session()), nil
	}
	o, err := child.RunMessage(ctx, dsh.UserText(args.Prompt))
	if err != nil {
		return tool.Result{}, coded(err)
	}
	if capture != nil {
		capture.Seal(&o)
	}
	return result(o)
}

// spec returns what the child is to be.
func (d *delegate) spec(args arguments, background bool) (delegation.Spec, error) {
	spec := delegation.Spec{
		Label: args.Description, Fork: d.Transport == delegation.ByFork, Background: background,
		Provider: d.Provider, Model: d.Model, MaxTokens: d.MaxTokens, Persona: d.Persona, Filter: d.Filter,
		MaxDepth: d.MaxDepth, Timeout: d.Timeout, LateDescriptor: d.LateDescriptor,
	}
	if background {
		switch {
		case d.Background == Never || d.Background == Refused:
			return spec, delegation.Errorf(delegation.CodeUnavailable, "sub-agents of %s do not work in the background; leave run_in_background out", d.Name)
		case d.set.opts.Ephemeral:
			return spec, delegation.Errorf(delegation.CodeNoStore, "sub-agents cannot work in the background because sessions are not kept; set run_in_background to false")
		}
		if spec.Label == "" {
			spec.Label = "task"
		}
		spec.Gear = d.set.gear()
	}
	if args.Kind == "" {
		return spec, nil
	}
	for _, k := range d.set.opts.Kinds {
		if k.Name == args.Kind {
			k.apply(&spec)
			return spec, nil
		}
	}
	return spec, delegation.Errorf("UNKNOWN_KIND", "there is no kind of sub-agent %q", args.Kind)
}

// begun is the result of a call whose child works in the background.
func begun(child dsh.SessionID) tool.Result {
	return tool.Textf("Sub-agent %s works in the background. You will be told when it has settled; do not wait for it or ask.", child)
}

// result is the result of a call that waited. A model that is told nothing would
// take it for a mistake, so it is told that there is nothing.
func result(o delegation.Outcome) (tool.Result, error) {
	said := o.Text()
	switch {
	case !o.OK():
		message := "the sub-agent " + o.String()
		if said != "" {
			message += "\nIts partial output:\n" + said
		}
		return tool.Result{}, &tool.Error{Name: delegation.ErrorName, Code: o.Code(), Message: message, Cause: o.Err()}
	case o.Structured != nil:
		said = string(o.Structured)
	case said == "":
		said = "The sub-agent completed and said nothing."
	}
	return tool.Text(said), nil
}

// coded makes an error that carries its code into the tool's result.
func coded(err error) error {
	var refused *delegation.Error
	if !errors.As(err, &refused) {
		return err
	}
	return &tool.Error{Name: delegation.ErrorName, Code: refused.Code, Message: err.Error(), Cause: err}
}

func text(about string) map[string]any {
	return map[string]any{"type": "string", "description": about}
}

// object returns the schema of an object.
func object(properties map[string]any, required ...string) json.RawMessage {
	schema := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		panic(err) // strings always marshal.
	}
	return raw
}
