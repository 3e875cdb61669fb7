package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/words"
)

// ending says how a turn ended.
func ending(e dsh.Ending) (style, string) {
	switch e.Kind {
	case dsh.EndCompleted:
		return good, "completed"
	case dsh.EndAborted:
		return warn, "aborted by " + cause(e.Cause)
	case dsh.EndError:
		return fail, "failed" + failure(": ", e.Failure)
	case dsh.EndMaxTokens:
		return warn, "cut off by the limit of tokens"
	case dsh.EndBlocked:
		return warn, "blocked by a hook"
	case dsh.EndInterrupted:
		return warn, "interrupted: its process ended"
	}
	return warn, "ended with " + string(e.Kind)
}

func cause(c dsh.Cause) string {
	switch c.Kind {
	case dsh.CauseUser:
		return "the user"
	case dsh.CauseParent:
		return "its parent"
	case dsh.CauseHook:
		return "a hook" + prefixed(": ", c.Reason)
	case dsh.CauseDisposed:
		return "the end of its process"
	}
	return string(c.Kind)
}

// failure says what a request met.
func failure(before string, f *dsh.Failure) string {
	if f == nil {
		return ""
	}
	said := before + string(f.Code)
	if f.Status != 0 {
		said += fmt.Sprintf(" (HTTP %d)", f.Status)
	}
	return said + prefixed(": ", words.OneLine(f.Message, lineMost))
}

// from names who wrote a user-role message.
func from(m *dsh.Message) string {
	switch s := m.Source.(type) {
	case dsh.UserSource, nil:
		return "user"
	case dsh.PluginSource:
		return "plugin" + prefixed(" ", s.Plugin)
	case dsh.OpaqueSource:
		if kind, id := delegation.Sender(m); id != "" {
			return kind + " " + string(id)
		}
		return s.Name
	default:
		return s.Kind()
	}
}

func (p *Printer) message(i Message) {
	label := from(i.Message)
	if i.Replaces > 0 {
		label += ", in place of " + words.Plural(i.Replaces, "earlier event")
	}
	p.line(head, 1, label)
	p.content(plain, i.Message.Content, messageLines)
}

// content writes blocks of a message.
func (p *Printer) content(c style, content []dsh.Block, lines int) {
	for _, b := range content {
		switch b := b.(type) {
		case dsh.Text:
			p.text(c, 2, b.Text, lines)
		case dsh.Reasoning:
			p.text(faint, 2, b.Text, lines)
		case dsh.Image:
			p.line(faint, 2, fmt.Sprintf("[image: %s]", words.Plural(len(b.Raw), "byte")+" of JSON"))
		case dsh.ToolCall:
			p.line(faint, 2, "→ "+b.Name+p.arguments(b.Arguments))
		case dsh.ToolResult:
			p.content(c, b.Content, lines)
		}
	}
}

func (p *Printer) arguments(arguments string) string {
	if p.opts.Full {
		return " " + arguments
	}
	return words.Arguments(arguments)
}

func (p *Printer) answer(i Answer) {
	remark := ""
	switch {
	case i.Interrupted:
		remark = ", interrupted"
	case i.Failed:
		remark = ", of an attempt that failed"
	case i.Unfinished:
		remark = ", not finished"
	}
	if len(i.Content) == 0 {
		p.line(head, 1, "assistant"+remark)
	}
	speaking := ""
	for _, b := range i.Content {
		label, c, lines := "assistant", plain, 1<<30
		switch b.(type) {
		case dsh.Reasoning:
			label, c, lines = "thinking", faint, reasonLines
		case dsh.ToolCall:
			label, c = "calls that were not run", faint
		default:
		}
		if label != speaking {
			p.line(head, 1, label+remark)
			speaking = label
		}
		p.said(c, b, lines)
	}
}

// said writes a block of an answer, whose text is never cut.
func (p *Printer) said(c style, b dsh.Block, lines int) {
	if t, ok := b.(dsh.Text); ok {
		full := p.opts.Full
		p.opts.Full = true
		p.text(c, 2, t.Text, lines)
		p.opts.Full = full
		return
	}
	p.content(c, []dsh.Block{b}, lines)
}

func (p *Printer) call(i Call) { p.line(plain, 1, "→ "+i.Name+p.arguments(i.Arguments)) }

func (p *Printer) result(i Result) {
	c, line := good, "✓ "+i.Name
	if i.IsError {
		c, line = fail, "✗ "+i.Name
	}
	if i.Started {
		line += " " + words.Duration(i.Took)
	}
	if i.Code != "" {
		line += " [" + i.Code + "]"
	}
	if i.Replaces {
		line += ", rewritten for the model"
	}
	if text, ok := oneText(i.Content); ok && !strings.Contains(text, "\n") && !p.opts.Full {
		p.line(c, 1, line+prefixed(": ", text))
		return
	}
	p.line(c, 1, line)
	p.content(faint, i.Content, resultLines)
}

// oneText returns the text of content that is nothing else.
func oneText(content []dsh.Block) (string, bool) {
	if len(content) != 1 {
		return "", len(content) == 0
	}
	t, ok := content[0].(dsh.Text)
	return strings.TrimSpace(t.Text), ok
}

func (p *Printer) retry(i Retry) {
	of := ""
	if i.Retry.MaxRetries != nil {
		of = fmt.Sprintf("/%d", *i.Retry.MaxRetries)
	}
	p.line(warn, 1, fmt.Sprintf("retry %d%s in %s%s", i.Retry.Retry, of, words.Duration(i.Waiting), failure(" after ", i.Retry.Failure)))
}

// request tells what is new in a header.
func (p *Printer) request(i Request) {
	h, before := i.Header, i.Before
	if before == nil {
		before = &dsh.Header{}
	}
	var parts []string
	if c := h.Config; i.Before == nil || c.Model != before.Config.Model || c.Provider != before.Config.Provider {
		parts = append(parts, strings.TrimSpace("model "+c.Model)+prefixed(" of ", c.Provider))
	}
	if c := config(h.Config); c != config(before.Config) {
		parts = append(parts, cmp.Or(c, "default settings"))
	}
	if !slices.EqualFunc(h.Tools, before.Tools, dsh.ToolSchema.Equal) {
		parts = append(parts, p.tools(h.Tools))
	}
	if h.System != before.System {
		parts = append(parts, "system prompt: "+words.Plural(len([]rune(h.System)), "character"))
	}
	if len(parts) == 0 {
		return // each life of an agent tells its first header, changed or not
	}
	p.line(faint, 1, "· "+join(parts...))
	if p.opts.Full && h.System != before.System {
		p.text(faint, 2, h.System, 0)
	}
}

// config says how requests are made, besides by which model.
func config(c dsh.CallConfig) string {
	var parts []string
	if c.ReasoningEffort != "" {
		parts = append(parts, "effort "+c.ReasoningEffort)
	}
	if c.Temperature != nil {
		parts = append(parts, fmt.Sprintf("temperature %v", *c.Temperature))
	}
	if c.MaxTokens > 0 {
		parts = append(parts, "at most "+words.Plural(c.MaxTokens, "token"))
	}
	if len(c.Stop) > 0 {
		raw, err := json.Marshal(c.Stop)
		if err == nil {
			parts = append(parts, "stop at "+string(raw))
		}
	}
	return join(parts...)
}

func (p *Printer) tools(tools []dsh.ToolSchema) string {
	if len(tools) == 0 {
		return "no tools"
	}
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	said := words.Plural(len(tools), "tool") + ": " + strings.Join(names, ", ")
	if p.opts.Full {
		return said
	}
	return words.OneLine(said, 160)
}

func (p *Printer) end(i End) {
	if i.Turn > 0 {
		open := fmt.Sprintf("turn %d", i.Turn)
		if i.Step > 0 {
			open += fmt.Sprintf(", step %d", i.Step)
		}
		p.line(warn, 0, open+" is open: the log ends here")
	}
	if p.opts.Turn != 0 {
		return // the rest is about more than that
	}
	for _, m := range i.Pending {
		p.line(warn, 0, "pending, of "+from(m)+": "+words.OneLine(dsh.TextOf(m.Content), 200))
	}
	p.gap()
	p.line(plain, 0, join(words.Plural(i.Turns, "turn"), i.Sum.String(), words.Plural(int(i.Events), "event")))
	if len(i.Hidden) > 0 {
		var parts []string
		for _, h := range i.Hidden {
			parts = append(parts, words.Grouped(int64(h.N))+" "+h.Type)
		}
		p.line(faint, 0, "not shown one by one: "+strings.Join(parts, ", "))
	}
}
