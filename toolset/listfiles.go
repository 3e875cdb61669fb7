package toolset

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsh-actor/dsh-actor/tool"
)

type listFiles struct {
	*workspace
	maxEntries, maxOutput int
}

type listArgs struct {
	Path    string `json:"path,omitempty" jsonschema:"the directory to look in; the working directory by default"`
	Pattern string `json:"pattern,omitempty" jsonschema:"a glob such as **/*.go, relative to path; one without a slash fits names at any depth; without a pattern the directory itself is listed"`
	Git     bool   `json:"include_git,omitempty" jsonschema:"also look into .git directories"`
}

func newListFiles(w *workspace, o Options) tool.Tool {
	t := listFiles{workspace: w, maxEntries: o.MaxEntries, maxOutput: o.MaxOutput}
	return tool.FuncResult(ListFiles, fmt.Sprintf("Lists a directory, or the files below it that fit a glob, sorted. Directories end with a slash. "+
		"At most %d entries are shown.", o.MaxEntries), t.run, tool.Parallel)
}

func (t listFiles) run(ctx context.Context, in listArgs) (tool.Result, error) {
	pattern := glob(in.Pattern)
	if err := pattern.check(); err != nil {
		return tool.Result{}, err
	}
	p, err := t.locate(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	defer p.close()
	if err := p.directory(); err != nil {
		return tool.Result{}, err
	}
	l := listing{max: t.maxEntries}
	start := filepath.ToSlash(p.rel)
	cut, err := p.walk(ctx, in.Git, func(path string, d fs.DirEntry) error {
		if pattern.fits(relative(start, path)) {
			if err := l.add(p.below(path), d); err != nil {
				return err
			}
		}
		if pattern == "" && d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return tool.Result{}, fileError(p.shown, err)
	}
	return l.result(p.shown, pattern, cut, t.maxOutput), nil
}

// relative returns a path of a walk relative to the walk's start.
func relative(start, path string) string {
	if start == "." {
		return path
	}
	return strings.TrimPrefix(strings.TrimPrefix(path, start), "/")
}

// directory returns why p is none.
func (p *place) directory() error {
	info, err := p.root.Stat(p.rel)
	if err != nil {
		return p.missing(err)
	}
	if !info.IsDir() {
		return tool.Errorf(CodeNoDirectory, "%s is a file, not a directory. Use read_file to see its content.", p.shown)
	}
	return nil
}

type listing struct {
	max     int
	entries []string
	more    bool
}

func (l *listing) add(path string, d fs.DirEntry) error {
	if len(l.entries) >= l.max {
		l.more = true
		return errEnough
	}
	if d.IsDir() {
		path += "/"
	}
	l.entries = append(l.entries, path)
	return nil
}

func (l *listing) result(shown string, pattern glob, cut bool, maxOutput int) tool.Result {
	slices.Sort(l.entries)
	var out strings.Builder
	listed := 0
	for _, entry := range l.entries {
		if out.Len()+len(entry) > maxOutput {
			l.more = true
			break
		}
		out.WriteString(strings.ToValidUTF8(entry, "\uFFFD") + "\n")
		listed++
	}
	switch {
	case listed == 0 && pattern == "":
		fmt.Fprintf(&out, "%s has no entries.\n", shown)
	case listed == 0:
		fmt.Fprintf(&out, "Nothing in %s fits %s.\n", shown, pattern)
	}
	if l.more {
		fmt.Fprintf(&out, "[There are more; %s shown. Narrow the path or the pattern.]\n", plural(listed, "entry"))
	}
	if cut {
		fmt.Fprintf(&out, "[Stopped after looking at %d entries. Narrow the path.]\n", maxVisited)
	}
	return tool.Text(out.String())
}
