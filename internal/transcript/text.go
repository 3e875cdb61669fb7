package transcript

import (
	"strings"
	"unicode/utf8"

	"github.com/dsh-actor/dsh-actor/internal/words"
)

// A style is what a line is about.
type style int

const (
	plain style = iota
	head
	faint
	good
	warn
	fail
)

// escapes is how a terminal shows each style.
var escapes = [...]string{
	head: "\x1b[1m", faint: "\x1b[2m", good: "\x1b[32m", warn: "\x1b[33m", fail: "\x1b[31m",
}

const reset = "\x1b[0m"

// clean returns text as a terminal may see it: no control characters but breaks
// of lines.
func clean(text string) string {
	return words.Printable(strings.ReplaceAll(text, "\t", "    "))
}

// leastWidth is how narrow text may become.
const leastWidth = 20

// wrap breaks a line at spaces so that its pieces have at most width
// characters, if its words let it. What is indented stays so.
func wrap(line string, width int) []string {
	if width <= 0 || utf8.RuneCountInString(line) <= width {
		return []string{line}
	}
	body := strings.TrimLeft(line, " ")
	indent := line[:min(len(line)-len(body), width/2)]
	var lines []string
	piece, n := indent, len(indent)
	for _, word := range strings.Split(body, " ") {
		size := utf8.RuneCountInString(word)
		if n > len(indent) && n+1+size > width {
			lines = append(lines, piece)
			piece, n = indent, len(indent)
		}
		if n > len(indent) {
			piece += " "
			n++
		}
		piece += word
		n += size
	}
	return append(lines, piece)
}

// cut returns the first lines of text, at most so many and not much more than
// most bytes, and how many lines are left out.
func cut(text string, lines, most int) (kept string, left int) {
	end, n := 0, 0
	for line := range strings.Lines(text) {
		if n == lines || n > 0 && end+len(line) > most {
			return strings.TrimRight(text[:end], "\n"), strings.Count(strings.TrimRight(text[end:], "\n"), "\n") + 1
		}
		end += len(line)
		n++
	}
	return text, 0
}

// shorten cuts a line that is longer than most characters.
func shorten(line string, most int) string {
	if len(line) <= most || utf8.RuneCountInString(line) <= most {
		return line
	}
	n := 0
	for i := range line {
		if n++; n == most {
			return line[:i] + "…"
		}
	}
	return line
}
