package toolset

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/dsh-actor/dsh-actor/tool"
)

type editFile struct {
	*workspace
	maxFile int64
}

type editArgs struct {
	Path       string `json:"path" jsonschema:"the file to change"`
	Old        string `json:"old_string" jsonschema:"the text to replace, exactly as it stands in the file, line ends and indentation included"`
	New        string `json:"new_string" jsonschema:"the text to put in its place"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence; otherwise old_string must occur exactly once"`
}

func newEditFile(w *workspace, o Options) tool.Tool {
	t := editFile{workspace: w, maxFile: o.MaxFile}
	return tool.FuncResult(EditFile, "Replaces a piece of text in a file. old_string must occur exactly once, so take in enough of the lines around it; "+
		"or set replace_all. An empty new_string deletes.", t.run)
}

func (t editFile) run(ctx context.Context, in editArgs) (tool.Result, error) {
	switch in.Old {
	case "":
		return tool.Result{}, badArgs("old_string is empty. Give the text to replace, or use write_file for a whole file.")
	case in.New:
		return tool.Result{}, tool.Errorf(CodeNoChange, "old_string and new_string are the same; nothing would change.")
	}
	p, done, err := t.change(ctx, in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	defer done()

	content, info, err := p.read(t.maxFile)
	if err != nil {
		return tool.Result{}, err
	}
	at := occurrences(content, []byte(in.Old))
	switch {
	case len(at) == 0:
		return tool.Result{}, noMatch(p.shown, string(content), in.Old)
	case len(at) > 1 && !in.ReplaceAll:
		return tool.Result{}, ambiguous(p.shown, content, at)
	}
	if size := int64(len(content)) + int64(len(at))*int64(len(in.New)-len(in.Old)); size > t.maxFile {
		return tool.Result{}, tool.Errorf(CodeTooLarge, "%s would have %d bytes; this tool takes at most %d.", p.shown, size, t.maxFile)
	}
	changed := bytes.ReplaceAll(content, []byte(in.Old), []byte(in.New))
	if err := p.replace(changed, info.Mode()); err != nil {
		return tool.Result{}, err
	}
	res := tool.Textf("Replaced %s in %s, the first in line %d.", plural(len(at), "occurrence"), p.shown, lineAt(content, at[0]))
	res.Meta = meta(fileMeta{Path: p.shown, Bytes: len(changed), Replacements: len(at)})
	return res, nil
}

// occurrences returns where old begins, as ReplaceAll sees it: not overlapping.
func occurrences(content, old []byte) []int {
	var at []int
	for from := 0; ; {
		i := bytes.Index(content[from:], old)
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + len(old)
	}
}

// lineAt returns the number of the line that holds the byte.
func lineAt(content []byte, at int) int { return 1 + bytes.Count(content[:at], []byte{'\n'}) }

func ambiguous(shown string, content []byte, at []int) error {
	const listed = 10
	var out strings.Builder
	fmt.Fprintf(&out, "old_string occurs %d times in %s. Take in more of the lines around the one you mean, or set replace_all. It begins in:", len(at), shown)
	all := strings.Split(string(content), "\n")
	for _, pos := range at[:min(len(at), listed)] {
		n := lineAt(content, pos)
		fmt.Fprintf(&out, "\n%6d\t%s", n, shorten(all[n-1]))
	}
	if len(at) > listed {
		fmt.Fprintf(&out, "\n[and %d more]", len(at)-listed)
	}
	return tool.Errorf(CodeAmbiguous, "%s", out.String())
}

// noMatch says that old is not there and shows what is most like it.
func noMatch(shown, content, old string) error {
	text := fmt.Sprintf("old_string does not occur in %s. It must be the file's text, character for character.", shown)
	if strings.Contains(content, "\r\n") && !strings.Contains(old, "\r\n") && strings.Contains(old, "\n") {
		text += " The lines of this file end with CR LF (\\r\\n)."
	}
	all := strings.Split(content, "\n")
	wanted := strings.Split(strings.Trim(old, "\r\n"), "\n")
	at, blanksOnly := mostLike(all, wanted)
	if at < 0 {
		return tool.Errorf(CodeNoMatch, "%s Read the file again to see what it has.", text)
	}
	if blanksOnly {
		text += " These lines differ from it in white space only:"
	} else {
		text += " Most like it is:"
	}
	const shownLines = 12
	for i := at; i < min(at+min(len(wanted), shownLines), len(all)); i++ {
		text += fmt.Sprintf("\n%6d\t%s", i+1, shorten(all[i]))
	}
	return tool.Errorf(CodeNoMatch, "%s", text)
}

// mostLike finds the lines most like the wanted ones: the same but for white
// space, else those whose first line resembles the first wanted one that is
// not blank. It returns -1 if nothing does.
func mostLike(all, wanted []string) (at int, blanksOnly bool) {
	lead := 0
	for lead < len(wanted)-1 && strings.TrimSpace(wanted[lead]) == "" {
		lead++
	}
	first := squeeze(wanted[lead])
	best, bestScore := -1, 0.6
	for i := range all {
		line := squeeze(all[i])
		if line == first && i >= lead && sameButBlanks(all[i-lead:], wanted) {
			return i - lead, true
		}
		if score := alike(line, first); score > bestScore {
			best, bestScore = max(i-lead, 0), score
		}
	}
	return best, false
}

func sameButBlanks(all, wanted []string) bool {
	if len(all) < len(wanted) {
		return false
	}
	for i := range wanted {
		if squeeze(all[i]) != squeeze(wanted[i]) {
			return false
		}
	}
	return true
}

// squeeze drops what is easily got wrong: indentation and runs of blanks.
func squeeze(line string) string {
	if len(line) > maxLine {
		line = line[:maxLine]
	}
	return strings.Join(strings.Fields(line), " ")
}

// alike is the share of neighbouring pairs of bytes that two lines have in
// common, from 0 to 1.
func alike(a, b string) float64 {
	if a == b && a != "" {
		return 1
	}
	if len(a) < 2 || len(b) < 2 || len(a) > 3*len(b) || len(b) > 3*len(a) {
		return 0
	}
	pairs := make(map[[2]byte]int, len(b))
	for i := range len(b) - 1 {
		pairs[[2]byte{b[i], b[i+1]}]++
	}
	common := 0
	for i := range len(a) - 1 {
		if k := [2]byte{a[i], a[i+1]}; pairs[k] > 0 {
			pairs[k]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(a)+len(b)-2)
}

// shorten cuts a line for an error.
func shorten(line string) string {
	const kept = 200
	line = strings.TrimSuffix(line, "\r")
	if len(line) > kept {
		line = line[:kept] + "…"
	}
	return strings.ToValidUTF8(line, "")
}
