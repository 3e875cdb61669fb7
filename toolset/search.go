package toolset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dsh-actor/dsh-actor/tool"
)

type search struct {
	*workspace
	maxMatches, maxOutput int
	maxFile               int64
}

type searchArgs struct {
	Pattern    string `json:"pattern" jsonschema:"a regular expression (RE2 syntax) that is looked for in each line"`
	Path       string `json:"path,omitempty" jsonschema:"the file or directory to look in; the working directory by default"`
	Glob       string `json:"glob,omitempty" jsonschema:"look only in files that fit this glob, such as *.go or src/**/*.ts"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"treat upper and lower case as the same"`
	Context    int    `json:"context,omitempty" jsonschema:"how many lines to show before and behind each match, at most 10"`
}

// maxContext is how many lines are shown around a match at most.
const maxContext = 10

func newSearch(w *workspace, o Options) tool.Tool {
	t := search{workspace: w, maxMatches: o.MaxMatches, maxOutput: o.MaxOutput, maxFile: o.MaxFile}
	return tool.FuncResult(Search, fmt.Sprintf("Looks for a regular expression in files. Lines are shown as path:line: text, lines around a match as path-line- text. "+
		"Binary files, files over %d bytes and .git are passed over. At most %d matching lines are shown.", o.MaxFile, o.MaxMatches), t.run, tool.Parallel)
}

func (t search) run(ctx context.Context, in searchArgs) (tool.Result, error) {
	if in.Context < 0 || in.Context > maxContext {
		return tool.Result{}, badArgs("context is a number of lines from 0 to %d, not %d.", maxContext, in.Context)
	}
	expr := in.Pattern
	if in.IgnoreCase {
		expr = "(?i:" + expr + ")"
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return tool.Result{}, badArgs("pattern is not a regular expression in RE2 syntax: %v. Escape special characters with \\ to look for them.", err)
	}
	filter := glob(in.Glob)
	if err := filter.check(); err != nil {
		return tool.Result{}, err
	}
	p, err := t.locate(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	defer p.close()
	h := hits{re: re, around: in.Context, max: t.maxMatches, maxOutput: t.maxOutput}
	cut, err := t.visit(ctx, p, filter, &h)
	if err != nil {
		return tool.Result{}, err
	}
	return h.result(in.Pattern, cut), nil
}

// visit searches p, or what is below it.
func (t search) visit(ctx context.Context, p *place, filter glob, h *hits) (cut bool, err error) {
	info, err := p.root.Stat(p.rel)
	if err != nil {
		return false, p.missing(err)
	}
	if !info.IsDir() {
		content, _, err := p.read(t.maxFile)
		if err != nil {
			return false, err
		}
		if err := h.file(ctx, p.shown, content); err != nil && !errors.Is(err, errEnough) {
			return false, err
		}
		return false, nil
	}
	start := filepath.ToSlash(p.rel)
	cut, err = p.walk(ctx, false, func(path string, d fs.DirEntry) error {
		if !d.Type().IsRegular() || !filter.fits(relative(start, path)) {
			return nil
		}
		file := place{root: p.root, rel: filepath.FromSlash(path), shown: p.below(path)}
		content, _, err := file.read(t.maxFile)
		if err != nil {
			h.skip(err)
			return nil
		}
		return h.file(ctx, file.shown, content)
	})
	if err != nil {
		return cut, fileError(p.shown, err)
	}
	return cut, nil
}

// hits collects matching lines.
type hits struct {
	re        *regexp.Regexp
	around    int
	max       int
	maxOutput int

	out              strings.Builder
	matches, files   int // found, and in how many files
	looked           int // files looked at
	large, forbidden int // files passed over, besides binary ones
	full             bool
}

func (h *hits) skip(err error) {
	var own *tool.Error
	if !errors.As(err, &own) {
		return
	}
	switch own.Code {
	case CodeTooLarge:
		h.large++
	case CodePermission:
		h.forbidden++
	}
}

// file adds the matches of one file. It returns errEnough when no more are
// wanted.
func (h *hits) file(ctx context.Context, shown string, content []byte) error {
	h.looked++
	all := bytes.Split(content, []byte{'\n'})
	if n := len(all); n > 0 && len(all[n-1]) == 0 {
		all = all[:n-1]
	}
	found := false
	next := 0 // the first line not shown yet
	for i, line := range all {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !h.re.Match(bytes.TrimSuffix(line, []byte{'\r'})) {
			continue
		}
		if h.matches >= h.max || h.out.Len() >= h.maxOutput {
			h.full = true
			return errEnough
		}
		if !found {
			found = true
			h.files++
		}
		h.matches++
		from, to := max(next, i-h.around), min(len(all), i+h.around+1)
		if h.around > 0 && h.out.Len() > 0 && (from > next || next == 0) {
			h.out.WriteString("--\n")
		}
		next = h.show(shown, all, from, i, to)
	}
	return nil
}

// show writes the lines from from to to, the i-th as a match. It stops before
// a later match, which shows itself.
func (h *hits) show(shown string, all [][]byte, from, i, to int) (next int) {
	for k := from; k < to; k++ {
		sep := "-"
		if k == i {
			sep = ":"
		} else if k > i && h.re.Match(bytes.TrimSuffix(all[k], []byte{'\r'})) {
			return k
		}
		fmt.Fprintf(&h.out, "%s%s%d%s %s\n", shown, sep, k+1, sep, shorten(string(all[k])))
	}
	return to
}

func (h *hits) result(pattern string, cut bool) tool.Result {
	if h.matches == 0 {
		fmt.Fprintf(&h.out, "No line matches %s in %s.\n", shorten(pattern), plural(h.looked, "file"))
	}
	if h.full {
		fmt.Fprintf(&h.out, "[There are more; %s shown. Narrow the pattern, the path or the glob.]\n", plural(h.matches, "match"))
	}
	if cut {
		fmt.Fprintf(&h.out, "[Stopped after looking at %d entries. Narrow the path.]\n", maxVisited)
	}
	if h.large > 0 {
		fmt.Fprintf(&h.out, "[Passed over %s too large to search.]\n", plural(h.large, "file"))
	}
	if h.forbidden > 0 {
		fmt.Fprintf(&h.out, "[Passed over %s without permission to read.]\n", plural(h.forbidden, "file"))
	}
	res := tool.Text(h.out.String())
	res.Meta = meta(searchMeta{Matches: h.matches, Files: h.files, More: h.full || cut})
	return res
}

type searchMeta struct {
	Matches int  `json:"matches"`
	Files   int  `json:"files"`
	More    bool `json:"more,omitempty"`
}
