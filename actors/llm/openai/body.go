package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// maxStray bounds what is kept of an answer that is no event stream.
const maxStray = 1 << 20

// drainTime is how long the body is read on behind [DONE], so that the
// connection can be used again. Some servers hold it open.
const drainTime = 50 * time.Millisecond

// Errors of a body, turned into failures by failure.go.
var (
	errEmptyBody = errors.New("the answer has no body")
	errNoStream  = errors.New("the answer is no event stream")
)

// eventBody is the body of an answer as go-openai reads it: one line
//
//	data: {…}
//
// per event and a last one with [DONE]. Everything else becomes the error of
// Read: a *reply for an error that the server told in any shape, errEmptyBody,
// a *strayError, [ErrTruncated] for an end without [DONE], or the error of the
// connection. Read returns io.EOF behind [DONE] only.
type eventBody struct {
	raw   io.ReadCloser
	abort func() // ends the request, and with it a Read of raw
	sse   *sseReader

	out    []byte // to be read
	line   []byte // out's array
	err    error  // behind out
	stray  []byte
	events int
	done   bool
}

// A strayError is an answer that is something else than an event stream.
type strayError struct{ text []byte }

func (e *strayError) Error() string { return errNoStream.Error() }

func newEventBody(raw io.ReadCloser, abort func()) *eventBody {
	return &eventBody{raw: raw, abort: abort, sse: newSSEReader(raw)}
}

// Read implements io.Reader.
func (b *eventBody) Read(p []byte) (int, error) {
	for len(b.out) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.advance()
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	return n, nil
}

// Close reads a finished answer to its end and closes the connection of any
// other.
func (b *eventBody) Close() error {
	if b.done {
		timer := time.AfterFunc(drainTime, b.abort)
		_, _ = io.CopyN(io.Discard, b.raw, maxStray)
		timer.Stop()
	}
	return b.raw.Close()
}

// advance reads one event into out or err.
func (b *eventBody) advance() {
	ev, err := b.sse.next()
	switch {
	case err != nil:
		b.err = b.atEnd(err)
	case ev.done:
		b.finish()
	case ev.stray:
		b.takeStray(ev.data)
	case ev.name == "error":
		b.err = replyOf(ev.data)
	default:
		b.events++
		if r := errorIn(ev.data); r != nil {
			b.err = r
			return
		}
		b.put(ev.data)
	}
}

// put makes data the next line. go-openai takes a line that begins with an
// error member for an error even if that is null.
func (b *eventBody) put(data []byte) {
	b.line = append(b.line[:0], "data: "...)
	if bytes.HasPrefix(data, []byte(`{"error"`)) {
		b.line = append(b.line, "{ "...)
		data = data[1:]
	}
	for _, c := range data {
		if c == '\n' || c == '\r' {
			c = ' ' // white space between tokens: strings hold none
		}
		b.line = append(b.line, c)
	}
	b.line = append(b.line, '\n')
	b.out = b.line
}

func (b *eventBody) finish() {
	b.out = []byte("data: [DONE]\n")
	b.err, b.done = io.EOF, true
}

func (b *eventBody) takeStray(line []byte) {
	if r := errorIn(line); r != nil {
		b.err = r
		return
	}
	if room := maxStray - len(b.stray); len(line) >= room {
		line = line[:max(room-1, 0)]
	}
	if len(b.stray) < maxStray-1 {
		b.stray = append(append(b.stray, line...), '\n')
	}
}

// atEnd says what the end of the connection means.
func (b *eventBody) atEnd(err error) error {
	if !isEOF(err) && !errors.Is(err, errMidEvent) {
		return err
	}
	if r := errorIn(b.stray); r != nil {
		return r
	}
	switch {
	case b.events == 0 && isWholeAnswer(b.stray):
		b.put(bytes.TrimSpace(b.stray))
		b.out = append(b.out, "data: [DONE]\n"...)
		return io.EOF
	case b.events == 0 && len(bytes.TrimSpace(b.stray)) > 0:
		return &strayError{b.stray}
	case !b.sse.seen && errors.Is(err, io.EOF):
		return errEmptyBody
	}
	ended := []error{ErrTruncated}
	if errors.Is(err, errMidEvent) {
		ended = append(ended, errMidEvent)
	}
	if b.sse.broken || errors.Is(err, io.ErrUnexpectedEOF) {
		ended = append(ended, io.ErrUnexpectedEOF)
	}
	return errors.Join(ended...)
}

// isWholeAnswer reports whether the server ignored that a stream was asked
// for and answered with one object.
func isWholeAnswer(body []byte) bool {
	var answer struct {
		Choices []json.RawMessage `json:"choices"`
	}
	return json.Unmarshal(body, &answer) == nil && len(answer.Choices) > 0
}
