package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// A colour is what a line is about.
type colour int

const (
	plain colour = iota
	faint
	good
	warn
	fail
)

// palette is the escape sequence of each colour. The zero value has none.
type palette [fail + 1]string

var colours = palette{faint: "\x1b[2m", good: "\x1b[32m", warn: "\x1b[33m", fail: "\x1b[31m"}

func (p palette) apply(c colour, text string) string {
	if p[c] == "" {
		return text
	}
	return p[c] + text + "\x1b[0m"
}

// plural returns a number with its noun.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if stem, ok := strings.CutSuffix(one, "ry"); ok {
		return fmt.Sprintf("%d %sries", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// short returns a duration with two digits or three.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// count tells a usage.
func count(u dsh.Usage) string {
	in := u.InputTokens
	cached := ""
	if u.CacheReadTokens != nil {
		in += *u.CacheReadTokens
		if *u.CacheReadTokens > 0 {
			cached = " (" + grouped(*u.CacheReadTokens) + " cached)"
			if ratio, ok := u.CacheHitRatio(); ok {
				cached = fmt.Sprintf(" (%s cached, %.0f %%)", grouped(*u.CacheReadTokens), 100*ratio)
			}
		}
	}
	if u.CacheWriteTokens != nil {
		in += *u.CacheWriteTokens
	}
	return grouped(in) + " tokens in" + cached + ", " + grouped(u.OutputTokens) + " out"
}

// grouped returns a number with its thousands set apart.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// oneLine returns text on one line of at most so many characters.
func oneLine(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// preview shows a call's arguments: " name=value …", or as they are if they
// are no object.
func preview(arguments string) string {
	const most, each = 100, 60
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &members) != nil {
		return " " + oneLine(arguments, most)
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value := string(members[name])
		var s string
		if json.Unmarshal(members[name], &s) == nil {
			if value = s; s == "" || strings.ContainsAny(s, " \n\t\"") {
				value = strconv.Quote(oneLine(s, each))
			}
		}
		out.WriteString(" " + name + "=" + oneLine(value, each))
	}
	return strings.TrimRight(" "+oneLine(out.String(), most), " ")
}

// summary tells a tool's result: its size, or its first line, and what the
// tool itself remarks at the end.
func summary(text string, more bool) string {
	text = strings.TrimSpace(text)
	n := strings.Count(text, "\n") + 1
	head, _, _ := strings.Cut(text, "\n")
	switch {
	case text == "":
		return ""
	case n == 1 || more:
		return ": " + oneLine(head, 160)
	}
	remark := text[strings.LastIndexByte(text, '\n')+1:]
	if remark == "[exit status 0]" || !strings.HasPrefix(remark, "[") || !strings.HasSuffix(remark, "]") {
		return ": " + plural(n, "line")
	}
	return ": " + plural(n-1, "line") + " " + oneLine(remark, 100)
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
