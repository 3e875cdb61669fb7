package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Response is what the server answers one request with. The zero value is an
// empty answer that ends with stop. Its methods return changed copies.
//
// A response is a list of events: those given to [Raw], or, for the others, a
// first one with the role, one per piece of reasoning and text, two per call,
// one with the finish reason, one with the usage, and [DONE]. Methods that
// name a number of events count these.
type Response struct {
	status int
	header http.Header
	body   *string  // instead of events
	events []string // of Raw

	reasoning string
	text      []string
	calls     []dsh.ToolCall
	finish    string
	usage     json.RawMessage

	faults
}

// faults are what goes wrong with a response.
type faults struct {
	after     int // events before the fault
	fault     fault
	extra     string // the fault's own text
	keepAlive int
	pace      time.Duration
	delay     time.Duration
}

type fault uint8

const (
	noFault fault = iota
	faultCut
	faultEnd
	faultHalf
	faultStall
	faultError
)

// Text answers with text, a piece per event.
func Text(pieces ...string) Response { return Response{text: pieces} }

// ToolCalls answers with calls.
func ToolCalls(calls ...dsh.ToolCall) Response { return Response{calls: calls} }

// Reasoning answers with reasoning only.
func Reasoning(text string) Response { return Response{reasoning: text} }

// Raw answers with events as they are on the wire, each such as
//
//	data: {"choices":[]}
//
// and followed by an empty line. Nothing is added, [DONE] neither.
func Raw(events ...string) Response { return Response{events: slices.Clip(events)} }

// Body answers with status 200 and exactly this body, which is said to be an
// event stream.
func Body(body string) Response { return Response{body: &body} }

// Empty answers with status 200 and no body.
func Empty() Response { return Body("") }

// HTML answers with status 200 and a page, as login walls do.
func HTML() Response {
	return Body("<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n").
		Header("Content-Type", "text/html")
}

// JSON answers with status 200 and a JSON body that is no stream.
func JSON(body string) Response { return Body(body).Header("Content-Type", "application/json") }

// Status answers with a status and a body.
func Status(status int, body string) Response {
	return Response{status: status, body: &body}.Header("Content-Type", "application/json")
}

// RateLimited answers with 429 and a Retry-After: seconds or a date.
func RateLimited(retryAfter string) Response {
	return Status(http.StatusTooManyRequests, `{"error":{"message":"Rate limit reached","type":"rate_limit_error"}}`).
		Header("Retry-After", retryAfter)
}

// RateLimitedFor is RateLimited with retry-after-ms.
func RateLimitedFor(d time.Duration) Response {
	return Status(http.StatusTooManyRequests, `{"error":{"message":"Rate limit reached","type":"rate_limit_error"}}`).
		Header("Retry-After-Ms", strconv.FormatInt(d.Milliseconds(), 10))
}

// Reasoning puts reasoning before the rest.
func (r Response) Reasoning(text string) Response {
	r.reasoning = text
	return r
}

// Text puts text between the reasoning and the calls.
func (r Response) Text(pieces ...string) Response {
	r.text = pieces
	return r
}

// ToolCalls puts calls behind the text.
func (r Response) ToolCalls(calls ...dsh.ToolCall) Response {
	r.calls = calls
	return r
}

// Finish replaces the finish reason, which is tool_calls with calls and stop
// without.
func (r Response) Finish(reason string) Response {
	r.finish = reason
	return r
}

// Usage tells a usage in DeepSeek's form: input tokens not in the cache, input
// tokens in it, and output tokens. Without it, a small one is told.
func (r Response) Usage(input, cached, output int) Response {
	return r.RawUsage(fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_cache_hit_tokens":%d,"prompt_cache_miss_tokens":%d}`,
		input+cached, output, input+cached+output, cached, input))
}

// RawUsage tells a usage in any form.
func (r Response) RawUsage(usage string) Response {
	r.usage = json.RawMessage(usage)
	return r
}

// Header adds a header.
func (r Response) Header(name, value string) Response {
	r.header = r.header.Clone()
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Set(name, value)
	return r
}

// CutAfter breaks the connection after n events.
func (r Response) CutAfter(n int) Response { return r.with(faultCut, n, "") }

// EndAfter ends the body cleanly after n events, without [DONE].
func (r Response) EndAfter(n int) Response { return r.with(faultEnd, n, "") }

// CutInside breaks the connection in the middle of the event behind n others.
func (r Response) CutInside(n int) Response { return r.with(faultHalf, n, "") }

// StallAfter keeps the connection open and silent after n events, until the
// client leaves or the server is closed. With 0 not even headers are sent.
func (r Response) StallAfter(n int) Response { return r.with(faultStall, n, "") }

// ErrorAfter sends an error event after n events and ends. The error is the
// value of the error member.
func (r Response) ErrorAfter(n int, err string) Response { return r.with(faultError, n, err) }

// KeepAlives sends n comments before the first event.
func (r Response) KeepAlives(n int) Response {
	r.keepAlive = n
	return r
}

// Drip waits for d before each event.
func (r Response) Drip(d time.Duration) Response {
	r.pace = d
	return r
}

// Delay waits for d before the headers.
func (r Response) Delay(d time.Duration) Response {
	r.delay = d
	return r
}

func (r Response) with(f fault, after int, extra string) Response {
	r.fault, r.after, r.extra = f, after, extra
	return r
}

// wire returns the events as they are sent.
func (r Response) wire() []string {
	if r.events != nil {
		return r.events
	}
	events := []string{delta(`{"role":"assistant","content":""}`)}
	if r.reasoning != "" {
		events = append(events, delta(`{"reasoning_content":`+quote(r.reasoning)+`}`))
	}
	for _, piece := range r.text {
		events = append(events, delta(`{"content":`+quote(piece)+`}`))
	}
	for i, c := range r.calls {
		events = append(events,
			delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`,
				i, quote(string(c.ID)), quote(c.Name))),
			delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quote(c.Arguments))))
	}
	return append(events,
		`data: {"id":"chatcmpl-test","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":`+
			quote(r.reason())+`}]}`,
		`data: {"id":"chatcmpl-test","object":"chat.completion.chunk","choices":[],"usage":`+r.usageJSON()+`}`,
		`data: [DONE]`)
}

func (r Response) reason() string {
	switch {
	case r.finish != "":
		return r.finish
	case len(r.calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (r Response) usageJSON() string {
	if r.usage != nil {
		return string(r.usage)
	}
	return `{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`
}

func delta(d string) string {
	return `data: {"id":"chatcmpl-test","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + d +
		`,"finish_reason":null}]}`
}

func quote(s string) string {
	b, _ := json.Marshal(strings.ToValidUTF8(s, "\uFFFD"))
	return string(b)
}
