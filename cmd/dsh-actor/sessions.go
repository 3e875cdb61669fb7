package main

import (
	"github.com/spf13/cobra"
)

const sessionsLong = `Look at sessions, continue, check and mend them.

A session is the log of an agent: an append-only file from which everything that
the model saw can be derived. Sessions are in ~/.dsh-actor/sessions, or where
DSH_ACTOR_HOME, DSH_ACTOR_SESSIONS_DIR or --dir say, one directory for each in
one for each working directory. dsh reads these files, and its own are read here.

A session is named by its ID or by the beginning of it, if no other begins so;
"agent-" may be left out.`

// sessionsFlags are those of all commands about sessions.
type sessionsFlags struct {
	dir string
}

func (a *app) sessionsCommand() *cobra.Command {
	f := &sessionsFlags{}
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "Look at sessions, continue, check and mend them",
		Long:  sessionsLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&f.dir, "dir", "", "`DIR` of the sessions (default: DSH_ACTOR_SESSIONS_DIR or ~/.dsh-actor/sessions)")
	if err := cmd.MarkPersistentFlagDirname("dir"); err != nil {
		panic(err) // the flag was just defined.
	}
	cmd.AddCommand(a.sessionsListCommand(f))
	cmd.AddCommand(a.sessionsShowCommand(f))
	cmd.AddCommand(a.sessionsReplayCommand(f))
	cmd.AddCommand(a.sessionsCheckCommand(f), a.sessionsRepairCommand(f))
	cmd.AddCommand(a.sessionsExportCommand(f), a.sessionsImportCommand(f), a.sessionsForkCommand(f))
	return cmd
}
