package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/actors/session/archive"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

const deleteLong = `Delete sessions for good: their logs, and the copies that repairs have kept.

At a terminal they are shown first, and it is asked whether they are to go;
elsewhere --yes must say so. If one of them is in use, or none can tell which is
meant, nothing is deleted at all.

Sub-agents have sessions of their own, which stay unless --tree is given. Forks
are sessions like any other: they stay, and hold all that was copied.

Exit status:
  0    they are deleted
  1    they are not, or not all of them
  2    the command line is wrong`

// deleteFlags are the flags of sessions delete.
type deleteFlags struct {
	tree bool
	yes  bool
	json bool
}

func (a *app) sessionsDeleteCommand(f *sessionsFlags) *cobra.Command {
	var df deleteFlags
	cmd := &cobra.Command{
		Use:               "delete ID…",
		Short:             "Delete sessions for good",
		Long:              deleteLong,
		Example:           "  dsh-actor sessions delete agent-3f2a\n  dsh-actor sessions delete agent-3f2a agent-77e0 --tree --yes",
		Args:              someSessions,
		ValidArgsFunction: a.completeSession(&f.dir, completeAll),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.deleteSessions(cmd.Context(), f, args, df)
		},
	}
	cmd.Flags().BoolVar(&df.tree, "tree", false, "their sub-agents' sessions, too")
	cmd.Flags().BoolVarP(&df.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&df.json, "json", false, "write one JSON object")
	return cmd
}

// A deletion is what sessions delete does.
type deletion struct {
	store *jsonl.Store
	// ids are the sessions that go, children before their parents.
	ids []dsh.SessionID
	// stay are sub-agents' sessions that do not, by the session that was named.
	stay map[dsh.SessionID]int
}

func (a *app) deleteSessions(ctx context.Context, f *sessionsFlags, names []string, df deleteFlags) error {
	if !df.yes && !a.canAsk() {
		return usagef("nobody can be asked here whether sessions are to be deleted; --yes says that they are")
	}
	d, err := a.planDeletion(ctx, f, names, df.tree)
	if err != nil {
		return err
	}
	if !df.yes {
		question := "Delete this session for good?"
		if n := len(d.ids); n > 1 {
			question = fmt.Sprintf("Delete these %d sessions for good?", n)
		}
		yes, err := a.ask(d.text() + question)
		switch {
		case err != nil || a.code != exitOK:
			return failed(err)
		case !yes:
			return failed(errors.New("nothing was deleted"))
		}
	}
	return failed(a.delete(ctx, d, df.json))
}

// planDeletion finds the sessions that are to be deleted, and why not.
func (a *app) planDeletion(ctx context.Context, f *sessionsFlags, names []string, tree bool) (*deletion, error) {
	store, err := a.openStore(f.dir, jsonl.Options{})
	if err != nil {
		return nil, err
	}
	d := &deletion{store: store, stay: map[dsh.SessionID]int{}}
	below := map[dsh.SessionID][]dsh.SessionID{}
	for _, name := range names {
		id, err := findLog(ctx, store, name)
		if err != nil {
			return nil, err
		}
		all, _ := archive.Tree(ctx, store, id) // what cannot be read has no known parent
		if len(all) > 0 {
			below[id] = all[1:] // parents before their children
		}
		if tree {
			d.add(below[id]...)
		}
		d.add(id)
	}
	for id, children := range below {
		for _, child := range children {
			if !slices.Contains(d.ids, child) {
				d.stay[id]++
			}
		}
	}
	var errs []error
	for _, id := range d.ids {
		if owner, ok, err := store.Owner(dsh.SessionHeader{ID: id}); err == nil && ok {
			errs = append(errs, fmt.Errorf("%s is %s; nothing was deleted", id, usedBy(&owner)))
		}
	}
	return d, failed(errors.Join(errs...))
}

// add adds sessions, the last first, that are not there yet.
func (d *deletion) add(ids ...dsh.SessionID) {
	for _, id := range slices.Backward(ids) {
		if !slices.Contains(d.ids, id) {
			d.ids = append(d.ids, id)
		}
	}
}

// text shows what is to be deleted.
func (d *deletion) text() string {
	var out strings.Builder
	table := [][]string{{"ID", "AGE", "STATE", "TURNS", "MODEL", "DIRECTORY", "TITLE"}}
	names, now := map[dsh.SessionID]string{}, time.Now()
	for _, id := range d.ids {
		names[id] = string(id)
		l := &listed{header: dsh.SessionHeader{ID: id}}
		l.read(d.store)
		table = append(table, row{listed: l}.cells(names, now, true))
	}
	layOut(&out, table, 0)
	return printable(out.String())
}

// deleted is what delete --json writes.
type deleted struct {
	Version  int             `json:"version"`
	Sessions []dsh.SessionID `json:"sessions"` // those that are gone
	// Stay is how many sub-agents' sessions there are still.
	Stay  int      `json:"stay"`
	Error *problem `json:"error,omitempty"` // the first that was met
}

// delete deletes the sessions and tells of each.
func (a *app) delete(ctx context.Context, d *deletion, asJSON bool) error {
	done := deleted{Version: outputVersion, Sessions: []dsh.SessionID{}}
	for _, n := range d.stay {
		done.Stay += n
	}
	var errs []error
	for _, id := range d.ids {
		err := ctx.Err()
		if err == nil {
			err = d.store.Delete(ctx, id)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		done.Sessions = append(done.Sessions, id)
		if !asJSON {
			_, _ = a.stdout.WriteString(printable("deleted " + string(id) + "\n")) // a reader that left is no reason to stop
		}
	}
	if asJSON {
		if len(errs) > 0 {
			done.Error = problemOf(errs[0])
			a.code = exitFailed
		}
		return errors.Join(ctx.Err(), writeJSON(a.stdout, done))
	}
	for _, id := range done.Sessions {
		if n := d.stay[id]; n > 0 {
			a.complain(fmt.Errorf("%s had %s of sub-agents, which stay; --tree deletes them, too", id, plural(n, "session")))
		}
	}
	return errors.Join(append(errs, a.stdout.failure())...)
}
