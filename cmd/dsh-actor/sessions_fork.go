package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

const forkLong = `Make a new session that begins like another one, without running anything.

The new session has the first SEQ events of the other, or all of them, and its
working directory. Input that was waiting is not taken along. SEQ must not lie
inside a turn; if it does, the nearest numbers that do not are named. The other
session is only read, and may be in use.

The ID of the new session is written to standard output.`

func (a *app) sessionsForkCommand(f *sessionsFlags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "fork ID[@SEQ]",
		Short:             "Make a new session that begins like another one",
		Long:              forkLong,
		Example:           "  dsh-actor sessions fork agent-1b2c\n  dsh-actor sessions fork agent-1b2c@33",
		Args:              oneSession,
		ValidArgsFunction: a.completeSession(&f.dir),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			store, err := a.openStore(f.dir, jsonl.Options{})
			if err != nil {
				return err
			}
			name, boundary, err := cutBoundary(args[0])
			if err != nil {
				return err
			}
			id, err := findSession(ctx, store, name)
			if err != nil {
				return err
			}
			from, err := store.OpenReader(ctx, id)
			if err != nil {
				return failed(err)
			}
			if boundary < 0 {
				boundary = from.Next()
			}
			h, err := session.Fork(ctx, store, from, boundary, dsh.SessionHeader{
				ID: dsh.SessionID("agent-" + uuid.NewString()), CreatedAt: time.Now().UnixMilli(), CWD: from.Header().CWD,
			})
			if refused := (*dsh.ForkError)(nil); errors.As(err, &refused) {
				return usagef("%s: %w", id, refused)
			} else if err != nil {
				return failed(err)
			}
			return failed(a.forked(h, asJSON))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// cutBoundary splits ID@SEQ; the boundary is -1 if there is none.
func cutBoundary(arg string) (name string, boundary dsh.Seq, err error) {
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

// forked tells of the new session.
func (a *app) forked(h dsh.SessionHeader, asJSON bool) error {
	if asJSON {
		return writeJSON(a.stdout, struct {
			Version    int           `json:"version"`
			Session    dsh.SessionID `json:"session"`
			Parent     dsh.SessionID `json:"parent"`
			SeedLength dsh.Seq       `json:"seed_length"`
			CWD        string        `json:"cwd,omitempty"`
		}{outputVersion, h.ID, h.ParentSession, h.SeedLength, h.CWD})
	}
	_, err := fmt.Fprintln(a.stdout, h.ID)
	return err
}
