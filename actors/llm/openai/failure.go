package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Causes of failures that the adapter finds out by itself, for errors.Is.
var (
	// ErrTruncated: the connection ended before the answer did. It is a
	// [dsh.ErrStreamClosed] too if the server ended it in order.
	ErrTruncated = errors.New("openai: the stream ended before the answer did")
	// ErrStalled: a watchdog fired.
	ErrStalled = errors.New("openai: the server fell silent")
	// ErrMalformed: the answer is not a stream of JSON chunks.
	ErrMalformed = errors.New("openai: the answer is malformed")
	// ErrLeakedMarkup: a tool call arrived as text.
	ErrLeakedMarkup = errors.New("openai: the model wrote its tool call as text")
)

// errClosed is the end that a server made in order, where there was no [DONE].
var errClosed = fmt.Errorf("%w (%w)", ErrTruncated, dsh.ErrStreamClosed)

// What a failure quotes of an answer is bounded, in bytes: before secrets are
// looked for, and after.
const (
	maxQuote   = 64 << 10
	maxExcerpt = 1024
)

// failure turns what ended a stream into the error that is yielded.
func (p *Provider) failure(ctx context.Context, s *exchange, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if stall := s.dog.stalled(); stall != nil {
		err = stall
	}
	f := failureOf(err)
	secrets := p.secrets.with(s.own)
	asked := retryText(f.Message) // of the whole text
	f.Message = secrets.readable(f.Message)
	f.RequestID = secrets.readable(s.requestID)
	if f.Status == 0 && s.status >= http.StatusMultipleChoices {
		f.Status = s.status
	}
	f.ProviderRetryAfterMs = s.retryAfter
	if f.ProviderRetryAfterMs == nil && f.Code == dsh.CodeRateLimit {
		if f.ProviderRetryAfterMs = asked; asked == nil {
			f.ProviderRetryAfterMs = s.resets
		}
	}
	if f.Code == dsh.CodeInvalid && f.Status != 0 {
		f.Message += " [request: " + excerpt(secrets.redact(p.set.shapeOf(s.request, len(s.body))), maxShapeBytes) + "]"
	}
	return f
}

// readable returns text for a failure. It is redacted before it is cut, so
// that no half of a secret is left at the end.
func (s secrets) readable(text string) string {
	return excerpt(s.redact(text[:min(len(text), maxQuote)]), maxExcerpt)
}

// failureOf classifies err, whose text may hold secrets still. The cause it
// keeps holds none.
func failureOf(err error) *dsh.Failure {
	var r *reply
	var stray *strayError
	var known *dsh.Failure
	switch {
	case errors.As(err, &known):
		f := *known
		return &f
	case errors.As(err, &r):
		return &dsh.Failure{Code: classify(r), Status: r.status, Message: replyMessage(r)}
	case errors.As(err, &stray):
		return strayFailure(stray)
	case errors.Is(err, ErrStalled):
		return &dsh.Failure{Code: dsh.CodeTimeout, Message: err.Error(), Cause: err}
	case errors.Is(err, errEmptyBody):
		return &dsh.Failure{Code: dsh.CodeEmptyResponse, Message: "openai: " + err.Error(), Cause: errEmptyBody}
	case errors.Is(err, ErrTruncated), isEOF(err):
		return truncated(err)
	case errors.Is(err, ErrMalformed), errors.Is(err, errEventTooLong):
		return &dsh.Failure{Code: dsh.CodeTransport, Message: err.Error(), Cause: ErrMalformed}
	}
	return transportFailure(err)
}

func truncated(err error) *dsh.Failure {
	message := ErrTruncated.Error()
	if errors.Is(err, errMidEvent) {
		message += ": " + errMidEvent.Error()
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &dsh.Failure{Code: dsh.CodeTransport, Message: message + ": the connection broke", Cause: ErrTruncated}
	}
	return &dsh.Failure{Code: dsh.CodeTransport, Message: message, Cause: errClosed}
}

func strayFailure(e *strayError) *dsh.Failure {
	return &dsh.Failure{
		Code:    dsh.CodeTransport,
		Message: fmt.Sprintf("%v: %v but begins with: %s", ErrMalformed, e, e.text),
		Cause:   ErrMalformed,
	}
}

func replyMessage(r *reply) string {
	where := "error in the stream"
	if r.status != 0 {
		where = fmt.Sprintf("status %d", r.status)
	}
	text := r.message
	if r.detail != "" {
		text += ": " + r.detail
	}
	if strings.TrimSpace(text) == "" {
		text = http.StatusText(r.status)
	}
	return fmt.Sprintf("openai: %s: %s", where, text)
}

// transportFailure is for errors of the connection. The request's address is
// left out of it: it may hold what nobody should read.
func transportFailure(err error) *dsh.Failure {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	f := &dsh.Failure{Code: dsh.CodeTransport, Message: "openai: " + err.Error(), Cause: err}
	var n net.Error
	if errors.As(err, &n) && n.Timeout() || u != nil && u.Timeout() {
		f.Code = dsh.CodeTimeout
	}
	return f
}

// excerpt shortens text to limit bytes and drops control characters.
func excerpt(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD"))
	if len(text) <= limit {
		return text
	}
	end := limit
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
