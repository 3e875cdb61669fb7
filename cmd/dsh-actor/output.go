package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// outputVersion is the version of everything that is written as JSON. Members
// are only added within a version.
const outputVersion = 1

// A view is what a run writes to stdout. Its methods are called one at a time.
type view interface {
	start(s started)
	// event shows an event of the run's agent or, with who, of a sub-agent.
	event(ev dsh.Event, who *dsh.Initiator)
	end(r result)
}

func newView(output string, w *outlet) view {
	switch output {
	case outputJSON:
		return &jsonView{w: w}
	case outputStreamJSON:
		return &streamView{w: w}
	}
	return &textView{w: w}
}

// started is the first line of stream-json.
type started struct {
	Version  int           `json:"version"`
	Type     string        `json:"type"` // "start"
	Session  dsh.SessionID `json:"session"`
	Agent    dsh.AgentID   `json:"agent"`
	Provider string        `json:"provider"`
	Model    string        `json:"model"`
	CWD      string        `json:"cwd"`
	Tools    []string      `json:"tools"`
	origin
}

// origin is where a run's session is and comes from.
type origin struct {
	Store   string `json:"store,omitempty"`   // "memory" keeps nothing
	Resumed bool   `json:"resumed,omitempty"` // the session was there before
	// ForkedFrom is the session that this one is a copy of, ForkedAt how many
	// events were copied.
	ForkedFrom dsh.SessionID `json:"forked_from,omitempty"`
	ForkedAt   *dsh.Seq      `json:"forked_at,omitempty"`
}

// result is the object of json and the last line of stream-json.
type result struct {
	Version    int           `json:"version"`
	Type       string        `json:"type"` // "result"
	Session    dsh.SessionID `json:"session"`
	Agent      dsh.AgentID   `json:"agent"`
	Provider   string        `json:"provider"`
	Model      string        `json:"model"`
	Turn       int           `json:"turn"`
	Ending     dsh.EndKind   `json:"ending"` // as in turn/end; empty if there was none
	Cause      string        `json:"cause,omitempty"`
	OK         bool          `json:"ok"`
	ExitCode   int           `json:"exit_code"`
	Text       string        `json:"text"`
	Usage      tokens        `json:"usage"`          // without that of sub-agents
	UsageTotal tokens        `json:"usage_total"`    // with it
	Requests   int           `json:"requests"`       // without those of sub-agents
	Cost       *cost         `json:"cost,omitempty"` // of usage_total, by the price of each model
	Children   []childResult `json:"children"`       // sub-agents at any depth, in the order in which they ended
	Steps      int           `json:"steps"`
	ToolCalls  int           `json:"tool_calls"`
	Retries    int           `json:"retries"`
	DurationMs int64         `json:"duration_ms"`
	Pending    int           `json:"pending"`
	Error      *problem      `json:"error,omitempty"`
	origin
}

// problem is why a run is not ok. Codes are those of the failure, or
// MAX_TOKENS, TIME_LIMIT, BLOCKED, INTERRUPTED, ABORTED, OUTPUT_CLOSED or
// NOT_ENDED, or, for a run that has not begun, STORE_UNUSABLE, SESSION_IN_USE or
// SESSION_UNREADABLE.
type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// problemOf returns the problem of a run that an error ended or kept from
// beginning.
func problemOf(err error) *problem {
	f := dsh.AsFailure(err)
	code := string(f.Code)
	switch {
	case errors.Is(err, errUnusable):
		code = "STORE_UNUSABLE"
	case errors.Is(err, session.ErrInUse):
		code = "SESSION_IN_USE"
	case spoilt(err):
		code = "SESSION_UNREADABLE"
	}
	return &problem{code, f.Message}
}

// tokens is the usage of all requests of a run, failed ones included. The
// counts are disjoint, but for reasoning, which is part of output.
type tokens struct {
	Input      int64  `json:"input_tokens"`
	Output     int64  `json:"output_tokens"`
	CacheRead  *int64 `json:"cache_read_tokens,omitempty"`
	CacheWrite *int64 `json:"cache_write_tokens,omitempty"`
	Reasoning  *int64 `json:"reasoning_tokens,omitempty"`
	// HitRatio is the part of the prompts that came from a cache; absent if
	// nothing was told of one.
	HitRatio *float64 `json:"cache_hit_ratio,omitempty"`
}

// cost is what a run cost by the configured price.
type cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// costOf returns what requests to each model cost together. It returns nil if
// the price of one of them is not configured, or in another currency: a sum
// that leaves something out would mislead.
func costOf(price func(model string) llm.Price, routes []dsh.RouteUsage) *cost {
	var sum *cost
	for _, r := range routes {
		p := price(r.Model)
		currency := first(p.Currency, llm.DefaultCurrency)
		switch {
		case !p.Known() || sum != nil && sum.Currency != currency:
			return nil
		case sum == nil:
			sum = &cost{Currency: currency}
		}
		sum.Amount += p.Of(r.Usage)
	}
	if sum != nil {
		const places = 1e9 // beyond them floats only round
		sum.Amount = math.Round(sum.Amount*places) / places
	}
	return sum
}

// String returns the amount with as many digits as say something.
func (c *cost) String() string {
	digits := 4
	if c.Amount >= 1 {
		digits = 2
	}
	return strconv.FormatFloat(c.Amount, 'f', digits, 64) + " " + c.Currency
}

func tokensOf(u dsh.Usage) tokens {
	t := tokens{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens, nil}
	if ratio, ok := u.CacheHitRatio(); ok {
		ratio = math.Round(ratio*1e4) / 1e4
		t.HitRatio = &ratio
	}
	return t
}

// writeJSON writes v on one line.
func writeJSON(w io.Writer, v any) error {
	var line strings.Builder
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, line.String())
	return err
}

// A write that fails breaks the outlet, which ends the run: the views need not
// look at errors.

// textView writes the assistant's text as it comes.
type textView struct {
	w       *outlet
	midline bool
	buf     []byte
}

func (v *textView) start(started) {}

func (v *textView) event(ev dsh.Event, who *dsh.Initiator) {
	if who != nil {
		return // its parent says what matters
	}
	switch d := ev.Data.(type) {
	case dsh.AssistantChunk:
		if delta, ok := d.Chunk.(dsh.TextDelta); ok && delta.Text != "" {
			v.text(delta.Text)
		}
	case dsh.AssistantMessage, dsh.RetryScheduled, dsh.StepEnd:
		v.line()
	default:
	}
}

func (v *textView) text(s string) {
	if v.w.terminal {
		s = printable(s)
	}
	if s == "" {
		return
	}
	v.buf = append(v.buf[:0], s...)
	_, _ = v.w.Write(v.buf)
	v.midline = !strings.HasSuffix(s, "\n")
}

// line ends a line that is open.
func (v *textView) line() {
	if v.midline {
		_, _ = v.w.WriteString("\n")
		v.midline = false
	}
}

func (v *textView) end(result) { v.line() }

// jsonView writes one object at the end.
type jsonView struct{ w *outlet }

func (v *jsonView) start(started)                   {}
func (v *jsonView) event(dsh.Event, *dsh.Initiator) {}
func (v *jsonView) end(r result)                    { _ = writeJSON(v.w, r) }

// eventLine begins the line of an event.
const eventLine = `{"version":1,"type":"event",`

// streamView writes a line per event.
type streamView struct {
	w     *outlet
	agent dsh.AgentID
	buf   []byte
}

func (v *streamView) start(s started) {
	v.agent = s.Agent
	_ = writeJSON(v.w, s)
}

func (v *streamView) event(ev dsh.Event, who *dsh.Initiator) {
	v.buf = append(v.buf[:0], eventLine...)
	if who == nil {
		v.buf = fmt.Appendf(v.buf, `"agent":%q,`, v.agent)
	} else {
		v.buf = fmt.Appendf(v.buf, `"agent":%q,"parent":%q,"depth":%d,`, who.Agent, who.Parent, who.Depth)
	}
	v.buf = append(v.buf, `"event":`...)
	v.buf = append(ev.AppendJSON(v.buf), "}\n"...)
	_, _ = v.w.Write(v.buf)
}

func (v *streamView) end(r result) { _ = writeJSON(v.w, r) }
