package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dsh-actor/dsh-actor/cmd/dsh-actor/config"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// A progress tells on stderr what an agent does. Its lines are for people;
// programs read --output stream-json.
type progress struct {
	app   *app
	set   settings
	watch *stopwatch
	paint palette

	mu      sync.Mutex
	running []callKey          // calls that have no result yet
	names   map[callKey]string // of all calls
	waiting string             // what is waited for; empty for nothing
	spoke   bool               // the attempt has said something
	midline bool               // stdout's line is open
	shared  bool               // stdout and stderr are one terminal
	silence silence
	lost    int // calls of an interrupted turn
}

func newProgress(a *app, set settings, watch *stopwatch) *progress {
	p := &progress{
		app: a, set: set, watch: watch, names: map[callKey]string{},
		shared: set.output == outputText && a.stdout.terminal && a.stderr.terminal,
	}
	if a.coloured(a.stderr) {
		p.paint = colours
	}
	return p
}

// start says who answers.
func (p *progress) start(a *runtime.Agent) {
	if p.set.note != "" {
		p.line(warn, "%s", p.set.note)
	}
	if p.set.problems != nil {
		p.line(warn, "%v", p.set.problems)
	}
	p.session(a)
	if p.set.verbose {
		where := ""
		if p.set.baseURL != "" {
			where = " at " + p.set.baseURL
		}
		p.line(faint, "provider %s, model %s%s, %s, in %s", p.set.provider, p.set.model, where, plural(len(p.set.tools), "tool"), p.set.cwd)
	}
	p.silence.begin(p.app.quiet, p.still)
}

// session says in which session the run is, and what it found there. One that is
// not kept is nobody's business.
func (p *progress) session(a *runtime.Agent) {
	if p.set.store == config.StoreMemory && !p.set.verbose {
		return
	}
	text := "session " + string(a.Session())
	past := p.set.past
	switch {
	case past == nil:
	case past.fork:
		text += fmt.Sprintf(", a copy of %s up to event %d", past.id, past.boundary)
	default:
		text += ", with " + plural(past.turns, "turn") + " so far"
	}
	p.line(faint, "%s", text)
	p.repairs()
	if past != nil && past.tools != nil && len(p.set.tools) < len(toolNames) && !p.set.toolsGiven {
		p.line(faint, "tools as before: %s; --tools names others", first(strings.Join(past.tools, ", "), noTools))
	}
	if past != nil && past.pending > 0 {
		p.line(warn, "still pending, and coming first: %s", plural(past.pending, "message"))
	}
}

// repairs tells what the store had to repair, of this session or of a
// sub-agent's.
func (p *progress) repairs() {
	for _, r := range p.set.mended.take() {
		p.line(warn, "a crash had torn the end of the log of session %s: %s cut off, and what could be read of it kept: %s",
			r.ID, plural(int(r.Dropped), "byte"), plural(r.Recovered, "event"))
	}
}

// closes tells of a turn that a crash had left open.
func (p *progress) closes(ev dsh.Event) {
	switch d := ev.Data.(type) {
	case dsh.ToolFinished:
		p.lost++
	case dsh.TurnEnd:
		without := ""
		if p.lost > 0 {
			without = ", with an error as the result of " + plural(p.lost, "call")
		}
		p.line(warn, "turn %d was interrupted before its end; it is closed%s", d.Turn, without)
	default:
	}
}

// stop ends what start began.
func (p *progress) stop() { p.silence.end() }

// line writes one line of its own.
func (p *progress) line(c colour, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(c, format, args...)
}

func (p *progress) write(c colour, format string, args ...any) {
	text := p.paint.apply(c, printable(fmt.Sprintf(format, args...))) + "\n"
	if p.shared && p.midline {
		text = "\n" + text
		p.midline = false
	}
	_, _ = p.app.stderr.WriteString(text)
}

// event tells of one event.
func (p *progress) event(ev dsh.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silence.broken()
	p.app.limit.Store(0)
	switch d := ev.Data.(type) {
	case dsh.StepStart:
		p.spoke, p.waiting = false, "the model"
		p.write(faint, "step %d", d.Step)
	case dsh.AssistantChunk:
		p.chunk(d.Chunk)
	case dsh.AssistantMessage:
		p.midline, p.waiting = false, ""
		if p.set.verbose && d.Usage != nil {
			p.write(faint, "  %s", count(*d.Usage))
		}
	case dsh.ToolStarted:
		key := callKey{d.Turn, d.Step, d.CallID}
		p.running, p.names[key] = append(p.running, key), d.Name
		p.write(plain, "  → %s%s", d.Name, preview(d.Arguments))
	case dsh.ToolFinished:
		p.finished(d)
	case dsh.RetryScheduled:
		p.retry(d)
	case dsh.RetryStarted:
		p.spoke, p.waiting = false, "the model"
	case dsh.StepEnd, dsh.TurnEnd:
		p.midline, p.waiting = false, ""
	case dsh.InboxSpliced:
		if p.set.verbose && d.Outcome != "" {
			p.write(faint, "  %s withdrawn", plural(d.Removed, "message"))
		}
	default:
	}
}

func (p *progress) chunk(c dsh.Chunk) {
	if d, ok := c.(dsh.TextDelta); ok && d.Text != "" {
		p.spoke = true
		p.midline = !strings.HasSuffix(d.Text, "\n")
	}
}

func (p *progress) finished(d dsh.ToolFinished) {
	r, ok := d.Message.Content[0].(dsh.ToolResult)
	if !ok {
		return
	}
	key := callKey{d.Turn, d.Step, r.CallID}
	p.running = slices.DeleteFunc(p.running, func(k callKey) bool { return k == key })
	took := ""
	if t, ran := p.watch.take(key); ran {
		took = " " + short(t)
	}
	said := summary(dsh.TextOf(r.Content), p.set.verbose || r.IsError)
	if r.IsError {
		p.write(fail, "  ✗ %s%s%s", p.names[key], took, said)
	} else {
		p.write(good, "  ✓ %s%s%s", p.names[key], took, said)
	}
	delete(p.names, key)
}

func (p *progress) retry(d dsh.RetryScheduled) {
	p.midline, p.waiting = false, ""
	of := ""
	if d.MaxRetries != nil {
		of = fmt.Sprintf("/%d", *d.MaxRetries)
	}
	failure := ""
	if d.Failure != nil {
		failure = fmt.Sprintf(" after %s: %s", d.Failure.Code, oneLine(d.Failure.Message, 200))
	}
	p.write(warn, "  retry %d%s in %s%s", d.Retry, of, short(time.Duration(d.DelayMs)*time.Millisecond), failure)
	if p.spoke {
		p.write(warn, "  what the model has said in this step does not count; it starts again")
	}
}

// still tells that nothing has come for a while. It is called by the silence.
func (p *progress) still(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what := p.waiting
	if len(p.running) > 0 {
		names := make([]string, len(p.running))
		for i, key := range p.running {
			names[i] = p.names[key]
		}
		what = strings.Join(names, ", ")
	}
	left := ""
	if at := p.app.limit.Load(); at > 0 && len(p.running) == 0 {
		if t := time.Until(time.UnixMilli(at)); t > 0 {
			left = ", given up in " + short(t)
		}
	}
	if what != "" {
		p.write(faint, "  quiet for %s, waiting for %s%s", short(d), what, left)
	}
}

// end tells how the run ended.
func (p *progress) end(r *record, end result, took time.Duration) {
	p.repairs()
	c, how := good, string(end.Ending)
	if end.Error != nil {
		c = fail
		how = first(how, "failed")
		if end.Ending != dsh.EndError {
			how += ": " + end.Error.Message
		} else {
			how += ": " + end.Error.Code + ": " + oneLine(end.Error.Message, 500)
		}
	}
	parts := []string{how, plural(r.steps, "step"), plural(r.toolCalls, "tool call")}
	if r.retries > 0 {
		parts = append(parts, plural(r.retries, "retry"))
	}
	p.line(c, "%s", strings.Join(append(parts, count(r.usage)), " · ")+priced(end.Cost)+" · "+short(took))
	if end.Pending > 0 {
		p.line(warn, "%s accepted and not processed: still pending in session %s", plural(end.Pending, "message"), end.Session)
	}
	if more := p.set.goOn(end.Session); more != "" && (p.app.stderr.terminal || p.set.verbose) {
		if end.Pending == 0 {
			more += ` "…"`
		}
		p.line(faint, "to go on: %s", more)
	}
}

func priced(c *cost) string {
	if c == nil {
		return ""
	}
	return " · " + c.String()
}
