package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

const checkLong = `Check the logs of sessions: all of them, or those that are named.

Everything in the directory that is a log or looks like one is read, also what
'sessions list' passes over. Nothing is changed. Where no session is named, only
logs are shown of which there is something to say, unless --all is given.

Exit status:
  0    all of them can be continued; what a crash left is repaired by that
  1    at least one cannot be
  2    the command line is wrong`

func (a *app) sessionsCheckCommand(f *sessionsFlags) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:               "check [ID…]",
		Short:             "Check the logs of sessions for damage",
		Long:              checkLong,
		Example:           "  dsh-actor sessions check\n  dsh-actor sessions check agent-3f2a --json",
		ValidArgsFunction: a.completeSession(&f.dir, completeAll),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.openStore(f.dir, jsonl.Options{})
			if err != nil {
				return err
			}
			reports, err := a.check(cmd.Context(), store, args)
			if err != nil {
				return err
			}
			wrong := slices.ContainsFunc(reports, func(r jsonl.Report) bool { return r.Err != nil })
			if wrong {
				a.code = exitFailed
			}
			if asJSON {
				return failed(writeJSON(a.stdout, checkedOf(reports)))
			}
			if len(reports) == 0 {
				return failed(a.noSessions(f))
			}
			_, err = a.stdout.WriteString(checkText(reports, all || len(args) > 0))
			return failed(err)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "show sound logs too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object, with every log that was checked")
	return cmd
}

// noSessions says that there are none.
func (a *app) noSessions(f *sessionsFlags) error {
	dir, err := a.sessionsDirectory(f.dir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "There are no sessions in %s.\n", dir)
	return err
}

// check checks the sessions that are named, or all.
func (a *app) check(ctx context.Context, store *jsonl.Store, names []string) (reports []jsonl.Report, err error) {
	if len(names) == 0 {
		for r, err := range store.CheckAll(ctx) {
			if err != nil {
				return nil, failed(err)
			}
			reports = append(reports, r)
		}
		return reports, nil
	}
	for _, name := range names {
		id, err := findLog(ctx, store, name)
		if err != nil {
			return nil, err
		}
		r, err := store.Check(ctx, id)
		if err != nil {
			return nil, failed(err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// checkText is the report for people.
func checkText(reports []jsonl.Report, all bool) string {
	var out strings.Builder
	wrong, mendable := 0, 0
	for i := range reports {
		r := &reports[i]
		switch {
		case r.Err != nil:
			wrong++
		case r.Verdict == jsonl.Torn || r.Verdict == jsonl.OpenTurn:
			mendable++
		case r.Verdict == jsonl.Sound && len(r.Findings) == 0 && len(r.Stray) == 0 && !all:
			continue
		}
		fmt.Fprintf(&out, "%s  %s  %s, %s\n", r.ID, r.Verdict, plural(int(r.Events), "event"), plural(int(r.Size), "byte"))
		for _, line := range remarks(r) {
			fmt.Fprintf(&out, "    %s\n", line)
		}
	}
	fmt.Fprintf(&out, "%s: ", plural(len(reports), "log"))
	if wrong > 0 {
		fmt.Fprintf(&out, "%d cannot be continued", wrong)
	} else {
		out.WriteString("all can be continued")
	}
	if mendable > 0 {
		fmt.Fprintf(&out, ", %d will be repaired by that", mendable)
	}
	out.WriteString(".\n")
	return printable(out.String())
}

// remarks returns what there is to say of a log, and at last what to do.
func remarks(r *jsonl.Report) []string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if r.Err != nil {
		say("%v", r.Err)
	} else if r.Verdict != jsonl.Sound {
		say("%s", r.Path)
	}
	if d := r.Damage; d != nil && d.Closed >= 0 {
		say("%s before that, %d of them up to the last place outside a turn", plural(int(d.Events), "event"), d.Closed)
	}
	if r.Tail.Bytes > 0 && r.Verdict != jsonl.InUse {
		say("%s behind byte %d are not a whole write; %s can be read of them", plural(int(r.Tail.Bytes), "byte"), r.Whole, plural(r.Tail.Recoverable, "event"))
	}
	if r.Turn != 0 && r.Verdict != jsonl.InUse {
		say("turn %d is open", r.Turn)
	}
	if h := r.Holder; h != nil {
		say("%s since %s", usedBy(h), h.Since.Local().Format(time.DateTime))
	}
	for _, stray := range r.Stray {
		say("left of a write that was not finished: %s", stray)
	}
	for _, f := range r.Findings {
		say("event %d: %s", f.Seq, f.Text)
	}
	if next := nextStep(r); next != "" {
		say("-> %s", next)
	}
	return lines
}

// nextStep says what somebody may do about a log.
func nextStep(r *jsonl.Report) string {
	repair := "'dsh-actor sessions repair " + shellWord(string(r.ID))
	switch r.Verdict {
	case jsonl.Torn, jsonl.OpenTurn:
		return "continuing the session repairs it, and " + repair + " --apply' does"
	case jsonl.Corrupt, jsonl.Invalid:
		if r.Damage == nil || r.Damage.Closed < 0 {
			return "nothing can be read without the header; put a copy of the file in its place, or 'dsh-actor sessions delete " + shellWord(string(r.ID)) + "'"
		}
		return "see whether the file can be mended by hand; " + repair + " --cut' says what cutting it would lose"
	case jsonl.Unknown, jsonl.Newer:
		return "use the release that wrote it"
	case jsonl.Foreign:
		return "'dsh-actor sessions export " + shellWord(string(r.ID)) + " -o FILE' and 'dsh-actor sessions import FILE --sessions-dir OTHER' convert it"
	case jsonl.Duplicate:
		return "move the one that you do not want out of the directory"
	case jsonl.Misplaced:
		return repair + " --apply' moves it to " + r.Place
	case jsonl.Empty, jsonl.Leftover:
		return repair + " --apply' removes it"
	case jsonl.Unreadable:
		return "see who may read it"
	case jsonl.Sound, jsonl.InUse:
	}
	if len(r.Stray) > 0 && r.Verdict == jsonl.Sound {
		return repair + " --apply' removes what is left over"
	}
	return ""
}

// checked is what check --json writes.
type checked struct {
	Version  int          `json:"version"`
	OK       bool         `json:"ok"` // every log can be continued
	Sessions []checkedLog `json:"sessions"`
}

type checkedLog struct {
	Session     dsh.SessionID    `json:"session"`
	Path        string           `json:"path"`
	Verdict     string           `json:"verdict"`
	OK          bool             `json:"ok"`                // it can be continued, or there is none
	Problem     *problem         `json:"problem,omitempty"` // why it cannot be opened as it is
	Next        string           `json:"next,omitempty"`
	Size        int64            `json:"size"`
	Events      dsh.Seq          `json:"events"`
	Whole       int64            `json:"whole"` // where the last whole write ends
	Recoverable int              `json:"recoverable,omitempty"`
	OpenTurn    int              `json:"open_turn,omitempty"`
	Damage      *checkedDamage   `json:"damage,omitempty"`
	InUse       *jsonl.Holder    `json:"in_use,omitempty"`
	Place       string           `json:"place,omitempty"`
	Stray       []string         `json:"stray,omitempty"`
	Findings    []checkedFinding `json:"findings,omitempty"`
}

type checkedDamage struct {
	Line      int     `json:"line,omitempty"`
	Message   string  `json:"message"`
	Events    dsh.Seq `json:"events"`
	Closed    dsh.Seq `json:"closed"` // events up to the last place outside a turn; -1 without a header
	LostLines int     `json:"lost_lines"`
	LostBytes int64   `json:"lost_bytes"`
}

type checkedFinding struct {
	Seq  dsh.Seq `json:"seq"`
	Text string  `json:"text"`
}

func checkedOf(reports []jsonl.Report) checked {
	out := checked{Version: outputVersion, OK: true, Sessions: []checkedLog{}}
	for i := range reports {
		log := checkedLogOf(&reports[i])
		out.OK = out.OK && log.OK
		out.Sessions = append(out.Sessions, log)
	}
	return out
}

func checkedLogOf(r *jsonl.Report) checkedLog {
	log := checkedLog{
		Session: r.ID, Path: r.Path, Verdict: codeOf(r.Verdict), OK: r.Err == nil, Next: nextStep(r), Size: r.Size,
		Events: r.Events, Whole: r.Whole, Recoverable: r.Tail.Recoverable, OpenTurn: r.Turn,
		InUse: r.Holder, Place: r.Place, Stray: r.Stray,
	}
	switch {
	case r.Err != nil:
		log.Problem = &problem{log.Verdict, r.Err.Error()}
	case r.Verdict == jsonl.Torn:
		log.Problem = tornProblem(r.Tail)
	}
	if d := r.Damage; d != nil {
		log.Damage = &checkedDamage{d.Line, d.Reason.Error(), d.Events, d.Closed, d.Lost, d.LostBytes}
	}
	for _, f := range r.Findings {
		log.Findings = append(log.Findings, checkedFinding(f))
	}
	return log
}
