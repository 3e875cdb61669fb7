package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Set is the chained hooks of one agent. Each field is nil where no plugin
// takes part, so that a host can skip the goroutine. The functions return a
// panic of user code as a [PanicError]. A Set is immutable.
type Set struct {
	PreStep      PreStepFunc
	Prompt       PromptFunc
	Request      RequestFunc
	RequestError RequestErrorFunc
	TurnStopping func(ctx context.Context, t EndingTurn) error
	// PreTool includes the guards.
	PreTool      PreToolFunc
	PostTool     PostToolFunc
	ToolResult   func(ctx context.Context, c Call, o Outcome)
	SessionStart func(ctx context.Context, a Agent, s Source) error
	Notified     func(a Agent, n Notice)

	streams []Stream
	around  []AroundTool
}

// PanicError is a panic in user code.
type PanicError struct {
	Where string // the extension point
	Value any
	Stack []byte
}

// Error says where the panic was and with which value.
func (e *PanicError) Error() string { return fmt.Sprintf("panic in %s: %v", e.Where, e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error { err, _ := e.Value.(error); return err }

// Catch turns a panic of the calling goroutine into *err. It is to be
// deferred by whoever runs user code.
func Catch(where string, err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Where: where, Value: v, Stack: debug.Stack()}
	}
}

// ErrExited is the error of user code that ended its goroutine, as
// runtime.Goexit and a test's FailNow do, instead of returning.
var ErrExited = errors.New("user code ended its goroutine")

// NewSet chains plugins in order. A value that has none of the interfaces of
// this package is an error, since it would do nothing.
func NewSet(plugins ...any) (*Set, error) {
	s := &Set{}
	for i, p := range plugins {
		if !takesPart(p) {
			return nil, fmt.Errorf("hook: plugin %d (%T) has none of the hook interfaces", i, p)
		}
	}
	s.PreStep = chainPreStep(pick[PreStep](plugins))
	s.Prompt = chainPrompt(pick[Prompt](plugins))
	s.Request = chainRequest(pick[Request](plugins))
	s.RequestError = chainRequestError(pick[RequestError](plugins))
	s.TurnStopping = serialStopping(pick[TurnStopping](plugins))
	s.PreTool = chainPreTool(pick[PreTool](plugins), pick[Guard](plugins))
	s.PostTool = chainPostTool(pick[PostTool](plugins))
	s.ToolResult = allResults(pick[ToolResult](plugins))
	s.SessionStart = serialStart(pick[SessionStart](plugins))
	s.Notified = allNotified(pick[Notified](plugins))
	s.streams = pick[Stream](plugins)
	slices.SortStableFunc(s.streams, func(a, b Stream) int { return cmp.Compare(witness(a), witness(b)) })
	s.around = pick[AroundTool](plugins)
	return s, nil
}

// witness returns 1 for a hook that stands behind those with 0.
func witness(h Stream) int {
	if _, ok := h.(Witness); ok {
		return 1
	}
	return 0
}

func takesPart(p any) bool {
	switch p.(type) {
	case PreStep, Prompt, Request, Stream, RequestError, TurnStopping, PreTool, Guard, AroundTool,
		PostTool, ToolResult, SessionStart, Notified:
		return true
	}
	return false
}

func pick[T any](plugins []any) []T {
	var out []T
	for _, p := range plugins {
		if t, ok := p.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// Streaming returns base wrapped by the stream hooks; base itself if there
// are none.
func (s *Set) Streaming(base StreamFunc) StreamFunc {
	for i := len(s.streams) - 1; i >= 0; i-- {
		h, next := s.streams[i], base
		base = func(ctx context.Context, req *dsh.Request) iter.Seq2[dsh.Chunk, error] {
			return h.Stream(ctx, req, next)
		}
	}
	return base
}

// Around returns base wrapped by the around-tool hooks; base itself if there
// are none.
func (s *Set) Around(base AroundToolFunc) AroundToolFunc {
	for i := len(s.around) - 1; i >= 0; i-- {
		h, next := s.around[i], base
		base = func(ctx context.Context, c Call) (Outcome, error) { return h.AroundTool(ctx, c, next) }
	}
	return base
}

func chainPreStep(hooks []PreStep) PreStepFunc {
	if len(hooks) == 0 {
		return nil
	}
	run := func(_ context.Context, s Step) (Decision, error) { return Decision{Messages: s.Messages}, nil }
	for i := len(hooks) - 1; i >= 0; i-- {
		h, next := hooks[i], run
		run = func(ctx context.Context, s Step) (Decision, error) { return h.PreStep(ctx, s, next) }
	}
	return func(ctx context.Context, s Step) (d Decision, err error) {
		defer Catch("pre-step hook", &err)
		return run(ctx, s)
	}
}

func chainPrompt(hooks []Prompt) PromptFunc {
	if len(hooks) == 0 {
		return nil
	}
	run := func(_ context.Context, a Assembly) (Assembly, error) { return a, nil }
	for i := len(hooks) - 1; i >= 0; i-- {
		h, next := hooks[i], run
		run = func(ctx context.Context, a Assembly) (Assembly, error) { return h.Prompt(ctx, a, next) }
	}
	return func(ctx context.Context, a Assembly) (out Assembly, err error) {
		defer Catch("prompt hook", &err)
		return run(ctx, a)
	}
}

func chainRequest(hooks []Request) RequestFunc {
	if len(hooks) == 0 {
		return nil
	}
	run := func(_ context.Context, p Proposal) (dsh.CallConfig, error) { return p.Config, nil }
	for i := len(hooks) - 1; i >= 0; i-- {
		h, next := hooks[i], run
		run = func(ctx context.Context, p Proposal) (dsh.CallConfig, error) { return h.Request(ctx, p, next) }
	}
	return func(ctx context.Context, p Proposal) (c dsh.CallConfig, err error) {
		defer Catch("request hook", &err)
		return run(ctx, p)
	}
}

func chainRequestError(hooks []RequestError) RequestErrorFunc {
	if len(hooks) == 0 {
		return nil
	}
	run := func(context.Context, FailedRequest) (bool, error) { return false, nil }
	for i := len(hooks) - 1; i >= 0; i-- {
		h, next := hooks[i], run
		run = func(ctx context.Context, f FailedRequest) (bool, error) { return h.RequestError(ctx, f, next) }
	}
	return func(ctx context.Context, f FailedRequest) (retry bool, err error) {
		defer Catch("request-error hook", &err)
		return run(ctx, f)
	}
}

func serialStopping(hooks []TurnStopping) func(context.Context, EndingTurn) error {
	if len(hooks) == 0 {
		return nil
	}
	return func(ctx context.Context, t EndingTurn) (err error) {
		defer Catch("turn-stopping hook", &err)
		for _, h := range hooks {
			if err := h.TurnStopping(ctx, t); err != nil {
				return err
			}
		}
		return nil
	}
}

func serialStart(hooks []SessionStart) func(context.Context, Agent, Source) error {
	if len(hooks) == 0 {
		return nil
	}
	return func(ctx context.Context, a Agent, s Source) (err error) {
		defer Catch("session-start hook", &err)
		for _, h := range hooks {
			if err := h.SessionStart(ctx, a, s); err != nil {
				return err
			}
		}
		return nil
	}
}

func chainPreTool(hooks []PreTool, guards []Guard) PreToolFunc {
	if len(hooks) == 0 && len(guards) == 0 {
		return nil
	}
	run := func(context.Context, Call) (Verdict, error) { return Verdict{}, nil }
	for i := len(hooks) - 1; i >= 0; i-- {
		h, next := hooks[i], run
		run = func(ctx context.Context, c Call) (Verdict, error) { return h.PreTool(ctx, c, next) }
	}
	return func(ctx context.Context, c Call) (v Verdict, err error) {
		defer Catch("pre-execute hook", &err)
		if v, err = run(ctx, c); err != nil || v.Kind != Allow {
			return v, err
		}
		for _, g := range guards {
			denied, reason, err := g.Guard(ctx, c)
			if err != nil {
				return Verdict{}, err
			}
			if denied {
				return Verdict{Kind: Deny, Reason: reason}, nil
			}
		}
		return v, nil
	}
}

func chainPostTool(hooks []PostTool) PostToolFunc {
	if len(hooks) == 0 {
		return nil
	}
	run := func(context.Context, Call, Outcome) (Review, error) { return Review{}, nil }
	for i := len(hooks) - 1; i >= 0; i-- {
		h, next := hooks[i], run
		run = func(ctx context.Context, c Call, o Outcome) (Review, error) { return h.PostTool(ctx, c, o, next) }
	}
	return func(ctx context.Context, c Call, o Outcome) (r Review, err error) {
		defer Catch("post-execute hook", &err)
		return run(ctx, c, o)
	}
}

func allResults(hooks []ToolResult) func(context.Context, Call, Outcome) {
	if len(hooks) == 0 {
		return nil
	}
	return func(ctx context.Context, c Call, o Outcome) {
		for _, h := range hooks {
			observe(func() { h.ToolResult(ctx, c, o) })
		}
	}
}

func allNotified(hooks []Notified) func(Agent, Notice) {
	if len(hooks) == 0 {
		return nil
	}
	return func(a Agent, n Notice) {
		for _, h := range hooks {
			observe(func() { h.Notified(a, n) })
		}
	}
}

// observe runs an observer; what it panics with changes nothing.
func observe(run func()) {
	defer func() { _ = recover() }()
	run()
}
