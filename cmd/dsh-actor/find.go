package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// usualPrefix is what most IDs begin with; it may be left out.
const usualPrefix = "agent-"

// leastPrefix is how much of an ID is enough to mean a session.
const leastPrefix = 4

// mostNamed is how many sessions an error names.
const mostNamed = 6

// A meaning collects the sessions that a name may mean: the one that has it as
// its ID, or those whose IDs begin with it.
type meaning struct {
	name  string
	exact bool
	begin []dsh.SessionID
}

// add notes a session.
func (m *meaning) add(id dsh.SessionID) {
	switch {
	case m.exact:
	case string(id) == m.name:
		m.exact, m.begin = true, []dsh.SessionID{id}
	case strings.HasPrefix(string(id), m.name) || strings.HasPrefix(strings.TrimPrefix(string(id), usualPrefix), m.name):
		if !slices.Contains(m.begin, id) {
			m.begin = append(m.begin, id)
		}
	}
}

// one returns the session that is meant. The command list shows what there is.
func (m *meaning) one(list string) (dsh.SessionID, error) {
	n := len(m.begin)
	switch {
	case m.name == "":
		return "", usagef("the ID of a session is empty")
	case n == 0:
		return "", usagef("there is no session %s; '%s' shows what there is", m.name, list)
	case !m.exact && len(m.name) < leastPrefix:
		return "", usagef("%s is too short to mean a session: at least %d characters of its ID are needed", m.name, leastPrefix)
	case n == 1:
		return m.begin[0], nil
	}
	short := shortIDs(m.begin)
	var names []string
	for _, id := range slices.Sorted(slices.Values(m.begin)) {
		names = append(names, short[id])
	}
	if n > mostNamed {
		names = append(names[:mostNamed], "…")
	}
	return "", usagef("%d sessions begin with %s: %s", n, m.name, strings.Join(names, ", "))
}

// A finder returns the session that somebody means.
type finder func(ctx context.Context, store *jsonl.Store, name string) (dsh.SessionID, error)

// findSession finds it among those that are listed, also those that cannot be
// read: they can be asked about.
func findSession(ctx context.Context, store *jsonl.Store, name string) (dsh.SessionID, error) {
	m := meaning{name: name}
	for h, err := range store.List(ctx) {
		_ = err // of one log, which has a name all the same
		m.add(h.ID)
	}
	return m.one("dsh-actor sessions list --all")
}

// findLog finds it among everything that looks like a log.
func findLog(ctx context.Context, store *jsonl.Store, name string) (dsh.SessionID, error) {
	found, err := store.Survey(ctx)
	if err != nil {
		return "", failed(err)
	}
	m := meaning{name: name}
	for i := range found {
		m.add(found[i].ID)
	}
	return m.one("dsh-actor sessions check --all")
}

// session opens the store and finds a session.
func (a *app) session(ctx context.Context, f *sessionsFlags, find finder, name string) (*jsonl.Store, dsh.SessionID, error) {
	store, err := a.openStore(f.dir, jsonl.Options{})
	if err != nil {
		return nil, "", err
	}
	id, err := find(ctx, store, name)
	return store, id, err
}

// splitFork splits ID[@SEQ]; without @SEQ the boundary is -1.
func splitFork(arg string) (name string, boundary dsh.Seq, err error) {
	i := strings.LastIndexByte(arg, '@')
	if i < 0 {
		return arg, -1, nil
	}
	n, err := strconv.ParseInt(arg[i+1:], 10, 64)
	if err != nil || n < 0 {
		return "", 0, usagef("%s: behind the @ comes how many events to copy, not %q", arg, arg[i+1:])
	}
	return arg[:i], dsh.Seq(n), nil
}

// oneSession asks for the name of one session.
func oneSession(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("'%s' takes one session, not %d arguments", cmd.CommandPath(), len(args))
	}
	return someSessions(cmd, args)
}

// someSessions asks for the name of at least one session.
func someSessions(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("the ID of a session is needed, or its beginning; 'dsh-actor sessions list --all' shows what there is")
	}
	return nil
}

// completeAll is the number of sessions that a command without a most takes.
const completeAll = math.MaxInt

// completeSession completes the IDs of up to so many sessions, the newest first.
func (a *app) completeSession(dir *string, most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, given string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		store, err := a.openStore(*dir, jsonl.Options{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var ids []string
		for h, err := range store.List(cmd.Context()) {
			id := string(h.ID)
			if !strings.HasPrefix(id, given) {
				id = strings.TrimPrefix(id, usualPrefix)
			}
			if err == nil && strings.HasPrefix(id, given) && !slices.Contains(args, id) {
				ids = append(ids, fmt.Sprintf("%s\t%s", id, h.CWD))
			}
		}
		slices.Reverse(ids)
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
