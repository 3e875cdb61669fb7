package transcript

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/words"
)

// Options of a [Printer]. The zero value shortens long texts and neither wraps
// nor colours.
type Options struct {
	// Width is where lines are wrapped, in characters; 0 wraps none.
	Width int
	// Colour marks lines with the escape sequences of terminals.
	Colour bool
	// Full shows every text whole.
	Full bool
	// From is the first event that is told of, Turn the only turn; 0 is all.
	From dsh.Seq
	Turn int
	// Location is that of times; nil is UTC.
	Location *time.Location
}

// How much is shown of a text unless all is to be.
const (
	lineMost     = 400 // characters of a line
	reasonLines  = 6
	messageLines = 40
	resultLines  = 8
	textMost     = 4000 // bytes
)

// A Printer writes a transcript. NewPrinter makes one. Its methods return the
// first error of its writer, after which they do nothing.
type Printer struct {
	w    io.Writer
	opts Options
	fold *Fold
	err  error
	out  []byte
	any  bool // something was written
}

// NewPrinter returns a printer of the session with header h that writes to w.
// Each call of a method is one write, or none.
func NewPrinter(w io.Writer, h *dsh.SessionHeader, opts Options) *Printer {
	if opts.Location == nil {
		opts.Location = time.UTC
	}
	return &Printer{w: w, opts: opts, fold: NewFold(h)}
}

// Fold returns what is known of the events so far.
func (p *Printer) Fold() *Fold { return p.fold }

// Session tells what a header says.
func (p *Printer) Session(h *dsh.SessionHeader) error {
	p.line(head, 0, "session "+string(h.ID))
	p.line(faint, 1, join(p.date(h.CreatedAt), h.CWD, prefixed("preset ", h.AgentPreset)))
	switch {
	case h.Origin != "":
		p.line(faint, 1, fmt.Sprintf("sub-agent of %s, depth %d", cmp.Or(h.ParentSession, "an unknown session"), h.DelegationDepth))
	case h.ParentSession != "":
		p.line(faint, 1, "fork of "+string(h.ParentSession))
	}
	return p.flush()
}

// Event tells of one event, packed or not.
func (p *Printer) Event(ev *dsh.Event) error {
	for _, item := range p.fold.Add(ev) {
		p.item(item)
	}
	return p.flush()
}

// End tells what is left to be told when there are no more events, or none for
// now.
func (p *Printer) End() error {
	for _, item := range p.fold.End() {
		p.item(item)
	}
	return p.flush()
}

// Remark adds a remark of the caller's, such as why there is no more.
func (p *Printer) Remark(text string) error {
	p.line(warn, 0, text)
	return p.flush()
}

// shows reports whether a reader wants to see an item.
func (p *Printer) shows(i Item) bool {
	at := i.Place()
	return at.Seq >= p.opts.From && (p.opts.Turn == 0 || at.Turn == p.opts.Turn)
}

func (p *Printer) item(i Item) {
	if !p.shows(i) {
		return
	}
	switch i := i.(type) {
	case TurnBegan:
		p.gap()
		p.line(head, 0, fmt.Sprintf("turn %d · %s · event %d", i.Turn, p.date(i.Time), i.Seq))
	case TurnEnded:
		c, how := ending(i.Ending)
		p.line(c, 0, join(fmt.Sprintf("turn %d %s", i.Turn, how), i.Sum.String(), words.Duration(i.Took)))
	case StepBegan:
		p.line(faint, 1, fmt.Sprintf("step %d", i.Step))
	case StepEnded:
		p.line(faint, 1, join(fmt.Sprintf("step %d ended", i.Step), i.Sum.cost(), words.Duration(i.Took)))
	case Message:
		p.message(i)
	case Answer:
		p.answer(i)
	case Call:
		p.call(i)
	case Result:
		p.result(i)
	case Retry:
		p.retry(i)
	case Request:
		p.request(i)
	case Note:
		p.line(faint, 1, "· "+i.Text)
	case End:
		p.end(i)
	}
}

// gap sets what follows apart.
func (p *Printer) gap() {
	if p.any || len(p.out) > 0 {
		p.out = append(p.out, '\n')
	}
}

// text writes the lines of a text, not more of them than lines, unless all is
// to be shown.
func (p *Printer) text(c style, depth int, text string, lines int) {
	text = strings.Trim(text, "\n")
	left := 0
	if !p.opts.Full {
		text, left = cut(text, lines, textMost)
	}
	for line := range strings.SplitSeq(text, "\n") {
		p.line(c, depth, line)
	}
	if left > 0 {
		p.line(faint, depth, "… "+words.Plural(left, "more line"))
	}
}

// line writes one line; it is the one place that text of a log passes.
func (p *Printer) line(c style, depth int, line string) {
	line = strings.TrimRight(strings.ReplaceAll(clean(line), "\n", " "), " ")
	if !p.opts.Full {
		line = shorten(line, lineMost)
	}
	width := 0
	if p.opts.Width > 0 {
		width = max(p.opts.Width-2*depth, leastWidth)
	}
	for _, piece := range wrap(line, width) {
		if piece != "" {
			for range depth {
				p.out = append(p.out, "  "...)
			}
		}
		if p.opts.Colour && c != plain && piece != "" {
			p.out = append(append(append(p.out, escapes[c]...), piece...), reset...)
		} else {
			p.out = append(p.out, piece...)
		}
		p.out = append(p.out, '\n')
	}
}

func (p *Printer) flush() error {
	if len(p.out) > 0 && p.err == nil {
		_, p.err = p.w.Write(p.out)
		p.any = true
	}
	if p.out = p.out[:0]; cap(p.out) > 1<<20 {
		p.out = nil
	}
	return p.err
}

func (p *Printer) date(ms int64) string {
	return time.UnixMilli(ms).In(p.opts.Location).Format(time.DateTime)
}

// join sets parts side by side that say something.
func join(parts ...string) string {
	var out strings.Builder
	for _, part := range parts {
		if part == "" {
			continue
		}
		if out.Len() > 0 {
			out.WriteString(" · ")
		}
		out.WriteString(part)
	}
	return out.String()
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// String says what was done and what it took.
func (s Sum) String() string {
	parts := []string{words.Plural(s.Steps, "step")}
	if s.Calls > 0 {
		calls := words.Plural(s.Calls, "tool call")
		if s.CallsFailed > 0 {
			calls += fmt.Sprintf(", %d failed", s.CallsFailed)
		}
		parts = append(parts, calls)
	}
	if s.Retries > 0 {
		parts = append(parts, words.Plural(s.Retries, "retry"))
	}
	return join(append(parts, s.cost())...)
}

// cost says what requests used.
func (s Sum) cost() string {
	if s.Requests == 0 {
		return ""
	}
	return words.Usage(s.Usage)
}
