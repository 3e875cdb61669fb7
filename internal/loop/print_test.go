package loop

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/tool"
)

// printEffects writes what a step caused, one line per event, notice or
// question.
func printEffects(out *strings.Builder, effects []Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case *Log:
			for i := range e.Events {
				fmt.Fprintf(out, "log  %s\n", printEvent(&e.Events[i]))
			}
		case *Notify:
			fmt.Fprintf(out, "note %s\n", printNotice(e.Notice))
		default:
			fmt.Fprintf(out, "do   %s\n", printQuestion(e))
		}
	}
}

// line joins words, leaving out empty ones.
func line(words ...string) string {
	kept := words[:0]
	for _, w := range words {
		if w != "" {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}

func printEvent(ev *dsh.Event) string {
	return line(ev.Type(), printFact(ev.Data), printSurface(ev))
}

func printSurface(ev *dsh.Event) string {
	var where string
	if ev.Surface.Kind() == dsh.SurfaceReplace {
		start, end := ev.Surface.Range()
		where = fmt.Sprintf("replaces=%d-%d", start, end)
	}
	if ev.Sources == nil {
		return where
	}
	var cites []string
	for _, r := range ev.Sources.Runs() {
		if r.First == r.Last {
			cites = append(cites, fmt.Sprint(r.First))
		} else {
			cites = append(cites, fmt.Sprintf("%d-%d", r.First, r.Last))
		}
	}
	return line(where, "cites="+strings.Join(cites, ","))
}

func printFact(f dsh.Fact) string {
	switch f := f.(type) {
	case dsh.TurnStart:
		return strconv.Itoa(f.Turn)
	case dsh.TurnEnd:
		return fmt.Sprintf("%d %s", f.Turn, printEnding(f.Reason))
	case dsh.StepStart:
		return fmt.Sprintf("%d.%d", f.Turn, f.Step)
	case dsh.StepEnd:
		return fmt.Sprintf("%d.%d", f.Turn, f.Step)
	case dsh.UserMessage:
		return printMessage(f.Message)
	case dsh.ChunkRun:
		var chunks []string
		for _, c := range f.Chunks {
			chunks = append(chunks, printChunk(c))
		}
		return strings.Join(chunks, " | ")
	case dsh.AssistantMessage:
		var flag, usage string
		if f.Interrupted {
			flag = "interrupted"
		}
		if f.Usage != nil {
			usage = printUsage(*f.Usage)
		}
		return line(printContent(f.Message.Content), flag, usage)
	case dsh.ToolStarted:
		return line(string(f.CallID), f.Name, f.Arguments)
	case dsh.ToolFinished:
		var code string
		if f.Error != nil {
			code = "code=" + f.Error.Code
		}
		return line(printContent(f.Message.Content), code)
	case dsh.RequestHeader:
		h := f.Header
		var system string
		if h.System != "" {
			system = fmt.Sprintf("system=%q", h.System)
		}
		return line(string(f.Reason), printConfig(h.Config), printDefaults(h.AdapterDefaults), system)
	case dsh.RequestContext:
		return fmt.Sprintf("%s/%s window=%d", f.Provider, f.Model, f.ContextWindow)
	case dsh.InboxSpliced:
		words := []string{fmt.Sprintf("%s at=%d", f.Target, f.Start)}
		if f.Removed > 0 {
			words = append(words, fmt.Sprintf("-%d", f.Removed))
		}
		for _, m := range f.Inserted {
			words = append(words, "+"+string(m.ID))
		}
		return line(append(words, f.Outcome)...)
	case dsh.Opaque:
		return string(f.Raw)
	}
	return ""
}

func printEnding(e dsh.Ending) string {
	text := string(e.Kind)
	if e.Cause.Kind != "" {
		text += " by " + printCause(e.Cause)
	}
	if e.Failure != nil {
		text += " " + printFailure(e.Failure)
	}
	return text
}

func printCause(c dsh.Cause) string {
	if c.Reason != "" {
		return fmt.Sprintf("%s(%s)", c.Kind, c.Reason)
	}
	return string(c.Kind)
}

func printFailure(f *dsh.Failure) string { return fmt.Sprintf("%s(%s)", f.Code, f.Message) }

func printUsage(u dsh.Usage) string { return fmt.Sprintf("usage=%d/%d", u.InputTokens, u.OutputTokens) }

func printConfig(c dsh.CallConfig) string {
	text := c.Provider + "/" + c.Model
	if c.MaxTokens != 0 {
		text += fmt.Sprintf(" max=%d", c.MaxTokens)
	}
	if c.ReasoningEffort != "" {
		text += " effort=" + c.ReasoningEffort
	}
	return text
}

func printDefaults(d dsh.AdapterDefaults) string {
	var filled []string
	if d.MaxTokens {
		filled = append(filled, "max")
	}
	if d.ReasoningEffort {
		filled = append(filled, "effort")
	}
	if filled == nil {
		return ""
	}
	return "filled=" + strings.Join(filled, ",")
}

func printMessage(m *dsh.Message) string {
	return line(string(m.ID), "("+m.Source.Kind()+")", printContent(m.Content))
}

func printContent(content []dsh.Block) string {
	if len(content) == 0 {
		return "empty"
	}
	var words []string
	for _, b := range content {
		switch b := b.(type) {
		case dsh.Text:
			words = append(words, strconv.Quote(b.Text))
		case dsh.Reasoning:
			words = append(words, "thinks:"+strconv.Quote(b.Text))
		case dsh.ToolCall:
			words = append(words, fmt.Sprintf("%s=%s(%s)", b.ID, b.Name, b.Arguments))
		case dsh.ToolResult:
			kind := "result"
			if b.IsError {
				kind = "error"
			}
			words = append(words, fmt.Sprintf("%s %s %s", b.CallID, kind, printContent(b.Content)))
		case dsh.Image:
			words = append(words, "image")
		}
	}
	return strings.Join(words, " ")
}

func printChunk(c dsh.Chunk) string {
	switch c := c.(type) {
	case dsh.BlockStart:
		return fmt.Sprintf("start %d %s", c.Index, c.BlockType)
	case dsh.TextDelta:
		return fmt.Sprintf("text %q", c.Text)
	case dsh.ReasoningDelta:
		return fmt.Sprintf("think %q", c.Text)
	case dsh.ToolCallDelta:
		name := ""
		if c.Name != nil {
			name = *c.Name
		}
		return line("call", string(c.ID), name, c.ArgumentsDelta)
	case dsh.BlockEnd:
		return fmt.Sprintf("end %d", c.Index)
	case dsh.Usage:
		return printUsage(c)
	case dsh.Finish:
		if c.Reason.Failure != nil {
			return "finish " + string(c.Reason.Kind) + " " + printFailure(c.Reason.Failure)
		}
		return "finish " + string(c.Reason.Kind)
	}
	return "?"
}

func printNotice(n hook.Notice) string {
	name := strings.TrimPrefix(n.Type(), "agent/")
	switch n := n.(type) {
	case hook.Inserted:
		return name + " " + string(n.Message.ID)
	case hook.Claimed:
		return fmt.Sprintf("%s %s by turn %d", name, n.Message.ID, n.Turn)
	case hook.Discarded:
		return name + " " + string(n.Message.ID)
	case hook.StatusChanged:
		return name + " " + string(n.Status)
	case hook.SessionStarted:
		return name + " " + string(n.Source)
	case hook.Erred:
		return fmt.Sprintf("%s %d.%d %v", name, n.Turn, n.Step, n.Err)
	case hook.Created, hook.Disposed:
	}
	return name
}

func printQuestion(e Effect) string {
	switch e := e.(type) {
	case Sync:
		return "sync"
	case Admit:
		return line("admit", printIDs(e.Messages))
	case Prepare:
		return "prepare " + printConfig(*e.Config)
	case Derive:
		return fmt.Sprintf("derive through %d", e.Through)
	case OpenStream:
		return fmt.Sprintf("stream %s with %d messages", printConfig(e.Request.Header.Config), len(e.Request.Messages))
	case Recover:
		return fmt.Sprintf("recover %s %s", e.Provider, printFailure(e.Failure))
	case AskStopping:
		return "ask-stopping"
	case AwaitChildren:
		return "await-children"
	case Classify:
		return "classify " + string(e.Call.ID)
	case Judge:
		return "judge " + string(e.Call.ID)
	case Run:
		return "run " + string(e.Call.ID)
	case Review:
		var skip string
		if e.Skip {
			skip = "(observers only)"
		}
		return line("review", string(e.Call.ID), printOutcome(e.Outcome), skip)
	case RunMaintenance:
		return "run-maintenance"
	case Abort:
		return "abort by " + printCause(e.Cause)
	case EndTurn:
		var answer string
		if e.Answer != nil {
			answer = "answer=" + printContent(e.Answer.Content)
		}
		return line("end-turn", strconv.Itoa(e.Turn), printEnding(e.Ending), printUsage(e.Usage), answer)
	case *Log, *Notify:
	}
	return "?"
}

func printOutcome(o hook.Outcome) string {
	kind := "result"
	if o.IsError {
		kind = "error"
	}
	return line(kind, printContent(o.Content))
}

func printIDs(messages []*dsh.Message) string {
	var ids []string
	for _, m := range messages {
		if m.ID == "" {
			ids = append(ids, "?")
			continue
		}
		ids = append(ids, string(m.ID))
	}
	return strings.Join(ids, " ")
}

// printState names the state and what is open, without a position where
// nothing is.
func printState(m *Machine) string {
	if m.Idle() {
		text := "= idle"
		if pending := printPending(m); pending != "" {
			text += " pending " + pending
		}
		return text
	}
	return fmt.Sprintf("= %s %v", m.State(), m.Pos())
}

func printPending(m *Machine) string {
	b := m.Inbox()
	return line(printList("next-step", b.NextStep), printList("next-turn", b.NextTurn))
}

func printList(name string, messages []*dsh.Message) string {
	if len(messages) == 0 {
		return ""
	}
	return name + "[" + printIDs(messages) + "]"
}

func modeNamed(name string) tool.Mode {
	if name == "parallel" {
		return tool.Parallel
	}
	return tool.Exclusive
}
