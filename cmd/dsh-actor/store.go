package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/cmd/dsh-actor/config"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// sessionsName is the directory of sessions in the home directory.
const sessionsName = "sessions"

// openStore opens the store of sessions in dir or, if that is empty, where the
// user's configuration and the environment say. Nothing is made before the first
// session.
func (a *app) openStore(dir string, opts jsonl.Options) (*jsonl.Store, error) {
	dir, err := a.sessionsDirectory(dir)
	if err != nil {
		return nil, err
	}
	opts.Encoding = jsonl.Detect(dir)
	return jsonl.Open(dir, opts)
}

var errNoHome = errors.New("there is no home directory to keep sessions in; set DSH_ACTOR_SESSIONS_DIR or DSH_ACTOR_HOME")

// sessionsDirectory returns where the sessions are.
func (a *app) sessionsDirectory(dir string) (string, error) {
	if dir == "" {
		own, err := config.Load(config.Sources{Env: a.env})
		if err != nil {
			return "", err
		}
		dir = own.SessionsDir()
	}
	if dir == "" {
		home := a.homeDirectory()
		if home == "" {
			return "", errNoHome
		}
		dir = filepath.Join(home, sessionsName)
	}
	return filepath.Abs(dir)
}

// checkWritable returns why no session can be made in the directory of a store,
// which is made if it is not there.
func checkWritable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, ".writable"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_ = os.Remove(f.Name()) // another run may have; what a crash leaves is used again
	return f.Close()
}

// leastPrefix is how much of an ID is enough to mean a session.
const leastPrefix = 4

// means reports whether an ID begins with name, which may leave out what most IDs
// begin with.
func means(id dsh.SessionID, name string) bool {
	return strings.HasPrefix(string(id), name) || strings.HasPrefix(strings.TrimPrefix(string(id), "agent-"), name)
}

// findSession returns the session that somebody means: an ID, or the beginning
// of one that no other has. Sessions that cannot be read count too, so that
// they can be asked about.
func findSession(ctx context.Context, store *jsonl.Store, name string) (dsh.SessionID, error) {
	if name == "" {
		return "", usagef("the ID of a session is empty")
	}
	var begin []string
	for h, err := range store.List(ctx) {
		_ = err // of one log, which has a name all the same
		switch {
		case string(h.ID) == name:
			return h.ID, nil
		case len(name) >= leastPrefix && means(h.ID, name):
			begin = append(begin, string(h.ID))
		}
	}
	switch len(begin) {
	case 0:
		return "", fmt.Errorf("there is no session %s; 'dsh-actor sessions list' shows what there is", name)
	case 1:
		return dsh.SessionID(begin[0]), nil
	}
	slices.Sort(begin)
	return "", fmt.Errorf("%d sessions begin with %s: %s", len(begin), name, strings.Join(begin, ", "))
}

// completeSession completes the ID of a session.
func (a *app) completeSession(dir *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, given string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		store, err := a.openStore(*dir, jsonl.Options{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var ids []string
		for h, err := range store.List(cmd.Context()) {
			if err == nil && strings.HasPrefix(string(h.ID), given) {
				ids = append(ids, string(h.ID)+"\t"+h.CWD)
			}
		}
		slices.Reverse(ids) // the newest first
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
