package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dsh-actor/dsh-actor/cmd/dsh-actor/config"
	"github.com/dsh-actor/dsh-actor/tool"
)

// defaultSystem is the persona of an agent of the command line.
const defaultSystem = `You work in the directory {{cwd}} for somebody who started you from a command line and who cannot answer questions meanwhile. ` +
	`Use your tools to find out what you do not know and to do what is asked; make independent calls at the same time. ` +
	`When you are done, say in plain text what you did and found, in as few words as it takes, and name what you could not do.`

// settings are the checked flags of run.
type settings struct {
	route
	keeping
	system      string
	cwd         string
	config      *config.Loaded
	maxTokens   int
	maxParallel int
	tools       []tool.Tool
	toolsGiven  bool
	maxDepth    int // as the runtime has it: negative forbids
	maxChildren int
	problems    error // of kinds of sub-agents, which go without them
	timeout     time.Duration
	output      string
	verbose     bool
}

// settings checks the flags and reports every problem at once.
func (a *app) settings(ctx context.Context, f *runFlags, changed func(flag string) bool) (settings, error) {
	set := settings{
		system: defaultSystem, maxParallel: f.maxParallel, maxDepth: f.maxDepth, maxChildren: f.maxChildren,
		timeout: f.timeout, output: f.output, verbose: f.verbose,
	}
	if changed("system") {
		set.system = f.system
	}
	if f.maxDepth == 0 {
		set.maxDepth = -1
	}
	errs := f.check(changed)
	var err error
	if set.keeping, err = a.keep(ctx, f, changed); err != nil {
		errs = append(errs, err) // what the session would have told is not known
	} else {
		errs = append(errs, a.equip(f, changed, &set)...)
	}
	slices.SortStableFunc(errs, func(a, b error) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return set, errors.Join(errs...)
}

// check returns what is wrong with single flags.
func (f *runFlags) check(changed func(flag string) bool) (errs []error) {
	note := func(err error) { errs = append(errs, err) }
	if changed("system") {
		note(checkSystem(f.system))
	}
	note(oneOf("--output", f.output, outputs))
	for flag, value := range map[string]int{"max-tokens": f.maxTokens, "max-parallel-tools": f.maxParallel} {
		if value < 0 || value == 0 && changed(flag) {
			note(usagef("--%s is %d; it must be at least 1", flag, value))
		}
	}
	if f.maxDepth < 0 {
		note(usagef("--max-depth is %d; it must be at least 0", f.maxDepth))
	}
	if f.maxChildren < 1 {
		note(usagef("--max-children is %d; it must be at least 1", f.maxChildren))
	}
	if f.timeout < 0 || f.timeout == 0 && changed("timeout") {
		note(usagef("--timeout is %v; it must be more than 0", f.timeout))
	}
	for _, flag := range []struct {
		name  string
		value float64
		most  float64
	}{{"temperature", f.temperature, 2}, {"top-p", f.topP, 1}} {
		if changed(flag.name) && (flag.value < 0 || flag.value > flag.most) {
			note(usagef("--%s is %v; it must be between 0 and %v", flag.name, flag.value, flag.most))
		}
	}
	return errs
}

// equip finds the directory, the tools and who answers.
func (a *app) equip(f *runFlags, changed func(flag string) bool, set *settings) (errs []error) {
	var err error
	if set.cwd, err = set.past.directory(f.cwd); err != nil {
		errs = append(errs, err)
	} else {
		set.toolsGiven = changed("tools")
		set.tools, err = a.pickTools(f, set.toolsGiven, set)
		errs = append(errs, err)
	}
	given := f.given(changed)
	set.past.defaults(given)
	cfg, err := config.Load(config.Sources{CWD: set.cwd, Env: a.env, Flags: given})
	if err != nil {
		return append(errs, err)
	}
	set.config, set.maxTokens = cfg, cfg.MaxTokens
	named := changed("provider")
	if set.past != nil && !named {
		if err := set.past.known(cfg); err != nil {
			return append(errs, err)
		}
	}
	set.route, err = a.route(f, cfg, a.stalling)
	if set.past != nil && !named && set.provider == providerDemo && set.note == "" {
		set.note = "the scripted demo answers, as it did before in this session; name another provider with --provider"
	}
	if set.past != nil && set.past.persona != "" && !changed("system") {
		set.system = set.past.persona
	}
	return append(errs, err)
}

// given returns the values of the flags that were given, by key of the
// configuration.
func (f *runFlags) given(changed func(flag string) bool) map[string]any {
	given := map[string]any{}
	for _, v := range []struct {
		flag, key string
		value     any
	}{
		{"provider", "provider", f.provider},
		{"model", "model", f.model},
		{"base-url", "base_url", f.baseURL},
		{"max-tokens", "max_tokens", f.maxTokens},
		{"temperature", "temperature", f.temperature},
		{"top-p", "top_p", f.topP},
		{"seed", "seed", f.seed},
		{"audit", "audit", f.audit},
	} {
		if changed(v.flag) && v.value != "" {
			given[v.key] = v.value
		}
	}
	return given
}

// workingDirectory returns dir, or the current one, as an absolute path.
func workingDirectory(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", usagef("--cwd: %v", err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", usagef("--cwd: there is no directory %s", dir)
	case err != nil:
		return "", usagef("--cwd: %v", err)
	case !info.IsDir():
		return "", usagef("--cwd: %s is not a directory", dir)
	}
	return path, nil
}

var variable = regexp.MustCompile(`\{\{\s*(.*?)\s*\}\}`)

// checkSystem finds variables that would fail the first step.
func checkSystem(system string) error {
	for _, m := range variable.FindAllStringSubmatch(system, -1) {
		if !slices.Contains([]string{"cwd", "model", "provider"}, m[1]) {
			return usagef("--system: {{%s}} has no value; there are {{cwd}}, {{model}} and {{provider}}", m[1])
		}
	}
	return nil
}

// usagef returns an error of usage.
func usagef(format string, args ...any) error { return fmt.Errorf(format, args...) }
