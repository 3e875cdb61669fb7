package transcript

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		line  string
		width int
		want  []string
	}{
		{"a b", 0, []string{"a b"}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one two three", 8, []string{"one two", "three"}},
		{"öne twö", 7, []string{"öne twö"}},
		{"    deep in it goes", 12, []string{"    deep in", "    it goes"}},
		{"unbreakableword and", 5, []string{"unbreakableword", "and"}},
		{strings.Repeat(" ", 40), 10, []string{"     " + strings.Repeat(" ", 0)}},
		{"", 10, []string{""}},
	} {
		if got := wrap(tt.line, tt.width); !slices.Equal(got, tt.want) {
			t.Errorf("wrap(%q, %d) = %q, want %q", tt.line, tt.width, got, tt.want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text        string
		lines, most int
		want        string
		left        int
	}{
		{"a\nb\nc", 3, 100, "a\nb\nc", 0},
		{"a\nb\nc", 2, 100, "a\nb", 1},
		{"a\nb\nc\n", 1, 100, "a", 2},
		{"aaaa\nbbbb\ncccc", 9, 10, "aaaa\nbbbb", 1},
		{"aaaaaaaaaaaaaaaa\nb", 9, 10, "aaaaaaaaaaaaaaaa", 1}, // a first line is shown
		{"", 3, 10, "", 0},
	} {
		if got, left := cut(tt.text, tt.lines, tt.most); got != tt.want || left != tt.left {
			t.Errorf("cut(%q) = %q, %d, want %q, %d", tt.text, got, left, tt.want, tt.left)
		}
	}
	if got := shorten("äöüß", 3); got != "äö…" {
		t.Errorf("shortened to %q", got)
	}
	if got := shorten("äöü", 3); got != "äöü" {
		t.Errorf("shortened to %q", got)
	}
}

// A fold keeps nothing of turns that are over.
func TestFoldForgets(t *testing.T) {
	f := NewFold(&dsh.SessionHeader{})
	for turn := range 100 {
		call := dsh.ToolCall{ID: dsh.CallID(strings.Repeat("x", turn)), Name: "t"}
		for _, d := range []dsh.Fact{
			dsh.TurnStart{Turn: turn}, dsh.StepStart{Turn: turn, Step: 1}, dsh.AssistantChunk{Turn: turn, Step: 1, Chunk: dsh.TextDelta{Text: "x"}},
			dsh.AssistantMessage{Turn: turn, Step: 1, Message: &dsh.Message{Content: []dsh.Block{call}}},
			dsh.ToolStarted{Turn: turn, Step: 1, CallID: call.ID, Name: call.Name},
			dsh.AssistantChunk{Turn: turn, Step: 1, Chunk: dsh.TextDelta{Text: "lost"}},
			dsh.StepEnd{Turn: turn, Step: 1}, dsh.TurnEnd{Turn: turn},
		} {
			f.Add(&dsh.Event{Data: d})
		}
		if len(f.calls) != 0 || f.said || len(f.attempt.Blocks()) != 0 || f.step != 0 || f.at.Turn != 0 {
			t.Fatalf("after turn %d it keeps %+v", turn, f)
		}
	}
}

type broken struct{ writes int }

func (b *broken) Write([]byte) (int, error) {
	b.writes++
	return 0, errors.New("broken")
}

// The first error of the writer stays, and nothing is written after it.
func TestPrinterStops(t *testing.T) {
	var w broken
	h := dsh.SessionHeader{ID: "s"}
	p := NewPrinter(&w, &h, Options{})
	for range 3 {
		if err := p.Session(&h); err == nil || err.Error() != "broken" {
			t.Errorf("error %v", err)
		}
	}
	if w.writes != 1 {
		t.Errorf("%d writes", w.writes)
	}
}
