package openai

import (
	"strings"
)

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// thinkSplitter takes a <think> section that opens the text out of it. What
// may be the start of a tag is held back until it is known.
type thinkSplitter struct {
	state thinkState
	held  string
}

type thinkState uint8

const (
	beforeThink thinkState = iota
	inThink
	behindTag // white space between the tag and the text is dropped
	afterThink
)

// split adds a piece of text and returns what of it is known.
func (t *thinkSplitter) split(piece string) (reasoning, text string) {
	if piece == "" {
		return "", ""
	}
	t.held += piece
	if t.state == beforeThink && !t.opens() {
		return "", t.release()
	}
	if t.state == inThink {
		reasoning = t.inside()
	}
	if t.state == behindTag {
		if t.held = strings.TrimLeft(t.held, " \t\r\n"); t.held != "" {
			t.state = afterThink
		}
	}
	return reasoning, t.release()
}

// opens looks for the opening tag; false means that the held text is, or may
// become, something else.
func (t *thinkSplitter) opens() bool {
	start := strings.TrimLeft(t.held, " \t\r\n")
	if rest, ok := strings.CutPrefix(start, thinkOpen); ok {
		t.state, t.held = inThink, strings.TrimLeft(rest, "\r\n")
		return true
	}
	if !strings.HasPrefix(thinkOpen, start) {
		t.state = afterThink
	}
	return false
}

// inside returns the reasoning that is known so far.
func (t *thinkSplitter) inside() string {
	if reasoning, rest, ok := strings.Cut(t.held, thinkClose); ok {
		t.state, t.held = behindTag, rest
		return reasoning
	}
	keep := 0
	for n := min(len(thinkClose)-1, len(t.held)); n > 0 && keep == 0; n-- {
		if strings.HasSuffix(t.held, thinkClose[:n]) {
			keep = n
		}
	}
	known := t.held[:len(t.held)-keep]
	t.held = t.held[len(known):]
	return known
}

// release returns the held text once it is known to be text.
func (t *thinkSplitter) release() string {
	if t.state != afterThink {
		return ""
	}
	text := t.held
	t.held = ""
	return text
}

// flush returns what is held at the end.
func (t *thinkSplitter) flush() (reasoning, text string) {
	held := t.held
	t.held = ""
	if t.state == inThink {
		return held, ""
	}
	return "", held
}
