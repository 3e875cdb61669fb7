package main

import (
	"context"
	"sync"
	"time"

	"github.com/dsh-actor/dsh-actor/cmd/dsh-actor/config"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/policy/audit"
	"github.com/dsh-actor/dsh-actor/policy/retry"
)

// defaultHooks are the policies of an agent of the command line: the one place
// to add one.
func defaultHooks(cfg *config.Loaded) []any {
	hooks := []any{retry.New(cfg.Retry.Options())}
	if cfg.Audit {
		hooks = append(hooks, audit.Witness{})
	}
	return hooks
}

// stopwatch is the hook that measures how long the bodies of calls run. The
// log cannot tell: a result waits there for those before it.
type stopwatch struct {
	mu   sync.Mutex
	took map[callKey]time.Duration
}

type callKey struct {
	turn, step int
	id         dsh.CallID
}

var _ hook.AroundTool = (*stopwatch)(nil)

func newStopwatch() *stopwatch { return &stopwatch{took: map[callKey]time.Duration{}} }

// AroundTool measures one call.
func (s *stopwatch) AroundTool(ctx context.Context, c hook.Call, next hook.AroundToolFunc) (hook.Outcome, error) {
	start := time.Now()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.took[callKey{c.Pos.Turn, c.Pos.Step, c.ID}] = time.Since(start)
	}()
	return next(ctx, c)
}

// take returns and forgets how long a call ran; ok is false if it did not.
func (s *stopwatch) take(key callKey) (took time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	took, ok = s.took[key]
	delete(s.took, key)
	return took, ok
}
