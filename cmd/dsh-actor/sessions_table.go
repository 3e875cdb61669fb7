package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/words"
)

// A row is a line of a table of sessions.
type row struct {
	*listed
	depth int
}

// writeTable writes the sessions for people.
func (a *app) writeTable(found *listing, f *listFlags) error {
	var out strings.Builder
	rows := found.flat()
	if f.tree {
		rows = found.tree()
	}
	if len(rows) == 0 {
		out.WriteString(found.nothing())
	} else {
		names := shortIDs(found.ids)
		head := []string{"ID", "AGE", "STATE", "TURNS", "MODEL"}
		if found.where == "" {
			head = append(head, "DIRECTORY")
		}
		table := [][]string{append(head, "TITLE")}
		now := time.Now()
		for _, r := range rows {
			table = append(table, r.cells(names, now, found.where == ""))
		}
		layOut(&out, narrow(table, a.width()), a.width())
	}
	_, err := a.stdout.WriteString(printable(out.String()))
	if found.other > 0 && len(rows) > 0 && a.stderr.terminal {
		_, _ = fmt.Fprintf(a.stderr, "%s of other directories: --all lists them, too\n", plural(found.other, "session"))
	}
	return err
}

// leastTitle is how narrow the last column of a table may be.
const leastTitle = 10

// narrow leaves columns out that matter least, until the rest fits a terminal;
// width 0 fits all.
func narrow(table [][]string, width int) [][]string {
	for _, name := range []string{"MODEL", "TURNS", "DIRECTORY", "AGE"} {
		used := leastTitle
		widths := widthsOf(table)
		for _, w := range widths {
			used += w + columnGap
		}
		at := slices.Index(table[0], name)
		if width == 0 || used <= width {
			break
		}
		if at < 0 {
			continue
		}
		for i, cells := range table {
			table[i] = slices.Delete(slices.Clone(cells), at, at+1)
		}
	}
	return table
}

// columnGap is the space between columns.
const columnGap = 2

// widthsOf returns how wide all columns are but the last.
func widthsOf(table [][]string) []int {
	widths := make([]int, len(table[0])-1)
	for _, cells := range table {
		for i := range widths {
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[i]))
		}
	}
	return widths
}

// width returns how wide the terminal is, 0 if stdout is none.
func (a *app) width() int {
	if !a.stdout.terminal {
		return 0
	}
	if n, err := strconv.Atoi(a.env("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if n := columns(a.stdout.w); n > 0 {
		return n
	}
	return 100
}

// nothing says that there are no sessions, and where there are some.
func (found *listing) nothing() string {
	switch {
	case found.where == "":
		return fmt.Sprintf("There are no sessions in %s.\n", found.root)
	case found.other == 0:
		return fmt.Sprintf("There are no sessions of %s, nor of any other directory, in %s.\n", found.where, found.root)
	}
	return fmt.Sprintf("There are no sessions of %s; %s of other directories: 'dsh-actor sessions list --all' lists them.\n",
		found.where, plural(found.other, "session"))
}

// flat returns the sessions as they are.
func (found *listing) flat() []row {
	rows := make([]row, len(found.rows))
	for i, l := range found.rows {
		rows[i] = row{listed: l}
	}
	return rows
}

// tree returns the sessions with each sub-agent below its parent, in the order
// in which a parent made them. One whose parent is not there stands by itself.
func (found *listing) tree() []row {
	known := map[dsh.SessionID]bool{}
	for _, l := range found.rows {
		known[l.header.ID] = true
	}
	children := map[dsh.SessionID][]*listed{}
	var roots []*listed
	for _, l := range found.rows {
		if parent := l.header.ParentSession; l.subagent() && known[parent] {
			children[parent] = append(children[parent], l)
		} else {
			roots = append(roots, l)
		}
	}
	var rows []row
	done := map[*listed]bool{}
	var add func(l *listed, depth int)
	add = func(l *listed, depth int) {
		if done[l] {
			return
		}
		done[l] = true
		rows = append(rows, row{l, depth})
		below := children[l.header.ID]
		slices.SortStableFunc(below, func(a, b *listed) int { return int(a.header.CreatedAt - b.header.CreatedAt) })
		for _, child := range below {
			add(child, depth+1)
		}
	}
	for _, l := range slices.Concat(roots, found.rows) { // the latter for those that are their own ancestors
		add(l, 0)
	}
	return rows
}

// cells returns what a table says of a session.
func (r row) cells(names map[dsh.SessionID]string, now time.Time, directory bool) []string {
	name := names[r.header.ID]
	if name == "" {
		name = "-"
	}
	if r.depth > 0 {
		name = strings.Repeat("  ", r.depth-1) + "⤷ " + name
	}
	age, turns, model, title := "-", "-", "-", ""
	if at := r.updated(); at != 0 {
		age = words.Ago(time.UnixMilli(at), now)
	}
	if s := r.sum; s != nil {
		turns, model, title = strconv.Itoa(s.Turns), first(s.Model, "-"), s.Title
		if s.Label != "" && r.subagent() {
			title = s.Label
		}
	}
	cells := []string{name, age, r.state(), turns, oneLine(model, 30)}
	if directory {
		cells = append(cells, first(homely(r.header.CWD), "-"))
	}
	return append(cells, oneLine(title, 80))
}

// state says in a few words how it is with a session.
func (r row) state() string {
	var parts []string
	if r.sum != nil && (r.problem == nil || r.problem.Code == codeOf(jsonl.Torn)) {
		state := string(r.sum.State)
		if r.subagent() {
			state = first(r.outcome(), state)
		}
		parts = append(parts, state)
		if n := r.sum.Pending(); n > 0 {
			parts = append(parts, fmt.Sprintf("%d pending", n))
		}
	}
	if r.problem != nil {
		parts = append(parts, inWords(r.problem.Code))
	}
	if r.owner != nil {
		parts = append(parts, usedBy(r.owner))
	}
	return strings.Join(parts, ", ")
}

// homely shortens a path in the home directory.
func homely(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "/" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, home); ok && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return path
}

// layOut writes a table whose last column is cut where the line ends; width 0
// cuts nothing.
func layOut(out *strings.Builder, table [][]string, width int) {
	if len(table) == 0 {
		return
	}
	widths := widthsOf(table)
	for _, cells := range table {
		var line strings.Builder
		for i, w := range widths {
			line.WriteString(cells[i] + strings.Repeat(" ", w-utf8.RuneCountInString(cells[i])+columnGap))
		}
		title := cells[len(widths)]
		if used := utf8.RuneCountInString(line.String()); width > 0 {
			title = oneLine(title, max(width-used, leastTitle))
		}
		out.WriteString(strings.TrimRight(line.String()+title, " ") + "\n")
	}
}

// randomPart finds where the part of an ID begins that was drawn at random.
var randomPart = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// wholeID is how long an ID without such a part may be to be shown whole.
const wholeID = 24

// shortIDs returns a beginning of each ID that no other has, with eight
// characters of its random part.
func shortIDs(ids []dsh.SessionID) map[dsh.SessionID]string {
	sorted := slices.Compact(slices.Sorted(slices.Values(ids)))
	names := make(map[dsh.SessionID]string, len(sorted))
	for i, id := range sorted {
		n := wholeID
		if at := randomPart.FindStringIndex(string(id)); at != nil {
			n = at[0] + 8
		}
		n = max(n, leastPrefix)
		if i > 0 {
			n = max(n, common(sorted[i-1], id)+1)
		}
		if i+1 < len(sorted) {
			n = max(n, common(sorted[i+1], id)+1)
		}
		for n < len(id) && !utf8.RuneStart(id[n]) {
			n++
		}
		names[id] = string(id[:min(n, len(id))])
	}
	return names
}

// common returns how many bytes two IDs begin with together.
func common(a, b dsh.SessionID) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
