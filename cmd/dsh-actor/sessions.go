package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

const sessionsLong = `Look at sessions, copy, move, mend and delete them. 'dsh-actor run' makes them and
goes on with them.

A session is the log of an agent: an append-only file from which everything that
the model saw can be derived. Sessions are in ~/.dsh-actor/sessions, or where
DSH_ACTOR_HOME, DSH_ACTOR_SESSIONS_DIR or --sessions-dir say, one directory for
each in one for each working directory. dsh reads these files, and its own are
read here.

A session is named by its ID or by the beginning of it, four characters at least,
if no other begins so; "agent-" may be left out.`

const sessionsExample = `  dsh-actor sessions list                  which there are of this directory
  dsh-actor sessions show 3f2a             what happened in one
  dsh-actor run --continue "Now fix it"    go on with the last
  dsh-actor run --resume 3f2a "Go on"      go on with this one
  dsh-actor run --fork 3f2a@33 "Try X"     go on in a copy of its first 33 events
  dsh-actor sessions delete 3f2a           delete it for good`

// Flags that say where sessions are; the short one is not documented.
const (
	flagSessionsDir = "sessions-dir"
	flagDir         = "dir"
	usageSessions   = "`DIR` of the sessions (default: DSH_ACTOR_SESSIONS_DIR or ~/.dsh-actor/sessions)"
)

// sessionsFlags are those of all commands about sessions.
type sessionsFlags struct {
	dir string
}

func (a *app) sessionsCommand() *cobra.Command {
	f := &sessionsFlags{}
	cmd := &cobra.Command{
		Use:     "sessions",
		Short:   "Look at sessions, copy, move, mend and delete them",
		Long:    sessionsLong,
		Example: sessionsExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, name := range []string{flagSessionsDir, flagDir} {
		cmd.PersistentFlags().StringVar(&f.dir, name, "", usageSessions)
		if err := cmd.MarkPersistentFlagDirname(name); err != nil {
			panic(err) // the flag was just defined.
		}
	}
	if err := cmd.PersistentFlags().MarkHidden(flagDir); err != nil {
		panic(err)
	}
	for _, c := range []*cobra.Command{
		a.sessionsListCommand(f), a.sessionsShowCommand(f), a.sessionsReplayCommand(f), a.sessionsForkCommand(f),
		a.sessionsDeleteCommand(f), a.sessionsCheckCommand(f), a.sessionsRepairCommand(f), a.sessionsExportCommand(f), a.sessionsImportCommand(f),
	} {
		whole := c.Name() == "export" // half a document is an error
		c.RunE = a.interruptible(c.RunE, whole)
		cmd.AddCommand(c)
	}
	return cmd
}

// interruptible returns a command whose context ends with the first signal, which
// then says how it exits. Unless its output is of use only as a whole, it is no
// error that the reader of it leaves, as head does.
func (a *app) interruptible(run func(*cobra.Command, []string) error, whole bool) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithCancel(cmd.Context())
		defer cancel()
		go func() {
			select {
			case <-a.stop.soft:
				cancel()
			case <-ctx.Done():
			}
		}()
		cmd.SetContext(ctx)
		err := run(cmd, args)
		switch {
		case errors.Is(err, context.Canceled) && a.stop.last() != nil:
			a.code = a.stop.code()
			return nil
		case !whole && hungUp(err) && hungUp(a.stdout.failure()):
			return nil
		}
		return err
	}
}
