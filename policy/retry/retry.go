// Package retry is the request-error hook that waits and tries again.
//
// It is the one owner of retries: adapters make one request per attempt. What
// it does is in the log: llm/retry before a wait, llm/retry-started behind it.
// A cancel ends a wait at once.
//
//	rt, err := runtime.New(runtime.Options{Hooks: []any{retry.New(retry.Options{})}})
package retry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// Mode says which failures are tried again.
type Mode string

// Modes of a policy.
const (
	// Normal tries the codes of Options.Codes again, MaxRetries times a step.
	Normal Mode = "normal"
	// Always tries every failure again, without a bound.
	Always Mode = "always"
)

// Truncated says what becomes of a stream that its server ended in order but
// before the answer was complete (see [dsh.ErrStreamClosed]). Such a server has
// often produced, and billed, what it sent, so asking again costs twice. A
// connection that broke, a stall and an error in the stream are not meant: only
// Never takes a broken connection in, too.
type Truncated string

// Levels of Options.Truncated.
const (
	// TruncatedNever: the failure stands, however the connection ended once
	// the answer had begun.
	TruncatedNever Truncated = "never"
	// TruncatedUnseen: another attempt if nobody has seen text of this one, or
	// if it was cut in a tool call, which is worth nothing alone.
	TruncatedUnseen Truncated = "unseen"
	// TruncatedAlways: another attempt, like any failure of the connection.
	TruncatedAlways Truncated = "always"
)

// Defaults of [Options].
const (
	DefaultMaxRetries = 5
	DefaultMaxEmpty   = 2
	DefaultTruncated  = TruncatedUnseen
	DefaultInitial    = 500 * time.Millisecond
	DefaultMax        = 10 * time.Second
	DefaultJitter     = 0.1
)

// Options of a policy. The zero value is the default policy.
type Options struct {
	// Mode defaults to Normal.
	Mode Mode
	// Codes that Normal tries again; nil means [DefaultCodes].
	Codes []dsh.Code
	// MaxRetries of one step; 0 means [DefaultMaxRetries], negative none.
	MaxRetries int
	// MaxEmpty bounds the retries of empty answers among them, since a model
	// that says nothing may go on saying it; 0 means [DefaultMaxEmpty],
	// negative none. Other failures in between do not reset it; only an
	// answer does.
	MaxEmpty int
	// Truncated is for Normal; empty means [DefaultTruncated].
	Truncated Truncated
	// The n-th wait is Initial doubled n-1 times, at most Max; zero values
	// mean [DefaultInitial] and [DefaultMax]. A wait that the provider asks
	// for takes its place if it is not above Max; above it the failure
	// stands (with Always, Max is waited).
	Initial, Max time.Duration
	// Jitter is the part by which a wait of our own is varied at random, up
	// and down; 0 means [DefaultJitter], negative none.
	Jitter float64
	// Rand returns numbers in [0, 1); nil means math/rand.
	Rand func() float64
}

// DefaultCodes are failures that another attempt may not meet.
func DefaultCodes() []dsh.Code {
	return []dsh.Code{
		dsh.CodeEmptyResponse, dsh.CodeRateLimit, dsh.CodeServer, dsh.CodeTimeout, dsh.CodeTransport,
	}
}

func (o Options) withDefaults() Options {
	if o.Mode == "" {
		o.Mode = Normal
	}
	if o.Codes == nil {
		o.Codes = DefaultCodes()
	}
	if o.MaxRetries == 0 {
		o.MaxRetries = DefaultMaxRetries
	}
	if o.MaxEmpty == 0 {
		o.MaxEmpty = DefaultMaxEmpty
	}
	if o.Truncated == "" {
		o.Truncated = DefaultTruncated
	}
	if o.Initial <= 0 {
		o.Initial = DefaultInitial
	}
	if o.Max <= 0 {
		o.Max = DefaultMax
	}
	switch {
	case o.Jitter == 0:
		o.Jitter = DefaultJitter
	case o.Jitter < 0:
		o.Jitter = 0
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return o
}

// Policy is the hook. It keeps no state: how often a step was tried is in the
// position of its attempt.
type Policy struct {
	opts Options
	key  string
}

var _ hook.RequestError = (*Policy)(nil)

// New returns a policy.
func New(o Options) *Policy {
	o = o.withDefaults()
	return &Policy{opts: o, key: o.key()}
}

// key names the policy in the log.
func (o Options) key() string {
	key := []any{o.Mode}
	if o.Mode == Normal {
		key = append(key, o.MaxRetries, o.Codes)
	}
	key = append(key, o.Initial.Milliseconds(), o.Max.Milliseconds(), o.Jitter)
	if o.MaxEmpty != DefaultMaxEmpty || o.Truncated != DefaultTruncated {
		key = append(key, o.MaxEmpty, o.Truncated)
	}
	raw, err := json.Marshal(key)
	if err != nil {
		panic(err) // strings and numbers always marshal.
	}
	return string(raw)
}

// RequestError waits and asks for another attempt where the policy allows it.
// Hooks behind it are asked first: one that repaired something needs no wait.
func (p *Policy) RequestError(
	ctx context.Context, f hook.FailedRequest, next hook.RequestErrorFunc,
) (retry bool, err error) {
	if retry, err = next(ctx, f); retry || err != nil {
		return retry, err
	}
	n := f.Pos.Attempt + 1
	delay, ok := p.delay(f.Failure, n)
	if !ok || !p.allows(f) {
		return false, nil
	}
	if err := p.schedule(ctx, f, n, delay); err != nil {
		return false, err
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return false, nil
	}
	_, err = f.Agent.Append(ctx, dsh.RetryStarted{
		RetryID: retryID(f), Turn: f.Pos.Turn, Step: f.Pos.Step, Retry: n,
	}, dsh.SurfaceOp{}, nil)
	return err == nil, err
}

// allows reports whether what the failed attempt had streamed, and the failures
// before it, leave room for another.
func (p *Policy) allows(f hook.FailedRequest) bool {
	if p.opts.Mode != Normal {
		return true
	}
	if f.Failure.Code == dsh.CodeEmptyResponse {
		empty := 0
		for _, code := range f.Earlier {
			if code == dsh.CodeEmptyResponse {
				empty++
			}
		}
		return empty < p.opts.MaxEmpty
	}
	text, call := streamed(f.Content)
	closed := errors.Is(f.Failure, dsh.ErrStreamClosed)
	switch p.opts.Truncated {
	case TruncatedNever:
		return !closed && (f.Failure.Code != dsh.CodeTransport || len(f.Content) == 0)
	case TruncatedUnseen:
		return !closed || call || !text
	case TruncatedAlways:
	}
	return true
}

// streamed reports whether content holds text that somebody saw, and a call.
func streamed(content []dsh.Block) (text, call bool) {
	for _, b := range content {
		switch b := b.(type) {
		case dsh.Text:
			text = text || strings.TrimSpace(b.Text) != ""
		case dsh.ToolCall:
			call = true
		default: // reasoning is shown by few and kept by none
		}
	}
	return text, call
}

// delay returns how long to wait before the n-th retry; ok is false if there
// must be none.
func (p *Policy) delay(f *dsh.Failure, n int) (d time.Duration, ok bool) {
	o := p.opts
	if o.Mode == Normal && (n > o.MaxRetries || !slices.Contains(o.Codes, f.Code)) {
		return 0, false
	}
	if f.ProviderRetryAfterMs != nil {
		asked := time.Duration(*f.ProviderRetryAfterMs) * time.Millisecond
		if asked > o.Max {
			return o.Max, o.Mode == Always
		}
		return max(asked, 0), true
	}
	d = o.Initial
	for i := 1; i < n && d < o.Max; i++ {
		d *= 2
	}
	d = min(d, o.Max)
	return d + time.Duration(float64(d)*o.Jitter*(2*o.Rand()-1)), true
}

func (p *Policy) schedule(ctx context.Context, f hook.FailedRequest, n int, delay time.Duration) error {
	fact := dsh.RetryScheduled{
		RetryID: retryID(f), Turn: f.Pos.Turn, Step: f.Pos.Step, Provider: f.Provider,
		Mode: string(p.opts.Mode), PolicyKey: p.key, Retry: n, DelayMs: delay.Milliseconds(), Failure: f.Failure,
	}
	if p.opts.Mode == Normal {
		fact.MaxRetries = &p.opts.MaxRetries
	}
	_, err := f.Agent.Append(ctx, fact, dsh.SurfaceOp{}, nil)
	return err
}

// retryID names the retries of one step.
func retryID(f hook.FailedRequest) string {
	return fmt.Sprintf("%s:%d.%d", f.Agent.Session(), f.Pos.Turn, f.Pos.Step)
}
