package words

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

// Printable drops control characters, which could do anything to a terminal;
// breaks of lines and tabs stay.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// Plural returns a number with its noun.
func Plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if stem, ok := strings.CutSuffix(one, "ry"); ok {
		return fmt.Sprintf("%d %sries", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Duration returns a duration with two digits or three.
func Duration(d time.Duration) string {
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

// Ago says how long before now something was.
func Ago(then, now time.Time) string {
	switch d := now.Sub(then); {
	case d < -time.Minute || d >= 60*24*time.Hour:
		return then.Format(time.DateOnly)
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", d/time.Hour)
	default:
		return fmt.Sprintf("%dd ago", d/(24*time.Hour))
	}
}

// Usage tells what requests used.
func Usage(u dsh.Usage) string {
	in := u.InputTokens
	cached := ""
	if u.CacheReadTokens != nil {
		in += *u.CacheReadTokens
		if *u.CacheReadTokens > 0 {
			cached = " (" + Grouped(*u.CacheReadTokens) + " cached)"
			if ratio, ok := u.CacheHitRatio(); ok {
				cached = fmt.Sprintf(" (%s cached, %.0f %%)", Grouped(*u.CacheReadTokens), 100*ratio)
			}
		}
	}
	if u.CacheWriteTokens != nil {
		in += *u.CacheWriteTokens
	}
	return Grouped(in) + " tokens in" + cached + ", " + Grouped(u.OutputTokens) + " out"
}

// Grouped returns a number with its thousands set apart.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// OneLine returns text on one line of at most so many characters.
func OneLine(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// Arguments shows a call's arguments: " name=value …", or as they are if they
// are no object.
func Arguments(arguments string) string {
	const most, each = 100, 60
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &members) != nil {
		return " " + OneLine(arguments, most)
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value := string(members[name])
		var s string
		if json.Unmarshal(members[name], &s) == nil {
			if value = s; s == "" || strings.ContainsAny(s, " \n\t\"") {
				value = strconv.Quote(OneLine(s, each))
			}
		}
		out.WriteString(" " + name + "=" + OneLine(value, each))
	}
	return strings.TrimRight(" "+OneLine(out.String(), most), " ")
}

// Result tells a tool's result: its size, or its first line, and what the tool
// itself remarks at the end.
func Result(text string, more bool) string {
	text = strings.TrimSpace(text)
	n := strings.Count(text, "\n") + 1
	head, _, _ := strings.Cut(text, "\n")
	switch {
	case text == "":
		return ""
	case n == 1 || more:
		return ": " + OneLine(head, 160)
	}
	remark := text[strings.LastIndexByte(text, '\n')+1:]
	if remark == "[exit status 0]" || !strings.HasPrefix(remark, "[") || !strings.HasSuffix(remark, "]") {
		return ": " + Plural(n, "line")
	}
	return ": " + Plural(n-1, "line") + " " + OneLine(remark, 100)
}
