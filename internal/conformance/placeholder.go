package conformance

import (
	"regexp"
	"slices"
	"strings"
)

// A placeholder of a recorded text stands for any text that is not empty; it
// names what the reference's own prose was about.
var placeholder = regexp.MustCompile(`<[a-z][a-z_-]*(?:[: ][^<>\n]*)?>`)

// steady placeholders stand for the same text wherever they occur in a trace.
var steady = []string{
	"<identity>", "<aborted-before-dispatch>", "<tool-not-started>", "<tool-outcome-unknown>",
	"<runtime-context>", "<runtime-context-none>", "<runtime-context-plugin>",
}

// matches reports whether got is what want describes. Text around
// placeholders is literal.
func (c *comparer) matches(got, want string) bool {
	if !strings.Contains(want, "<") {
		return got == want // by far the most
	}
	places := placeholder.FindAllStringIndex(want, -1)
	if places == nil {
		return got == want
	}
	var pattern strings.Builder
	var open []string // the steady ones that stand for nothing yet, in order
	end := 0
	pattern.WriteString(`(?s)\A`)
	for _, at := range places {
		pattern.WriteString(regexp.QuoteMeta(want[end:at[0]]))
		name := want[at[0]:at[1]]
		end = at[1]
		text, known := c.bound[name]
		switch {
		case known:
			pattern.WriteString(regexp.QuoteMeta(text))
		case slices.Contains(steady, name):
			open = append(open, name)
			pattern.WriteString("(.+?)")
		default:
			pattern.WriteString(".+?")
		}
	}
	pattern.WriteString(regexp.QuoteMeta(want[end:]))
	pattern.WriteString(`\z`)
	match := regexp.MustCompile(pattern.String()).FindStringSubmatch(got)
	if match == nil {
		return false
	}
	for i, name := range open {
		c.bound[name] = match[i+1]
	}
	return true
}
