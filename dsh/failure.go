package dsh

import (
	"context"
	"errors"
	"strings"
)

// Code says what kind of failure a request met. Codes never change their
// meaning; new ones may be added.
type Code string

// Codes of a [Failure].
const (
	CodeRateLimit     Code = "RATE_LIMIT"
	CodeServer        Code = "SERVER"
	CodeTimeout       Code = "TIMEOUT"
	CodeTransport     Code = "TRANSPORT"
	CodeAuth          Code = "AUTH"
	CodeQuota         Code = "QUOTA"
	CodeInvalid       Code = "INVALID_REQUEST"
	CodeContextWindow Code = "CONTEXT_WINDOW_EXCEEDED"
	CodeEmptyResponse Code = "EMPTY_RESPONSE"
	CodeContentFilter Code = "CONTENT_FILTER"
	CodeAborted       Code = "ABORTED"
	CodeNoAdapter     Code = "NO_ADAPTER"
	CodeUnknown       Code = "UNKNOWN"
)

// A Failure is an error that enters the log: a code for programs, a message
// for people, and what the provider told about it. It is an error; errors.Is
// against another Failure (such as [ErrRateLimit]) compares codes only.
type Failure struct {
	Message string
	Code    Code
	// Status is the HTTP status, or 0.
	Status int
	// ProviderRetryAfterMs is how long the provider asked to wait, in
	// milliseconds, or nil.
	ProviderRetryAfterMs *int64
	// RequestID is the provider's name for the request, or empty.
	RequestID string
	// Cause is what happened in this process. It is not logged.
	Cause error
}

// Failures to compare against with errors.Is.
var (
	ErrRateLimit     = &Failure{Code: CodeRateLimit}
	ErrServer        = &Failure{Code: CodeServer}
	ErrTimeout       = &Failure{Code: CodeTimeout}
	ErrTransport     = &Failure{Code: CodeTransport}
	ErrAuth          = &Failure{Code: CodeAuth}
	ErrQuota         = &Failure{Code: CodeQuota}
	ErrInvalid       = &Failure{Code: CodeInvalid}
	ErrContextWindow = &Failure{Code: CodeContextWindow}
	ErrEmptyResponse = &Failure{Code: CodeEmptyResponse}
	ErrContentFilter = &Failure{Code: CodeContentFilter}
	ErrAborted       = &Failure{Code: CodeAborted}
	ErrNoAdapter     = &Failure{Code: CodeNoAdapter}
	ErrUnknown       = &Failure{Code: CodeUnknown}
)

// ErrStreamClosed is wrapped by the failure of a stream that its server ended in
// order before the answer was complete. It says nothing about a connection that
// broke.
var ErrStreamClosed = errors.New("the server ended the stream before the answer was complete")

// Error returns the message, or the code where there is none.
func (f *Failure) Error() string {
	if f.Message == "" {
		return string(f.Code)
	}
	return f.Message
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Is reports whether target is a Failure with the same code.
func (f *Failure) Is(target error) bool {
	t, ok := target.(*Failure)
	return ok && t.Code == f.Code
}

// AsFailure returns err as a failure: the structured one in its chain as it
// came, a cancelled context as ABORTED, a deadline as TIMEOUT, and anything
// else flattened to its message with code UNKNOWN. A nil err gives nil.
func AsFailure(err error) *Failure {
	if err == nil {
		return nil
	}
	var f *Failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.Canceled):
		return &Failure{Code: CodeAborted, Message: flatten(err), Cause: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &Failure{Code: CodeTimeout, Message: flatten(err), Cause: err}
	}
	return Flatten(err)
}

// Flatten returns err as a failure with code UNKNOWN whose message is that of
// the whole chain of causes. It is for errors of hooks and of the process
// itself, whose own structure says nothing about a model request.
func Flatten(err error) *Failure {
	return &Failure{Code: CodeUnknown, Message: flatten(err), Cause: err}
}

// flatten joins the messages of err's causes that its own message leaves out.
func flatten(err error) string {
	text := err.Error()
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(cause) {
		if m := cause.Error(); m != "" && !strings.Contains(text, m) {
			text += ": " + m
		}
	}
	if text == "" {
		return "unknown error"
	}
	return text
}
