package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/transcript"
)

const listLong = `List the sessions of the current directory, or of another one, the one that was
used last first.

Each is shown by as much of its ID as no other begins with, which every command
takes. A session is titled by its title, if it has one, or by the first line that
a user wrote. Sub-agents have sessions of their own, which --tree shows below
their parents; --json always tells of all.

What is wrong with a session that cannot be read is told on stderr; it does not
hide the others, and the exit status is 0.`

const listExample = `  dsh-actor sessions list
  dsh-actor sessions list --all --tree
  dsh-actor sessions list --all --json | jq '.sessions[] | select(.state == "open")'`

// listFlags are the flags of sessions list.
type listFlags struct {
	json bool
	tree bool
	all  bool
	cwd  string
}

func (a *app) sessionsListCommand(f *sessionsFlags) *cobra.Command {
	var l listFlags
	cmd := &cobra.Command{
		Use:               "list",
		Short:             "List sessions",
		Long:              listLong,
		Example:           listExample,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if l.all && cmd.Flags().Changed("cwd") {
				return usagef("--all is the sessions of all directories, --cwd those of one; use one of them")
			}
			store, err := a.openStore(f.dir, jsonl.Options{})
			if err != nil {
				return err
			}
			return failed(a.listSessions(cmd.Context(), store, f.dir, &l))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&l.all, "all", false, "the sessions of all directories")
	flags.StringVar(&l.cwd, "cwd", "", "the sessions of this working `DIR` (default: the current one)")
	flags.BoolVar(&l.tree, "tree", false, "show sub-agents below their parents")
	flags.BoolVar(&l.json, "json", false, "write one JSON object")
	if err := cmd.MarkFlagDirname("cwd"); err != nil {
		panic(err) // the flag was just defined.
	}
	return cmd
}

// A listed is a session in a list.
type listed struct {
	header  dsh.SessionHeader
	sum     *transcript.Summary // nil if nothing of it could be read
	owner   *jsonl.Holder       // nil for none
	problem *problem            // nil if it can be opened as it is
}

// updated returns when the session was used last, in Unix milliseconds.
func (l *listed) updated() int64 {
	if l.sum != nil && l.sum.Last != 0 {
		return l.sum.Last
	}
	return l.header.CreatedAt
}

func (l *listed) subagent() bool { return l.header.Origin != "" }

// A listing is what sessions list found.
type listing struct {
	root  string          // where the sessions are kept
	ids   []dsh.SessionID // of all sessions, also of those that are not listed
	rows  []*listed       // the one used last first
	where string          // the directory whose sessions they are, empty for all
	other int             // sessions of other directories
}

func (a *app) listSessions(ctx context.Context, store *jsonl.Store, dir string, f *listFlags) error {
	found, err := findListed(ctx, store, f)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		a.code = a.stop.code()
		return nil
	}
	if found.root, err = a.sessionsDirectory(dir); err != nil {
		return err
	}
	if f.json {
		return writeJSON(a.stdout, found.object())
	}
	for _, l := range found.rows {
		if l.problem != nil {
			a.complain(fmt.Errorf("%s: %s", cmp.Or(string(l.header.ID), "sessions"), l.problem.Message))
		}
	}
	return a.writeTable(found, f)
}

// findListed finds the sessions to list and reads them, several at a time.
func findListed(ctx context.Context, store *jsonl.Store, f *listFlags) (*listing, error) {
	found := &listing{}
	var here func(dsh.SessionHeader) bool
	if !f.all {
		cwd, err := filepath.Abs(f.cwd)
		if err != nil {
			return nil, err
		}
		real, err := filepath.EvalSymlinks(cwd)
		if err != nil {
			real = cwd // it may be gone; its sessions are not
		}
		found.where = cwd
		here = func(h dsh.SessionHeader) bool { return h.CWD == cwd || h.CWD == real }
	}
	for h, err := range store.List(ctx) {
		l := &listed{header: h}
		switch {
		case ctx.Err() != nil:
			return found, nil
		case err != nil:
			l.problem = logProblem(err)
		case here != nil && !here(h):
			found.ids = append(found.ids, h.ID)
			if !l.subagent() {
				found.other++
			}
			continue
		}
		found.ids = append(found.ids, h.ID)
		if f.json || f.tree || !l.subagent() {
			found.rows = append(found.rows, l)
		}
	}
	found.read(ctx, store)
	slices.SortStableFunc(found.rows, func(a, b *listed) int { return cmp.Compare(b.updated(), a.updated()) })
	return found, nil
}

// read reads the logs that can be read.
func (found *listing) read(ctx context.Context, store *jsonl.Store) {
	work := make(chan *listed)
	var readers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(found.rows)) {
		readers.Go(func() {
			for l := range work {
				l.read(store)
			}
		})
	}
	for _, l := range found.rows {
		if l.problem == nil && ctx.Err() == nil {
			work <- l
		}
	}
	close(work)
	readers.Wait()
}

func (l *listed) read(store *jsonl.Store) {
	look := store.Look(l.header)
	l.header = look.Header
	l.sum = transcript.NewSummary(&l.header)
	for i := range look.Events {
		l.sum.Add(&look.Events[i])
	}
	if owner, ok, err := store.Owner(l.header); err == nil && ok {
		l.owner = &owner
	}
	switch {
	case look.Err != nil:
		l.problem = logProblem(look.Err)
	case look.Tail.Bytes > 0 && l.owner == nil: // else it is being written
		l.problem = tornProblem(look.Tail)
	}
}

// A sessionEntry is a session as sessions list --json shows it.
type sessionEntry struct {
	ID        dsh.SessionID `json:"session"`
	CWD       string        `json:"cwd,omitempty"`
	Parent    dsh.SessionID `json:"parent,omitempty"`
	Origin    string        `json:"origin,omitempty"` // "subagent"; a fork has a parent only
	Depth     int           `json:"depth"`
	CreatedAt *time.Time    `json:"created_at,omitempty"`
	UpdatedAt *time.Time    `json:"updated_at,omitempty"`
	State     string        `json:"state,omitempty"` // of the last turn: as in turn/end, or "open" or "new"
	Failure   *problem      `json:"failure,omitempty"`
	Outcome   string        `json:"outcome,omitempty"` // of a sub-agent
	Label     string        `json:"label,omitempty"`   // of a sub-agent
	Title     string        `json:"title"`
	Provider  string        `json:"provider,omitempty"`
	Model     string        `json:"model,omitempty"`
	Turns     int           `json:"turns"`
	Events    dsh.Seq       `json:"events"`
	Requests  int           `json:"requests"`
	Usage     tokens        `json:"usage"` // without that of sub-agents
	Pending   int           `json:"pending"`
	InUse     *jsonl.Holder `json:"in_use,omitempty"`
	Problem   *problem      `json:"problem,omitempty"` // why it cannot be opened as it is
}

func (l *listed) entry() sessionEntry {
	h := &l.header
	e := sessionEntry{
		ID: h.ID, CWD: h.CWD, Parent: h.ParentSession, Origin: h.Origin, Depth: h.DelegationDepth,
		InUse: l.owner, Problem: l.problem,
	}
	if h.CreatedAt != 0 {
		created, updated := time.UnixMilli(h.CreatedAt).UTC(), time.UnixMilli(l.updated()).UTC()
		e.CreatedAt, e.UpdatedAt = &created, &updated
	}
	if s := l.sum; s != nil {
		requests, usage := s.Usage()
		e.State, e.Title, e.Provider, e.Model = string(s.State), s.Title, s.Provider, s.Model
		e.Turns, e.Events, e.Requests, e.Usage, e.Pending = s.Turns, s.Events, requests, tokensOf(usage), s.Pending()
		if s.Failure != nil {
			e.Failure = &problem{string(s.Failure.Code), s.Failure.Message}
		}
		if l.subagent() {
			e.Label, e.Outcome = s.Label, l.outcome()
		}
	}
	return e
}

// outcome returns how a sub-agent ended; it is empty as long as it has not.
func (l *listed) outcome() string {
	if l.sum.State == transcript.StateOpen || l.sum.State == transcript.StateNew {
		return ""
	}
	return string(l.sum.Outcome().Kind)
}

// object returns the listing for programs.
func (found *listing) object() any {
	list := struct {
		Version  int            `json:"version"`
		Dir      string         `json:"dir"`
		Sessions []sessionEntry `json:"sessions"`
	}{outputVersion, found.root, []sessionEntry{}}
	for _, l := range found.rows {
		list.Sessions = append(list.Sessions, l.entry())
	}
	return list
}
