package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// An Option changes a tool made by [Func] or [FuncResult]: a [Mode],
// [WithClassifier], [WithTimeout] or [WithParameters].
type Option interface{ apply(d *Definition) }

func (m Mode) apply(d *Definition) { d.Mode = m }

type optionFunc func(d *Definition)

func (f optionFunc) apply(d *Definition) { f(d) }

// WithClassifier lets classify decide the mode of each call from its
// arguments; see [Classifier].
func WithClassifier(classify func(args json.RawMessage) Mode) Option {
	return optionFunc(func(d *Definition) { d.Classify = classify })
}

// WithTimeout cancels calls after timeout; see [Limited].
func WithTimeout(timeout time.Duration) Option {
	return optionFunc(func(d *Definition) { d.Timeout = timeout })
}

// WithParameters tells the model another JSON Schema than the one derived, for
// constraints that a Go type cannot express. Arguments that fit it are still
// decoded into the function's type.
func WithParameters(schema json.RawMessage) Option {
	return optionFunc(func(d *Definition) { d.Parameters = schema })
}

// Func returns a tool that decodes its arguments into In, a struct, runs the
// function and answers with its text.
//
// The schema is derived from In. Members are named by json tags; those without
// omitempty or omitzero are required; a jsonschema tag is the description.
// Members that In does not have are refused. A type that has no schema, such
// as one with a func in it or one that contains itself, makes a tool that
// [Registry.Register] refuses with the reason.
func Func[In any](name, description string, run func(ctx context.Context, in In) (string, error), opts ...Option) Tool {
	if run == nil {
		return FuncResult[In](name, description, nil, opts...)
	}
	return FuncResult(name, description, func(ctx context.Context, in In) (Result, error) {
		text, err := run(ctx, in)
		if err != nil {
			return Result{}, err
		}
		return Text(text), nil
	}, opts...)
}

// FuncResult is [Func] for functions that return a [Result].
func FuncResult[In any](name, description string, run func(ctx context.Context, in In) (Result, error), opts ...Option) Tool {
	d := Definition{Name: name, Description: description}
	for _, o := range opts {
		o.apply(&d)
	}
	if d.Parameters == nil {
		var err error
		if d.Parameters, err = derive[In](); err != nil {
			return broken{dsh.ToolSchema{Name: name, Description: description}, err}
		}
	}
	if run != nil {
		d.Execute = func(ctx context.Context, call Call) (Result, error) {
			var in In
			if err := json.Unmarshal(call.Args, &in); err != nil {
				return Result{}, undecodable(call, err)
			}
			return run(ctx, in)
		}
	}
	return New(d)
}

// A Definition is a tool given by its parts.
type Definition struct {
	Name        string
	Description string
	// Parameters is a JSON Schema of an object; nil is one without members.
	Parameters json.RawMessage
	// Mode of every call, unless Classify is set.
	Mode     Mode
	Classify func(args json.RawMessage) Mode
	// Timeout cancels calls; 0 is no limit.
	Timeout time.Duration
	// Waits says that calls mostly wait for other agents; see [Waiter].
	Waits bool
	// Execute does the work; see [Tool]. It is required.
	Execute func(ctx context.Context, call Call) (Result, error)
}

// New returns the tool that d describes. What is wrong with d is the error of
// [Registry.Register].
func New(d Definition) Tool {
	if d.Parameters == nil {
		d.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	d.Parameters = slices.Clone(d.Parameters)
	t := defined{d}
	switch {
	case d.Execute == nil:
		return broken{t.Schema(), errors.New("the tool has no function to run")}
	case d.Timeout < 0:
		return broken{t.Schema(), fmt.Errorf("a timeout of %v is negative; 0 is no limit", d.Timeout)}
	case d.Classify != nil:
		return classified{t}
	}
	return t
}

type defined struct{ d Definition }

func (t defined) Schema() dsh.ToolSchema {
	return dsh.ToolSchema{Name: t.d.Name, Description: t.d.Description, Parameters: t.d.Parameters}
}

func (t defined) Execute(ctx context.Context, call Call) (Result, error) {
	return t.d.Execute(ctx, call)
}
func (t defined) Mode() Mode             { return t.d.Mode }
func (t defined) Waits() bool            { return t.d.Waits }
func (t defined) Timeout() time.Duration { return t.d.Timeout }

// classified is a type of its own, since a tool that has Classify is asked
// before every call.
type classified struct{ defined }

func (t classified) Classify(args json.RawMessage) Mode { return t.d.Classify(args) }

// broken is a tool that cannot be registered.
type broken struct {
	schema dsh.ToolSchema
	err    error
}

func (b broken) Schema() dsh.ToolSchema                        { return b.schema }
func (b broken) Execute(context.Context, Call) (Result, error) { return Result{}, b.err }
func (b broken) problem() error                                { return b.err }

// derive returns the schema of In as an object, also for a pointer, which
// would allow null.
func derive[In any]() (raw json.RawMessage, err error) {
	defer hook.Catch("the derivation of a schema", &err)
	t := reflect.TypeFor[In]()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if k := t.Kind(); k != reflect.Struct && k != reflect.Map {
		return nil, fmt.Errorf("arguments are a JSON object, so their type must be a struct, not %v", t)
	}
	s, err := jsonschema.ForType(t, nil)
	if err != nil {
		return nil, fmt.Errorf("no schema for the arguments: %w", err)
	}
	if s.Type == "object" && s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{} // some providers insist on it
	}
	if raw, err = json.Marshal(s); err != nil {
		return nil, fmt.Errorf("no schema for the arguments: %w", err)
	}
	return raw, nil
}

// undecodable is the error of arguments that fit the schema and not the Go
// type, such as 1e3 or 2.0 for an int.
func undecodable(call Call, err error) *Error {
	text := err.Error()
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		text = fmt.Sprintf("%s: a %s does not fit %v", wrong.Field, wrong.Value, wrong.Type)
	}
	return &Error{
		Name: dsh.ToolInvalidArgs.Name, Code: dsh.ToolInvalidArgs.Code, Cause: err,
		Message: fmt.Sprintf("Invalid arguments for %s, which was not run. %s. Got: %s", call.Name, text, preview(string(call.Args))),
	}
}
