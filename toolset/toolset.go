package toolset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsh-actor/dsh-actor/tool"
)

// Options say which tools there are, where they work and how much they may
// take. The zero value is every tool in the current directory.
type Options struct {
	// Root is the directory that relative paths start from and that the file
	// tools stay in. Default: the current directory when New is called.
	Root string
	// AllowOutside lets the file tools leave Root.
	AllowOutside bool
	// Names of the tools wanted. Default: all of them.
	Names []string

	// Shell runs commands, as Shell -c command. Default: sh.
	Shell string
	// AllowEnv names variables that the shell gets although they look like
	// secrets. Default: none.
	AllowEnv []string
	// ShellTimeout is the time that a command has if the call says nothing.
	// Default: 2 minutes.
	ShellTimeout time.Duration
	// MaxShellTimeout is the most that a call can ask for. Default: 10
	// minutes, or ShellTimeout if that is more.
	MaxShellTimeout time.Duration
	// KillDelay is the time that processes have between SIGTERM and SIGKILL.
	// Default: 2 seconds.
	KillDelay time.Duration

	// MaxOutput bounds the text of one result, in bytes. Default: 32 KiB.
	MaxOutput int
	// MaxFile is the size up to which files are written, edited and
	// searched, in bytes. Default: 10 MiB.
	MaxFile int64
	// MaxLines bounds the lines of one read_file. Default: 2000.
	MaxLines int
	// MaxEntries bounds the entries of one list_files. Default: 1000.
	MaxEntries int
	// MaxMatches bounds the matches of one search. Default: 200.
	MaxMatches int
}

// Names of the tools, in the order in which New returns them.
const (
	Shell     = "shell"
	ReadFile  = "read_file"
	WriteFile = "write_file"
	EditFile  = "edit_file"
	ListFiles = "list_files"
	Search    = "search"
	Todo      = "todo"
)

// New returns the tools that o asks for. The error tells everything that is
// wrong with o.
func New(o Options) ([]tool.Tool, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &workspace{dir: o.Root, outside: o.AllowOutside}
	tools := make([]tool.Tool, 0, len(o.Names))
	for _, name := range o.Names {
		tools = append(tools, build(name, w, o))
	}
	return tools, nil
}

var allNames = []string{Shell, ReadFile, WriteFile, EditFile, ListFiles, Search, Todo}

// build returns the tool of a known name.
func build(name string, w *workspace, o Options) tool.Tool {
	switch name {
	case Shell:
		return newShell(w, o)
	case ReadFile:
		return newReadFile(w, o)
	case WriteFile:
		return newWriteFile(w, o)
	case EditFile:
		return newEditFile(w, o)
	case ListFiles:
		return newListFiles(w, o)
	case Search:
		return newSearch(w, o)
	case Todo:
		return newTodo()
	}
	panic("toolset: no tool " + name)
}

// withDefaults fills o and reports every problem at once.
func (o Options) withDefaults() (Options, error) {
	var problems []error
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("toolset: "+format, args...))
	}
	if err := o.findRoot(); err != nil {
		problems = append(problems, err)
	}
	if o.Names == nil {
		o.Names = allNames
	}
	for i, name := range o.Names {
		switch {
		case slices.Contains(o.Names[:i], name):
			report("tool %q is named twice", name)
		case slices.Contains(allNames, name):
		default:
			report("no tool %q; %s", name, suggest(name))
		}
	}
	if o.Shell == "" {
		o.Shell = "sh"
	}
	durations := []struct {
		name string
		at   *time.Duration
		def  time.Duration
	}{
		{"ShellTimeout", &o.ShellTimeout, 2 * time.Minute},
		{"MaxShellTimeout", &o.MaxShellTimeout, max(10*time.Minute, o.ShellTimeout)},
		{"KillDelay", &o.KillDelay, 2 * time.Second},
	}
	for _, d := range durations {
		if *d.at < 0 {
			report("%s is negative: %v", d.name, *d.at)
		}
		if *d.at == 0 {
			*d.at = d.def
		}
	}
	if o.ShellTimeout > o.MaxShellTimeout {
		report("ShellTimeout %v is more than MaxShellTimeout %v", o.ShellTimeout, o.MaxShellTimeout)
	}
	numbers := []struct {
		name string
		at   *int
		def  int
	}{
		{"MaxOutput", &o.MaxOutput, 32 << 10},
		{"MaxLines", &o.MaxLines, 2000},
		{"MaxEntries", &o.MaxEntries, 1000},
		{"MaxMatches", &o.MaxMatches, 200},
	}
	for _, n := range numbers {
		if *n.at < 0 {
			report("%s is negative: %d", n.name, *n.at)
		}
		if *n.at == 0 {
			*n.at = n.def
		}
	}
	if o.MaxFile < 0 {
		report("MaxFile is negative: %d", o.MaxFile)
	}
	if o.MaxFile == 0 {
		o.MaxFile = 10 << 20
	}
	return o, errors.Join(problems...)
}

// findRoot makes Root absolute, with its symbolic links followed.
func (o *Options) findRoot() error {
	dir, err := filepath.Abs(o.Root)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return fmt.Errorf("toolset: root: %w", err)
	}
	if info, err := os.Stat(dir); err != nil {
		return fmt.Errorf("toolset: root: %w", err)
	} else if !info.IsDir() {
		return fmt.Errorf("toolset: root: %s is not a directory", dir)
	}
	o.Root = dir
	return nil
}

func suggest(name string) string {
	if near := tool.Near(name, allNames); len(near) > 0 {
		return "did you mean " + strings.Join(near, ", ") + "?"
	}
	return "there are " + strings.Join(allNames, ", ")
}
