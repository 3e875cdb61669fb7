package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

const forkLong = `Make a new session that begins like another one, without running anything.

The new session has the first SEQ events of the other, or all of them, and its
working directory. 'sessions show' writes a number at the beginning of each turn:
with that as SEQ, the fork is what was before that turn. SEQ must not lie inside a
turn; if it does, the nearest numbers that do not are named. Input that was
waiting is not taken along. The other session is only read, and may be in use.

'run --fork' makes one, too, and goes on in it at once.

The ID of the new session is written to standard output.`

func (a *app) sessionsForkCommand(f *sessionsFlags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "fork ID[@SEQ]",
		Short:             "Make a new session that begins like another one",
		Long:              forkLong,
		Example:           "  dsh-actor sessions fork agent-3f2a\n  dsh-actor sessions fork agent-3f2a@33",
		Args:              oneSession,
		ValidArgsFunction: a.completeSession(&f.dir, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, boundary, err := splitFork(args[0])
			if err != nil {
				return err
			}
			store, id, err := a.session(cmd.Context(), f, findSession, name)
			if err != nil {
				return err
			}
			h, err := a.fork(cmd.Context(), store, id, boundary)
			if err != nil {
				return err
			}
			return failed(a.forked(h, asJSON))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// fork makes the new session; a boundary below 0 is the end of the other one.
func (a *app) fork(ctx context.Context, store *jsonl.Store, id dsh.SessionID, boundary dsh.Seq) (h dsh.SessionHeader, err error) {
	from, err := store.OpenReader(ctx, id)
	if err != nil {
		return h, failed(explain(err, id))
	}
	all := boundary < 0
	if all {
		boundary = from.Next()
	}
	h, err = session.Fork(ctx, store, from, boundary, dsh.SessionHeader{
		ID: dsh.SessionID(usualPrefix + uuid.NewString()), CreatedAt: time.Now().UnixMilli(), CWD: from.Header().CWD,
	})
	return h, noFork(err, id, all)
}

// noFork says where a session can be forked if it cannot be where it was to be.
// All says that no place was named.
func noFork(err error, id dsh.SessionID, all bool) error {
	var fork *dsh.ForkError
	switch {
	case !errors.As(err, &fork):
		return failed(err)
	case fork.Code == dsh.ForkInvalidBoundary:
		return usagef("%s@%d: the session has %d events, and no more can be copied", id, fork.Boundary, fork.Events)
	case all:
		return usagef("%s: turn %d has not ended; %s@%d begins before it", id, fork.Turn, id, fork.Before)
	case fork.After < 0:
		return usagef("%s@%d: turn %d is open there and has not ended; %s@%d is before it",
			id, fork.Boundary, fork.Turn, id, fork.Before)
	}
	return usagef("%s@%d: turn %d is open there; %s@%d is before it, %s@%d behind it",
		id, fork.Boundary, fork.Turn, id, fork.Before, id, fork.After)
}

// forked tells of the new session.
func (a *app) forked(h dsh.SessionHeader, asJSON bool) error {
	if asJSON {
		return writeJSON(a.stdout, struct {
			Version    int           `json:"version"`
			Session    dsh.SessionID `json:"session"`
			ForkedFrom dsh.SessionID `json:"forked_from"`
			ForkedAt   dsh.Seq       `json:"forked_at"`
			CWD        string        `json:"cwd,omitempty"`
		}{outputVersion, h.ID, h.ParentSession, h.SeedLength, h.CWD})
	}
	_, err := fmt.Fprintln(a.stdout, h.ID)
	return err
}
