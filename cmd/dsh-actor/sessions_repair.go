package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

const repairLong = `Repair the log of a session, or say how it would be repaired.

Without --apply nothing is changed. With it, a copy of the file is kept beside
it, and the repaired log takes its place at once.

A write that a crash cut off and a turn that it left open are repaired without
loss, as continuing the session does. A log that is not where it belongs is moved
there, and what is left of unfinished writes is removed. Damage in the middle of
a log is left alone, for it may be mended by hand: only --cut gives up what lies
behind it, and the turn that it is in.

Exit status:
  0    the log is sound, is repaired, or can be with --apply
  1    it cannot be repaired so, or is in use
  2    the command line is wrong`

func (a *app) sessionsRepairCommand(f *sessionsFlags) *cobra.Command {
	var opts jsonl.RepairOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "repair ID",
		Short:             "Repair the log of a session",
		Long:              repairLong,
		Example:           "  dsh-actor sessions repair agent-3f2a\n  dsh-actor sessions repair agent-3f2a --apply",
		Args:              oneSession,
		ValidArgsFunction: a.completeSession(&f.dir, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, id, err := a.session(cmd.Context(), f, findLog, args[0])
			if err != nil {
				return err
			}
			plan, problem := store.Repair(cmd.Context(), id, opts)
			if asJSON {
				if problem != nil {
					a.code = exitFailed
				}
				return failed(writeJSON(a.stdout, repairedOf(id, &plan, problem)))
			}
			if problem != nil {
				return failed(a.unrepaired(id, &plan, problem))
			}
			_, err = a.stdout.WriteString(repairText(id, &plan, opts))
			return failed(err)
		},
	}
	cmd.Flags().BoolVar(&opts.Apply, "apply", false, "change files; without it the plan is only shown")
	cmd.Flags().BoolVar(&opts.Cut, "cut", false, "give up everything behind the last turn before the damage")
	cmd.Flags().BoolVar(&opts.NoBackup, "no-backup", false, "keep no copy of the file as it was")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// unrepaired adds what else may be done to why a log was not repaired.
func (a *app) unrepaired(id dsh.SessionID, plan *jsonl.Plan, problem error) error {
	if errors.Is(problem, session.ErrInUse) {
		return fmt.Errorf("%w; wait until that has ended", inUse(problem))
	}
	if plan.Backup != "" {
		problem = fmt.Errorf("%w\nthe file as it was is in %s", problem, plan.Backup)
	}
	if next := nextStep(&plan.Report); next != "" && plan.Report.Err != nil {
		problem = fmt.Errorf("%w\n%s", problem, next)
	}
	return problem
}

// repairText tells of a plan.
func repairText(id dsh.SessionID, plan *jsonl.Plan, opts jsonl.RepairOptions) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s  %s\n", id, plan.Report.Verdict)
	for _, step := range plan.Steps {
		fmt.Fprintf(&out, "  - %s\n", step.Text)
	}
	switch {
	case len(plan.Steps) == 0:
		out.WriteString("There is nothing to repair.\n")
	case plan.Applied && plan.Backup != "":
		fmt.Fprintf(&out, "Done. The file as it was is in %s\n", plan.Backup)
	case plan.Applied:
		out.WriteString("Done.\n")
	default:
		command := "dsh-actor sessions repair " + shellWord(string(id)) + " --apply"
		if opts.Cut {
			command += " --cut"
		}
		fmt.Fprintf(&out, "Nothing was changed. '%s' does this.\n", command)
	}
	return printable(out.String())
}

// repaired is what repair --json writes.
type repaired struct {
	Version int           `json:"version"`
	Session dsh.SessionID `json:"session"`
	Verdict string        `json:"verdict"` // before
	Path    string        `json:"path"`    // where the log is when all is done
	Steps   []repairStep  `json:"steps"`
	Applied bool          `json:"applied"`
	Backup  string        `json:"backup,omitempty"`
	Error   *problem      `json:"error,omitempty"` // why it was not repaired
}

type repairStep struct {
	Kind    jsonl.StepKind `json:"kind"`
	Text    string         `json:"text"`
	Bytes   int64          `json:"bytes,omitempty"`
	Events  int            `json:"events,omitempty"`
	Path    string         `json:"path,omitempty"`
	Closers []dsh.Event    `json:"closers,omitempty"`
}

func repairedOf(id dsh.SessionID, plan *jsonl.Plan, err error) repaired {
	out := repaired{
		Version: outputVersion, Session: id, Verdict: codeOf(plan.Report.Verdict), Path: plan.Path, Steps: []repairStep{},
		Applied: plan.Applied, Backup: plan.Backup,
	}
	for _, s := range plan.Steps {
		out.Steps = append(out.Steps, repairStep(s))
	}
	if err != nil {
		out.Error = problemOf(err)
	}
	return out
}
