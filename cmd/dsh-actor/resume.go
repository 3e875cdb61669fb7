package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/agent"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/cmd/dsh-actor/config"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A past is the session that a run goes on with or begins as a copy of.
type past struct {
	id       dsh.SessionID
	fork     bool
	boundary dsh.Seq // of a fork: how many events are copied
	cwd      string
	// last is the configuration of the last request, without what the adapter
	// filled in; nil if there was none.
	last *dsh.CallConfig
	// persona is the system prompt of the last request behind the runtime's own
	// sentence; empty for the default one.
	persona string
	// tools are the names of those that the model was last told of; nil for those
	// that an agent has anyway, as for ones that somebody else gave it.
	tools []string
	// turns and pending count those that the run finds.
	turns, pending int
	// torn says that a crash left events which are read when the session is
	// opened: there may be more pending.
	torn bool
}

// pastFlag returns the flag that names the past, or "" for a run that has none.
func (f *runFlags) pastFlag(changed func(flag string) bool) (string, error) {
	var given []string
	for _, flag := range []struct {
		name string
		set  bool
	}{{"--resume", changed("resume")}, {"--continue", f.goOn}, {"--fork", changed("fork")}} {
		if flag.set {
			given = append(given, flag.name)
		}
	}
	switch {
	case len(given) > 1:
		return "", usagef("%s exclude each other: a run goes on with one session", strings.Join(given, " and "))
	case len(given) == 1:
		return given[0], nil
	}
	return "", nil
}

// findPast returns the session that a flag names.
func (a *app) findPast(ctx context.Context, store *jsonl.Store, flag string, f *runFlags) (*past, error) {
	p := &past{boundary: -1}
	name := f.resume
	var err error
	switch flag {
	case "--continue":
		p.id, err = lastIn(ctx, store, f.cwd)
	case "--fork":
		p.fork = true
		if name, p.boundary, err = splitFork(f.fork); err != nil {
			return nil, err
		}
		fallthrough
	default:
		p.id, err = findSession(ctx, store, name)
	}
	if err != nil {
		return nil, err
	}
	if err := p.read(ctx, store); err != nil {
		return nil, explain(err, p.id)
	}
	return p, nil
}

// lastIn returns the session of a working directory that was written last.
// Those of sub-agents do not count.
func lastIn(ctx context.Context, store *jsonl.Store, dir string) (dsh.SessionID, error) {
	cwd, err := workingDirectory(dir)
	if err != nil {
		return "", err
	}
	here, err := os.Stat(cwd)
	if err != nil {
		return "", usagef("--cwd: %w", err)
	}
	var found dsh.SessionID
	var latest time.Time
	same := map[string]bool{cwd: true}
	for h, err := range store.List(ctx) {
		if err != nil || h.Origin != "" || h.CWD == "" {
			continue
		}
		is, known := same[h.CWD]
		if !known {
			info, err := os.Stat(h.CWD)
			is = err == nil && os.SameFile(info, here)
			same[h.CWD] = is
		}
		if !is {
			continue
		}
		// The list is by age, so that the younger of two counts that were
		// written at the same time.
		if info, err := store.Stat(&h); err == nil && !info.ModTime().Before(latest) {
			found, latest = h.ID, info.ModTime()
		}
	}
	if found == "" {
		return "", usagef("there is no session of %s to continue; 'dsh-actor sessions list --all' shows what there is", cwd)
	}
	return found, nil
}

// read finds out what the run needs to know before it begins.
func (p *past) read(ctx context.Context, store *jsonl.Store) error {
	log, err := store.OpenReader(ctx, p.id)
	if err != nil {
		return failed(err)
	}
	events, err := log.Read(ctx, 0, 0)
	if err != nil {
		return failed(err)
	}
	p.cwd, p.torn = log.Header().CWD, log.Tail().Recoverable > 0
	seed := log.Header().SeedLength
	if p.fork {
		if events, err = p.cut(events); err != nil {
			return err
		}
		seed = p.boundary // no input is taken along
	}
	var header dsh.HeaderFold
	var inbox dsh.Inbox
	for i := range events {
		ev := &events[i]
		header.Apply(ev)
		switch d := ev.Data.(type) {
		case dsh.TurnStart:
			p.turns = d.Turn
		case dsh.InboxSpliced:
			if ev.Seq >= seed {
				if err := inbox.Apply(d); err != nil {
					return fmt.Errorf("event %d: %w", ev.Seq, err)
				}
			}
		default:
		}
	}
	p.pending = len(inbox.NextTurn) + len(inbox.NextStep)
	if h := header.Header; h != nil {
		config := h.AdapterDefaults.Strip(h.Config)
		p.last, p.persona, p.tools = &config, p.personaOf(h), toolsOf(h)
	}
	return nil
}

// personaOf returns the system prompt that a session was begun with, filled in
// as it was sent, or "" for the default one or one that cannot be told.
func (p *past) personaOf(h *dsh.Header) string {
	text, ok := strings.CutPrefix(h.System, agent.Identity+"\n\n")
	usual := strings.NewReplacer("{{cwd}}", p.cwd, "{{model}}", h.Config.Model, "{{provider}}", h.Config.Provider).Replace(defaultSystem)
	if !ok || text == usual || variable.MatchString(text) {
		return ""
	}
	return text
}

// toolsOf returns the names of the tools in a header if all of them are ours.
func toolsOf(h *dsh.Header) []string {
	names := []string{}
	for _, t := range h.Tools {
		if !slices.Contains(toolNames, t.Name) {
			return nil
		}
		names = append(names, t.Name)
	}
	return names
}

// cut returns the events that a fork copies, or which boundaries would do.
func (p *past) cut(events []dsh.Event) ([]dsh.Event, error) {
	all := p.boundary < 0
	if all {
		p.boundary = 0
		if n := len(events); n > 0 {
			p.boundary = events[n-1].Last() + 1
		}
	}
	if err := dsh.CheckFork(events, p.boundary); err != nil {
		return nil, noFork(err, p.id, all)
	}
	return dsh.Cut(events, p.boundary), nil
}

// directory returns the working directory of a run that goes on: the one that
// was given, or the session's.
func (p *past) directory(given string) (string, error) {
	if p == nil || given != "" || p.cwd == "" {
		return workingDirectory(given)
	}
	if info, err := os.Stat(p.cwd); err != nil || !info.IsDir() {
		return "", usagef("the directory of session %s, %s, is gone; name another one with --cwd", p.id, p.cwd)
	}
	return filepath.Clean(p.cwd), nil
}

// defaults adds what the session last used to the values of flags that were
// given, by key of the configuration. What belongs to a model is left out if
// another one is asked.
func (p *past) defaults(given map[string]any) {
	if p == nil || p.last == nil {
		return
	}
	another := func(key, last string) bool { v, ok := given[key]; return ok && v != last }
	moved := another("provider", p.last.Provider)
	changed := moved || another("model", p.last.Model)
	set := func(key string, value any, known bool) {
		if _, ok := given[key]; !ok && known {
			given[key] = value
		}
	}
	l := p.last
	set("provider", l.Provider, l.Provider != "")
	set("model", l.Model, l.Model != "" && !moved)
	set("reasoning_effort", l.ReasoningEffort, l.ReasoningEffort != "" && !changed)
	set("max_tokens", l.MaxTokens, l.MaxTokens > 0)
	set("stop", l.Stop, len(l.Stop) > 0)
	if l.Temperature != nil {
		set("temperature", *l.Temperature, true)
	}
	if l.Parameters.TopP != nil {
		set("top_p", *l.Parameters.TopP, true)
	}
	if l.Parameters.Seed != nil {
		set("seed", *l.Parameters.Seed, true)
	}
}

// known returns why the provider that a session last asked cannot be asked again.
func (p *past) known(cfg *config.Loaded) error {
	names := namesOf(cfg)
	if p.last == nil || slices.Contains(names, p.last.Provider) {
		return nil
	}
	return usagef("session %s last asked provider %q, which is not configured; name one with --provider: %s",
		p.id, p.last.Provider, strings.Join(names, ", "))
}

// sameRoute reports whether the last request's provider and model are asked
// again.
func (p *past) sameRoute(r route) bool {
	return p != nil && p.last != nil && p.last.Provider == r.provider && p.last.Model == r.model
}
