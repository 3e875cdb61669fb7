package dsh_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// quiet is an error that keeps its cause to itself.
type quiet struct{ cause error }

func (quiet) Error() string   { return "store" }
func (q quiet) Unwrap() error { return q.cause }

func TestFailureIs(t *testing.T) {
	f := &dsh.Failure{Code: dsh.CodeRateLimit, Message: "slow down", Cause: context.DeadlineExceeded}
	err := fmt.Errorf("llm: stream: %w", f)
	if !errors.Is(err, dsh.ErrRateLimit) || errors.Is(err, dsh.ErrServer) {
		t.Error("codes are not compared")
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error("the cause is hidden")
	}
	if f.Error() != "slow down" || dsh.ErrQuota.Error() != "QUOTA" {
		t.Errorf("says %q and %q", f, dsh.ErrQuota)
	}
}

func TestAsFailure(t *testing.T) {
	f := &dsh.Failure{Code: dsh.CodeAuth, Message: "no key"}
	for _, tc := range []struct {
		name    string
		err     error
		code    dsh.Code
		message string
	}{
		{"structured", f, dsh.CodeAuth, "no key"},
		{"wrapped", fmt.Errorf("llm: %w", f), dsh.CodeAuth, "no key"},
		{"cancelled", fmt.Errorf("read: %w", context.Canceled), dsh.CodeAborted, "read: context canceled"},
		{"deadline", context.DeadlineExceeded, dsh.CodeTimeout, "context deadline exceeded"},
		{"plain", errors.New("broke"), dsh.CodeUnknown, "broke"},
		{"with a quiet cause", quiet{quiet{errors.New("disk full")}}, dsh.CodeUnknown, "store: disk full"},
		{"without words", errors.New(""), dsh.CodeUnknown, "unknown error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := dsh.AsFailure(tc.err)
			if got.Code != tc.code || got.Message != tc.message {
				t.Errorf("got %s %q, want %s %q", got.Code, got.Message, tc.code, tc.message)
			}
			if !errors.Is(got, f) && !errors.Is(got, tc.err) {
				t.Error("the cause is lost")
			}
		})
	}
	if dsh.AsFailure(fmt.Errorf("llm: %w", f)) != f {
		t.Error("a structured failure was copied")
	}
	if dsh.AsFailure(nil) != nil {
		t.Error("no error is a failure")
	}
	if got := dsh.Flatten(fmt.Errorf("hook: %w", f)); got.Code != dsh.CodeUnknown || got.Message != "hook: no key" {
		t.Errorf("flattened to %s %q", got.Code, got.Message)
	}
}
