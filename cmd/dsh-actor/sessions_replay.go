package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/transcript"
	"github.com/dsh-actor/dsh-actor/replay"
)

const replayLong = `Derive from a session's log every request that was made to a model, and compare.

Nothing is asked and nothing is run: what the model saw can be derived from the
log alone, and a log that disagrees with itself or with what it yields is told.
A line says of each request its turn, step and attempt, how many messages it
had, the tokens that were counted, and what became of it. Findings follow.

The log of a run with --audit also says what was really sent, as digests; requests
that are the same are marked so.

With --requests the derived requests are written instead, a JSON object each:
what the model saw. WHICH is a number (3: the third), a turn and step (2.1: all
attempts of it), with an attempt (2.1.0), or all.

With --transcript a transcript of the session, as 'sessions show' makes it, comes
first.

A session that is being written, or that a crash left with a torn end, is
replayed as far as it is whole.

Exit status:
  0    there are no findings
  1    there are, or the log cannot be read
  2    the command line is wrong`

// replayFlags are those of sessions replay.
type replayFlags struct {
	json       bool
	requests   string
	transcript bool
}

func (a *app) sessionsReplayCommand(f *sessionsFlags) *cobra.Command {
	var rf replayFlags
	cmd := &cobra.Command{
		Use:   "replay ID",
		Short: "Derive every request again from the log and compare",
		Long:  replayLong,
		Example: "  dsh-actor sessions replay agent-3f2a\n" +
			"  dsh-actor sessions replay agent-3f2a --json\n" +
			"  dsh-actor sessions replay agent-3f2a --requests 2.1 | jq .messages",
		Args:              oneSession,
		ValidArgsFunction: a.completeSession(&f.dir, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.replaySession(cmd.Context(), f, args[0], rf)
		},
	}
	cmd.Flags().BoolVar(&rf.json, "json", false, "write a JSON object per request and finding, and one with the sums")
	cmd.Flags().StringVar(&rf.requests, "requests", "", "write these derived requests: `WHICH` is N, TURN.STEP, TURN.STEP.ATTEMPT or all")
	if err := cmd.RegisterFlagCompletionFunc("requests", cobra.NoFileCompletions); err != nil {
		panic(err) // the flag was just defined.
	}
	cmd.Flags().BoolVar(&rf.transcript, "transcript", false, "write what the session holds first, as 'sessions show' does")
	cmd.MarkFlagsMutuallyExclusive("json", "requests", "transcript")
	return cmd
}

func (a *app) replaySession(ctx context.Context, sf *sessionsFlags, name string, f replayFlags) error {
	which, err := parseWhich(f.requests)
	if err != nil {
		return err
	}
	store, id, err := a.session(ctx, sf, findSession, name)
	if err != nil {
		return err
	}
	log, err := store.OpenReader(ctx, id)
	if err != nil {
		return failed(explain(err, id))
	}
	var each func(*dsh.Event) error
	end := func() error { return nil }
	if f.transcript {
		if each, end, err = a.transcribe(log.Header()); err != nil {
			return failed(err)
		}
	}
	report, err := replayLog(ctx, log, each)
	if err = errors.Join(err, end()); err != nil {
		return failed(err)
	}
	out := replayOutput{a: a, id: id, report: report, torn: log.Tail().Bytes}
	switch {
	case f.requests != "":
		err = out.requests(which)
	case f.json:
		err = out.json()
	default:
		err = out.text()
	}
	if err == nil && len(report.Findings) > 0 {
		a.code = exitFailed
	}
	return failed(err)
}

// transcribe begins a transcript. It returns what takes its events and what ends
// it.
func (a *app) transcribe(h dsh.SessionHeader) (each func(*dsh.Event) error, end func() error, err error) {
	p := transcript.NewPrinter(a.stdout, &h, a.transcript())
	end = func() error {
		err := p.End()
		_, werr := a.stdout.WriteString("\n")
		return errors.Join(err, werr)
	}
	return p.Event, end, p.Session(&h)
}

// replayLog replays what the log holds now. each, unless nil, sees the events
// too, packed or not.
func replayLog(ctx context.Context, log *jsonl.Reader, each func(*dsh.Event) error) (*replay.Report, error) {
	r := replay.New(log.Header())
	for most := readFirst; ; most = min(2*most, readMost) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		events, err := log.Read(ctx, r.Next(), most)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			return r.Report(), nil
		}
		r.Add(events)
		for i := range events {
			if each == nil {
				break
			}
			if err := each(&events[i]); err != nil {
				return nil, err
			}
		}
	}
}

// A which names derived requests. Numbers below 0 stand for any.
type which struct{ n, turn, step, attempt int }

func parseWhich(text string) (which, error) {
	w := which{n: -1, turn: -1, step: -1, attempt: -1}
	if text == "" || text == "all" {
		return w, nil
	}
	parts := strings.Split(text, ".")
	into := []*int{&w.turn, &w.step, &w.attempt}
	if len(parts) == 1 {
		into = []*int{&w.n}
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || i >= len(into) || len(parts) == 1 && n == 0 {
			return w, fmt.Errorf("--requests %q is not N (from 1), TURN.STEP, TURN.STEP.ATTEMPT or all", text)
		}
		*into[i] = n
	}
	return w, nil
}

func (w which) has(i int, p dsh.Pos) bool {
	for _, pair := range [][2]int{{w.n, i + 1}, {w.turn, p.Turn}, {w.step, p.Step}, {w.attempt, p.Attempt}} {
		if pair[0] >= 0 && pair[0] != pair[1] {
			return false
		}
	}
	return true
}

// replayOutput writes what a replay yields.
type replayOutput struct {
	a      *app
	id     dsh.SessionID
	report *replay.Report
	torn   int64 // bytes behind the last whole write
}

// derivedRequest is a request as the model saw it.
type derivedRequest struct {
	Version    int             `json:"version"`
	Type       string          `json:"type"` // "derived"
	N          int             `json:"n"`
	Turn       int             `json:"turn"`
	Step       int             `json:"step"`
	Attempt    int             `json:"attempt"`
	Through    dsh.Seq         `json:"through"`
	Header     *dsh.Header     `json:"header"`
	Parameters *dsh.Parameters `json:"parameters,omitempty"`
	Messages   []*dsh.Message  `json:"messages"`
}

func (o replayOutput) requests(w which) error {
	found := false
	for i, r := range o.report.Requests {
		if !w.has(i, r.Pos) {
			continue
		}
		found = true
		d := derivedRequest{
			Version: outputVersion, Type: "derived", N: i + 1, Turn: r.Pos.Turn, Step: r.Pos.Step, Attempt: r.Pos.Attempt,
			Through: r.Through, Header: r.Header, Messages: r.Messages,
		}
		if r.Header != nil && !r.Header.Config.Parameters.IsZero() {
			d.Parameters = &r.Header.Config.Parameters
		}
		if d.Messages == nil {
			d.Messages = []*dsh.Message{}
		}
		if err := writeJSON(o.a.stdout, d); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("the log tells of %s, and none is the one that is asked for", plural(len(o.report.Requests), "request"))
	}
	return nil
}

// replayedRequest, replayedFinding and replayedSums are the lines of --json, in
// this order.
type replayedRequest struct {
	Version  int     `json:"version"`
	Type     string  `json:"type"` // "request"
	N        int     `json:"n"`
	Turn     int     `json:"turn"`
	Step     int     `json:"step"`
	Attempt  int     `json:"attempt"`
	Seq      dsh.Seq `json:"seq"`     // the first event that tells of it
	Through  dsh.Seq `json:"through"` // the last event that it was derived from
	Provider string  `json:"provider,omitempty"`
	Model    string  `json:"model,omitempty"`
	Messages int     `json:"messages"`
	Tools    int     `json:"tools"`
	// Outcome is answered, interrupted, failed, dropped or pending.
	Outcome string   `json:"outcome"`
	Error   *problem `json:"error,omitempty"`
	Usage   *tokens  `json:"usage,omitempty"`
	Answer  dsh.Seq  `json:"answer,omitempty"` // the event that has it
	// Digest is same or different; absent if none was logged.
	Digest   string `json:"digest,omitempty"`
	Findings int    `json:"findings"`
}

type replayedFinding struct {
	Version int     `json:"version"`
	Type    string  `json:"type"` // "finding"
	Kind    string  `json:"kind"`
	Seq     dsh.Seq `json:"seq"`
	Turn    int     `json:"turn,omitempty"`
	Step    int     `json:"step,omitempty"`
	Attempt int     `json:"attempt,omitempty"`
	Text    string  `json:"text"`
}

type replayedSums struct {
	Version  int           `json:"version"`
	Type     string        `json:"type"` // "summary"
	Session  dsh.SessionID `json:"session"`
	Events   dsh.Seq       `json:"events"`
	Requests int           `json:"requests"`
	AsLogged int           `json:"as_logged"` // without a finding
	ByDigest int           `json:"by_digest"` // the same as what was sent
	Findings int           `json:"findings"`
	Open     bool          `json:"open"`       // the log ends inside a turn
	Torn     int64         `json:"torn_bytes"` // behind the last whole write
}

func (o replayOutput) json() error {
	for i := range o.report.Requests {
		if err := writeJSON(o.a.stdout, replayedOf(i, &o.report.Requests[i])); err != nil {
			return err
		}
	}
	for _, f := range o.report.Findings {
		err := writeJSON(o.a.stdout, replayedFinding{
			outputVersion, "finding", string(f.Kind), f.Seq, f.Pos.Turn, f.Pos.Step, f.Pos.Attempt, f.Text,
		})
		if err != nil {
			return err
		}
	}
	asLogged, byDigest := o.report.Matching()
	return writeJSON(o.a.stdout, replayedSums{
		outputVersion, "summary", o.id, o.report.Events, len(o.report.Requests), asLogged, byDigest,
		len(o.report.Findings), o.report.Open, o.torn,
	})
}

func replayedOf(i int, r *replay.Request) replayedRequest {
	out := replayedRequest{
		Version: outputVersion, Type: "request", N: i + 1, Turn: r.Pos.Turn, Step: r.Pos.Step, Attempt: r.Pos.Attempt,
		Seq: r.Seq, Through: r.Through, Messages: len(r.Messages), Outcome: string(r.Outcome),
		Answer: r.AnswerSeq, Digest: string(r.Digest), Findings: r.Findings,
	}
	if h := r.Header; h != nil {
		out.Provider, out.Model, out.Tools = h.Config.Provider, h.Config.Model, len(h.Tools)
	}
	if r.Failure != nil {
		out.Error = &problem{string(r.Failure.Code), r.Failure.Message}
	}
	if r.Usage != nil {
		t := tokensOf(*r.Usage)
		out.Usage = &t
	}
	return out
}

func (o replayOutput) text() error {
	var out strings.Builder
	var table [][]string
	for i := range o.report.Requests {
		r := &o.report.Requests[i]
		tokens := "no count"
		if r.Usage != nil {
			tokens = count(*r.Usage)
		}
		table = append(table, []string{
			fmt.Sprint(r.Pos), plural(len(r.Messages), "message"), tokens, became(r), verdict(r),
		})
	}
	layOut(&out, table, 0)
	for _, f := range o.report.Findings {
		out.WriteString(inOneLine(f.String()) + "\n")
	}
	out.WriteString(o.sums())
	_, err := o.a.stdout.WriteString(out.String())
	return err
}

// became says in a word or two what became of a request.
func became(r *replay.Request) string {
	if r.Failure != nil {
		return string(r.Outcome) + " " + inOneLine(string(r.Failure.Code))
	}
	return string(r.Outcome)
}

// inOneLine returns s without what could break out of its line.
func inOneLine(s string) string { return strings.Join(strings.Fields(printable(s)), " ") }

func verdict(r *replay.Request) string {
	switch {
	case r.Findings > 0:
		return plural(r.Findings, "finding")
	case r.Digest == replay.Same:
		return "ok, by digest"
	}
	return "ok"
}

func (o replayOutput) sums() string {
	asLogged, byDigest := o.report.Matching()
	text := fmt.Sprintf("%s derived, %d as logged, %d by digest", plural(len(o.report.Requests), "request"), asLogged, byDigest)
	if n := len(o.report.Findings); n > 0 {
		text += ", " + plural(n, "finding")
	}
	text += "\n"
	if o.report.Open {
		text += "The log ends inside a turn: it is being written, or a crash left it so.\n"
	}
	if o.torn > 0 {
		text += fmt.Sprintf("%d bytes behind the last whole write were not replayed.\n", o.torn)
	}
	return text
}
