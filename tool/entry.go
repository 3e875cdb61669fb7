package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// An Entry is a registered tool: checked once, its schema compiled. It is
// immutable and safe for concurrent use.
type Entry struct {
	tool       Tool
	classifier Classifier // nil: mode holds for every call
	mode       Mode
	timeout    time.Duration
	waits      bool
	schema     dsh.ToolSchema
	params     *parameters
	where      string // for a PanicError
}

const maxName = 64

var goodName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// compile checks t and asks it everything that is asked once. With an error
// the Entry holds at most what names the tool.
func compile(t Tool) (e *Entry, err error) {
	defer hook.Catch("a tool's description", &err)
	if t == nil {
		return nil, errors.New("the tool is nil")
	}
	e = &Entry{tool: t, schema: t.Schema()}
	if broken, ok := t.(interface{ problem() error }); ok {
		if err := broken.problem(); err != nil {
			return e, err
		}
	}
	e.schema.Parameters = slices.Clone(e.schema.Parameters)
	e.where = "tool " + e.schema.Name
	e.classifier, _ = t.(Classifier)
	if m, ok := t.(Moded); ok && e.classifier == nil {
		e.mode = m.Mode()
	}
	if l, ok := t.(Limited); ok {
		e.timeout = l.Timeout()
	}
	if w, ok := t.(Waiter); ok {
		e.waits = w.Waits()
	}
	var badName, badSchema error
	if !goodName.MatchString(e.schema.Name) {
		badName = errors.New("a name is 1 to 64 of the characters a-z, A-Z, 0-9, _ and -; rename the tool")
	}
	e.params, badSchema = compileParameters(e.schema.Parameters)
	return e, errors.Join(badName, badSchema)
}

// Tool returns the tool as it was registered.
func (e *Entry) Tool() Tool { return e.tool }

// Waits reports whether calls take no place in the pool of tool bodies.
func (e *Entry) Waits() bool { return e.waits }

// NeedsClassify reports whether ModeOf runs the tool's own code, which may
// block and must not run on an actor's goroutine.
func (e *Entry) NeedsClassify() bool { return e.classifier != nil }

// ModeOf returns the mode of a call with these arguments. It is Exclusive
// unless the arguments fit the schema and the tool says exactly [Parallel].
func (e *Entry) ModeOf(args json.RawMessage) Mode {
	if e.classifier == nil && e.mode != Parallel || !e.params.fit(args) {
		return Exclusive
	}
	if e.classifier != nil && e.classify(args) != Parallel {
		return Exclusive
	}
	return Parallel
}

func (e *Entry) classify(args json.RawMessage) (m Mode) {
	defer func() {
		if recover() != nil {
			m = Exclusive
		}
	}()
	return e.classifier.Classify(args)
}

// errTimeout is the cause of a context that a tool's own time ended.
var errTimeout = errors.New("tool: out of time")

// Run checks the arguments and runs the tool on the calling goroutine. Errors
// that Run itself makes: arguments that do not fit are an [*Error] with code
// INVALID_ARGS, a panic is a [*hook.PanicError], and a [Limited] tool that
// gave up because its time was over has an [*Error] with code TIMEOUT. A tool
// that finished its work after all keeps its result.
func (e *Entry) Run(ctx context.Context, call Call) (res Result, err error) {
	defer hook.Catch(e.where, &err)
	if len(call.Args) == 0 {
		call.Args = noArgs
	}
	if problem := e.params.problem(call.Args); problem != "" {
		return Result{}, e.params.refusal(e.schema.Name, problem, call.Args)
	}
	if e.timeout <= 0 {
		return e.tool.Execute(ctx, call)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.timeout, errTimeout)
	defer cancel()
	res, err = e.tool.Execute(ctx, call)
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		err = e.timedOut(err)
	}
	return res, err
}

// timedOut names the timeout unless the tool itself said what went wrong.
func (e *Entry) timedOut(err error) error {
	var own *Error
	if errors.As(err, &own) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	text := fmt.Sprintf("The tool %s was stopped after %v, the time that it may take.", e.schema.Name, e.timeout)
	if !errors.Is(err, errTimeout) && err.Error() != context.DeadlineExceeded.Error() {
		text += " It said: " + err.Error()
	}
	return &Error{Code: string(dsh.CodeTimeout), Message: text, Cause: err}
}
