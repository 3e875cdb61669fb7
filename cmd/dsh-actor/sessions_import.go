package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/archive"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

const importLong = `Put the sessions of a document that 'sessions export' wrote among the others.

The whole document is read first: if anything in it is not right, nothing is
imported. IDs, working directories and links to parents stay as they are. A
session that is there already is never changed; --as imports it under another ID.`

func (a *app) sessionsImportCommand(f *sessionsFlags) *cobra.Command {
	var opts archive.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Read a session that was exported",
		Long:  importLong,
		Example: "  dsh-actor sessions import session.json\n" +
			"  gunzip < tree.json.gz | dsh-actor sessions import - --sessions-dir /srv/sessions",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("'%s' takes one file, or - for standard input, not %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("as") && opts.As == "" {
				return usagef("--as is empty; it takes the new ID of the session")
			}
			store, err := a.openStore(f.dir, jsonl.Options{})
			if err != nil {
				return err
			}
			in := a.stdin
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return failed(err)
				}
				defer file.Close()
				in = file
			}
			done, err := archive.Import(cmd.Context(), store, in, opts)
			switch {
			case errors.Is(err, archive.ErrSeveral):
				return usagef("--as: %v", archive.ErrSeveral)
			case errors.Is(err, session.ErrExists):
				return failed(fmt.Errorf("%w; nothing was changed; '--as ID' imports a single session under another ID", err))
			case err != nil:
				return failed(err)
			}
			return failed(a.imported(done, asJSON))
		},
	}
	cmd.Flags().StringVar((*string)(&opts.As), "as", "", "import the session under this `ID`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

type importedSession struct {
	Session dsh.SessionID `json:"session"`
	Parent  dsh.SessionID `json:"parent,omitempty"`
	CWD     string        `json:"cwd,omitempty"`
	Events  dsh.Seq       `json:"events"`
}

// imported tells what was imported.
func (a *app) imported(done []archive.Imported, asJSON bool) error {
	list := []importedSession{}
	var out strings.Builder
	for _, s := range done {
		list = append(list, importedSession{s.Header.ID, s.Header.ParentSession, s.Header.CWD, s.Events})
		fmt.Fprintf(&out, "%s  %s\n", s.Header.ID, plural(int(s.Events), "event"))
	}
	if asJSON {
		return writeJSON(a.stdout, struct {
			Version  int               `json:"version"`
			Sessions []importedSession `json:"sessions"`
		}{outputVersion, list})
	}
	_, err := a.stdout.WriteString(printable(out.String()))
	return err
}
