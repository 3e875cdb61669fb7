package demo

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// conclude returns the answer that ends an exchange.
func (s *scene) conclude() string {
	var parts []string
	for _, w := range s.wishes {
		c, done := s.talk.done(w.key)
		if done && w.kind == todo {
			if last, ok := s.talk.done(w.key + "z"); ok {
				c = last
			}
		}
		switch {
		case done:
			parts = append(parts, report(c, w.summary))
		case !s.fallback:
			parts = append(parts, fmt.Sprintf("I could not %s: this agent has no tool for it that I know.", w))
		}
	}
	if s.fallback {
		parts = append(parts, "There is more that I can do. "+abilities)
	}
	return strings.Join(parts, "\n")
}

// findings returns what the calls so far have brought, as a text for a file.
func (s *scene) findings() string {
	calls := s.talk.calls
	if len(calls) == 0 {
		calls = s.talk.before.calls
	}
	var parts []string
	for _, c := range calls {
		if k, ok := kindOf(c.Name); ok && k != todo && k != write && c.answered {
			parts = append(parts, report(c, true))
		}
	}
	if len(parts) == 0 {
		return "Nothing was found yet."
	}
	return "Noted by the scripted demo of dsh-actor:\n\n" + strings.Join(parts, "\n")
}

// report says what the result of a call holds.
func report(c call, summary bool) string {
	k, _ := kindOf(c.Name)
	a := able[k]
	file := argument(c.Arguments, a.path)
	switch {
	case c.failed:
		return fmt.Sprintf("- %s failed: %s", c.Name, oneLine(strings.TrimPrefix(c.result, "Error: "), 200))
	case k == list:
		return "- " + reportList(c.result, file, argument(c.Arguments, a.glob))
	case k == read:
		return "- " + reportRead(c.result, file, summary)
	case k == search:
		return "- " + reportSearch(c.result, argument(c.Arguments, a.pattern))
	case k == run:
		return "- " + reportRun(c.result, argument(c.Arguments, a.text))
	case k == delegate:
		return fmt.Sprintf("- A helper was asked to %s. It said: %s", argument(c.Arguments, a.pattern), oneLine(c.result, 400))
	case k == todo:
		lines := strings.Split(strings.TrimSpace(c.result), "\n")
		return "- The plan is written down: " + lines[len(lines)-1]
	}
	return "- " + oneLine(c.result, 200)
}

// entries returns the directories and files of a listing.
func entries(result string) (dirs, files []string) {
	for line := range strings.Lines(result) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "", strings.HasPrefix(line, "["), strings.HasPrefix(line, "Nothing in "), strings.HasSuffix(line, " has no entries."):
		case strings.HasSuffix(line, "/"):
			dirs = append(dirs, line)
		default:
			files = append(files, line)
		}
	}
	return dirs, files
}

func reportList(result, dir, glob string) string {
	dirs, files := entries(result)
	if dir == "" || dir == "." {
		dir = "The working directory"
	}
	if glob != "" {
		glob = " like " + glob
	}
	least := ""
	if strings.Contains(result, "\n[") {
		least = "at least "
	}
	text := fmt.Sprintf("%s holds %s%s%s and %s", dir, least, count(len(files), "file"), glob, count(len(dirs), "directory"))
	if all := slices.Concat(files, dirs); len(all) > 0 {
		const shown = 8
		text += ": " + strings.Join(all[:min(len(all), shown)], ", ")
		if len(all) > shown {
			text += fmt.Sprintf(" and %d more", len(all)-shown)
		}
	}
	return text + "."
}

// telling returns the files of a listing that say what a project is.
func telling(result string) []string {
	const most = 2
	_, files := entries(result)
	var out []string
	for _, name := range []string{"readme.md", "readme", "readme.txt", "go.mod", "package.json", "cargo.toml", "pyproject.toml", "makefile"} {
		for _, f := range files {
			if strings.ToLower(path.Base(f)) == name && len(out) < most {
				out = append(out, f)
			}
		}
	}
	return out
}

var numbered = regexp.MustCompile(`^\s*(\d+)\t(.*)$`)

// lines returns the lines of a file that a result shows; more says that the
// file has others.
func lines(result string) (shown []string, more bool) {
	for line := range strings.Lines(result) {
		line = strings.TrimSuffix(line, "\n")
		if m := numbered.FindStringSubmatch(line); m != nil {
			shown = append(shown, m[2])
			more = more || len(shown) == 1 && m[1] != "1"
			continue
		}
		if strings.HasPrefix(line, "[The file goes on") {
			more = true
		}
	}
	if shown == nil && !strings.HasSuffix(strings.TrimSpace(result), " is empty.") {
		shown = strings.Split(strings.TrimSuffix(result, "\n"), "\n") // another tool's way
	}
	return shown, more
}

func reportRead(result, file string, summary bool) string {
	shown, more := lines(result)
	if len(shown) == 0 {
		return file + " is empty."
	}
	least := ""
	if more {
		least = "at least "
	}
	text := fmt.Sprintf("%s has %s%s and %s", file, least, count(len(shown), "line"), count(len(strings.Fields(strings.Join(shown, "\n"))), "word"))
	if summary {
		return text + outline(file, shown) + "."
	}
	first := slices.IndexFunc(shown, func(l string) bool { return strings.TrimSpace(l) != "" })
	if first < 0 {
		return text + ", all of them blank."
	}
	return text + "; it begins: " + oneLine(shown[first], 100)
}

var declared = regexp.MustCompile(`^(func|type) (?:\([^)]*\) )?(\w+)`)

// outline says what a file is about as far as its form tells.
func outline(file string, shown []string) string {
	var heads []string
	word := ""
	for _, l := range shown {
		switch {
		case path.Ext(file) == ".go":
			word = "; it declares "
			if m := declared.FindStringSubmatch(l); m != nil {
				heads = append(heads, m[1]+" "+m[2])
			}
		case strings.HasPrefix(l, "#"):
			word = "; its headings are "
			if h := strings.TrimSpace(strings.TrimLeft(l, "#")); h != "" {
				heads = append(heads, oneLine(h, 60))
			}
		}
	}
	const most = 6
	switch {
	case len(heads) > most:
		return word + strings.Join(heads[:most], ", ") + fmt.Sprintf(" and %d more", len(heads)-most)
	case len(heads) > 0:
		return word + sentence(heads)
	}
	for _, l := range shown {
		if strings.TrimSpace(l) != "" {
			return "; it begins: " + strings.TrimSuffix(oneLine(l, 100), ".")
		}
	}
	return ""
}

var matched = regexp.MustCompile(`^(.+?):(\d+): ?(.*)$`)

func reportSearch(result, pattern string) string {
	var files []string
	n, example := 0, ""
	for line := range strings.Lines(result) {
		m := matched.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		if n++; !slices.Contains(files, m[1]) {
			files = append(files, m[1])
		}
		if example == "" {
			example = fmt.Sprintf("; the first is line %s of %s: %s", m[2], m[1], oneLine(m[3], 100))
		}
	}
	if n == 0 {
		return "Nothing matches " + pattern + "."
	}
	least := ""
	if strings.Contains(result, "[There are more") {
		least = "At least "
	}
	return fmt.Sprintf("%s%s %s in %s%s", least, count(n, "line"), map[bool]string{true: "matches " + pattern, false: "match " + pattern}[n == 1],
		count(len(files), "file"), example)
}

var status = regexp.MustCompile(`\[(exit status \d+|ended by signal: [^\]]+)\]\s*$`)

func reportRun(result, command string) string {
	end := "ended"
	if m := status.FindStringSubmatchIndex(result); m != nil {
		end = "ended with " + result[m[2]:m[3]]
		if strings.HasPrefix(result[m[2]:m[3]], "ended") {
			end = result[m[2]:m[3]]
		}
		result = result[:m[0]]
	}
	output := strings.Split(strings.TrimSpace(result), "\n")
	text := fmt.Sprintf("`%s` %s", oneLine(command, 60), end)
	switch {
	case len(output) == 1 && (output[0] == "" || output[0] == "(no output)"):
		return text + " and said nothing."
	case len(output) == 1:
		return text + " and said: " + oneLine(output[0], 200)
	}
	return fmt.Sprintf("%s and said %d lines, the last: %s", text, len(output), oneLine(output[len(output)-1], 200))
}

// count returns a number with its noun.
func count(n int, one string) string {
	switch {
	case n == 1:
		return "1 " + one
	case strings.HasSuffix(one, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(one, "y"))
	}
	return fmt.Sprintf("%d %ss", n, one)
}
