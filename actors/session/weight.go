package session

import "github.com/dsh-actor/dsh-actor/dsh"

// weight returns about how many bytes an event holds: its texts, which are what
// can be large.
func weight(ev *dsh.Event) int {
	const envelope = 64
	switch d := ev.Data.(type) {
	case dsh.UserMessage:
		return envelope + ofContent(d.Message.Content)
	case dsh.AssistantMessage:
		return envelope + ofContent(d.Message.Content)
	case dsh.ToolFinished:
		return envelope + ofContent(d.Message.Content) + len(d.Meta)
	case dsh.ToolStarted:
		return envelope + len(d.Arguments)
	case dsh.AssistantChunk:
		return envelope + ofChunk(d.Chunk)
	case dsh.ChunkRun:
		sum := envelope
		for _, c := range d.Chunks {
			sum += ofChunk(c)
		}
		return sum
	case dsh.InboxSpliced:
		sum := envelope
		for _, m := range d.Inserted {
			sum += ofContent(m.Content)
		}
		return sum
	case dsh.Opaque:
		return envelope + len(d.Raw)
	case dsh.TurnStart, dsh.TurnEnd, dsh.StepStart, dsh.StepEnd, dsh.RequestHeader, dsh.RequestParameters, dsh.RequestContext,
		dsh.EndSeed, dsh.RetryScheduled, dsh.RetryStarted:
	}
	return envelope
}

func ofContent(content []dsh.Block) (sum int) {
	for _, b := range content {
		sum += ofBlock(b)
	}
	return sum
}

func ofBlock(b dsh.Block) int {
	switch b := b.(type) {
	case dsh.Text:
		return len(b.Text)
	case dsh.Reasoning:
		return len(b.Text)
	case dsh.Image:
		return len(b.Raw)
	case dsh.ToolCall:
		return len(b.Arguments)
	case dsh.ToolResult:
		return ofContent(b.Content)
	}
	return 0
}

func ofChunk(c dsh.Chunk) int {
	switch c := c.(type) {
	case dsh.TextDelta:
		return len(c.Text)
	case dsh.ReasoningDelta:
		return len(c.Text)
	case dsh.ToolCallDelta:
		return len(c.ArgumentsDelta)
	case dsh.BlockEnd:
		return ofBlock(c.Block)
	case dsh.Finish:
		return len(c.ReplayState)
	case dsh.BlockStart, dsh.Usage:
	}
	return 0
}
