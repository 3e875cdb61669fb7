package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/transcript"
)

const showLong = `Show what a session holds, as a transcript: who said what, what tools were called
with and what came of it, how turns ended, how long things took and what they
cost. Long texts are shortened; --full shows them whole. The number of the event
at the beginning of a turn is what 'run --fork ID@SEQ' takes to go on before it.

On a terminal it is shown through DSH_ACTOR_PAGER, PAGER or less. With --follow it
goes on with what is appended by whoever uses the session, until Ctrl-C.

What a damaged log holds before the damage is shown; then the exit status is 1.
Nothing is ever changed: a log that a crash has torn stays so, which is told at
the end.

With --json there is a line for each event of the session between a "session" and
an "end", all with "version": 1; the events are as in the log, each by itself.

Exit status:
  0    all was shown, or whoever read it had enough
  1    the log is damaged, or cannot be read
  2    the command line is wrong, or there is no such session
  130  --follow was ended by Ctrl-C (143 by SIGTERM)`

const showExample = `  dsh-actor sessions show agent-3f2a
  dsh-actor sessions show agent-3f2a --turn 2 --full
  dsh-actor sessions show agent-3f2a --follow
  dsh-actor sessions show agent-3f2a --json | jq 'select(.event.type == "tool/call")'`

// Reading a log that somebody else may write.
const (
	// A read takes so many events at first and twice as many each time, up to
	// a most that bounds the memory: what was written at once is decoded as a
	// whole by each read that wants a part of it.
	readFirst, readMost = 1 << 12, 1 << 16
	// pollEach is how long to wait when there are none.
	pollEach = 150 * time.Millisecond
)

// showFlags are the flags of sessions show.
type showFlags struct {
	json    bool
	follow  bool
	from    int64
	turn    int
	full    bool
	noPager bool
}

func (a *app) sessionsShowCommand(f *sessionsFlags) *cobra.Command {
	var s showFlags
	cmd := &cobra.Command{
		Use:               "show ID",
		Short:             "Show what a session holds",
		Long:              showLong,
		Example:           showExample,
		Args:              oneSession,
		ValidArgsFunction: a.completeSession(&f.dir, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.check(cmd.Flags().Changed); err != nil {
				return err
			}
			store, id, err := a.session(cmd.Context(), f, findSession, args[0])
			if err != nil {
				return err
			}
			return failed(a.showSession(cmd.Context(), store, id, &s))
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVarP(&s.follow, "follow", "f", false, "go on with what is appended, until Ctrl-C")
	flags.IntVar(&s.turn, "turn", 0, "only turn `N`")
	flags.Int64Var(&s.from, "from", 0, "only from event `SEQ` on; the first is 0")
	flags.BoolVar(&s.full, "full", false, "shorten nothing")
	flags.BoolVar(&s.json, "json", false, "write a line of JSON for each event")
	flags.BoolVar(&s.noPager, "no-pager", false, "write to the terminal itself")
	for _, name := range []string{"turn", "from"} {
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions); err != nil {
			panic(err) // the flag was just defined.
		}
	}
	return cmd
}

func (s *showFlags) check(changed func(string) bool) error {
	var errs []error
	if s.from < 0 {
		errs = append(errs, usagef("--from is %d: events are counted from 0", s.from))
	}
	if changed("turn") && s.turn < 1 {
		errs = append(errs, usagef("--turn is %d: turns are counted from 1", s.turn))
	}
	return errors.Join(errs...)
}

// A showing is one showing of a session.
type showing struct {
	*showFlags
	store  *jsonl.Store
	header dsh.SessionHeader
	reader *jsonl.Reader // nil if the log is damaged
	look   jsonl.Look    // of a damaged one
}

func (a *app) showSession(ctx context.Context, store *jsonl.Store, id dsh.SessionID, f *showFlags) error {
	var err error
	s := &showing{showFlags: f, store: store}
	if s.reader, err = store.OpenReader(ctx, id); err == nil {
		s.header = s.reader.Header()
	} else if s.look = store.Look(dsh.SessionHeader{ID: id}); s.look.Header.Version == dsh.FormatVersion && len(s.look.Events) > 0 {
		s.header = s.look.Header
	} else {
		return explain(err, id)
	}
	err = s.show(ctx, a)
	if a.stop.last() != nil {
		a.code = a.stop.code()
	}
	if err == nil && s.look.Err != nil && !f.follow {
		return explain(s.look.Err, id)
	}
	return err
}

// show shows the session where it belongs.
func (s *showing) show(ctx context.Context, a *app) error {
	switch {
	case s.json:
		return s.write(ctx, a.stdout, func(w io.Writer) logView { return &jsonLog{w: w, head: &s.header, turn: s.turn, from: dsh.Seq(s.from)} })
	case a.stdout.terminal && !s.noPager && !s.follow:
		return a.page(ctx, func(w io.Writer) error { return s.write(ctx, w, s.text(a)) })
	}
	return s.write(ctx, a.stdout, s.text(a))
}

// transcript returns how transcripts look on stdout.
func (a *app) transcript() transcript.Options {
	return transcript.Options{Location: time.Local, Width: a.width(), Colour: a.coloured(a.stdout)}
}

// text returns how a transcript is made.
func (s *showing) text(a *app) func(io.Writer) logView {
	opts := a.transcript()
	opts.Full, opts.From, opts.Turn = s.full, dsh.Seq(s.from), s.turn
	return func(w io.Writer) logView {
		return &textLog{Printer: transcript.NewPrinter(w, &s.header, opts), header: &s.header, turn: s.turn}
	}
}

// A logView shows a log.
type logView interface {
	begin() error
	// event shows an event, packed or not; done says that no later one matters.
	event(ev *dsh.Event) (done bool, err error)
	// end says how it is with the log behind its last event.
	end(e logEnd) error
}

// logEnd is what lies behind the last event of a log.
type logEnd struct {
	events dsh.Seq
	owner  *jsonl.Holder // nil for none
	tail   jsonl.Tail
	damage error
}

// write shows the log on w.
func (s *showing) write(ctx context.Context, w io.Writer, view func(io.Writer) logView) error {
	out := bufio.NewWriterSize(w, 32<<10)
	v := view(out)
	err := v.begin()
	var next dsh.Seq
	most := readFirst
	for done := false; err == nil && !done; {
		var events []dsh.Event
		if events, err = s.read(ctx, next, most); err != nil {
			break
		}
		most = min(2*most, readMost)
		if len(events) == 0 {
			if err = out.Flush(); err != nil || !s.follow || s.reader == nil || !pause(ctx) {
				break
			}
			continue
		}
		for i := range events {
			next = events[i].Last() + 1
			if done, err = v.event(&events[i]); done || err != nil {
				break
			}
		}
	}
	if err == nil {
		err = v.end(s.ending(next))
	}
	return errors.Join(err, out.Flush())
}

// pause waits before the log is looked at again; false says that it is not to
// be.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(pollEach)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// read returns the next events; none if there are none, or if somebody wants
// the end.
func (s *showing) read(ctx context.Context, next dsh.Seq, most int) ([]dsh.Event, error) {
	if ctx.Err() != nil {
		return nil, nil
	}
	if s.reader != nil {
		return s.reader.Read(ctx, next, most)
	}
	i, _ := slices.BinarySearchFunc(s.look.Events, next, func(ev dsh.Event, seq dsh.Seq) int { return int(ev.Seq - seq) })
	return s.look.Events[i:], nil
}

func (s *showing) ending(next dsh.Seq) logEnd {
	e := logEnd{events: next, damage: s.look.Err}
	if owner, ok, err := s.store.Owner(s.header); err == nil && ok {
		e.owner = &owner
	}
	if s.reader != nil && e.owner == nil { // else it is being written
		e.tail = s.reader.Tail()
	}
	return e
}

// textLog shows a log as a transcript.
type textLog struct {
	*transcript.Printer
	header *dsh.SessionHeader
	turn   int
}

func (v *textLog) begin() error { return v.Session(v.header) }

func (v *textLog) event(ev *dsh.Event) (bool, error) {
	err := v.Event(ev)
	end, ok := ev.Data.(dsh.TurnEnd)
	return ok && v.turn != 0 && end.Turn >= v.turn, err
}

func (v *textLog) end(e logEnd) error {
	if turns := v.Fold().Turns(); turns < v.turn && e.damage == nil {
		return fmt.Errorf("the session has %s, so there is no turn %d", plural(turns, "turn"), v.turn)
	}
	err := v.End()
	switch {
	case e.damage != nil:
		err = errors.Join(err, v.Remark("the log is damaged from here on: "+e.damage.Error()))
	case e.tail.Bytes > 0:
		err = errors.Join(err, v.Remark(torn(e.tail)))
	case e.owner != nil:
		err = errors.Join(err, v.Remark("the session is "+usedBy(e.owner)))
	}
	return err
}

// jsonLog writes a log as lines of JSON.
type jsonLog struct {
	w    io.Writer
	head *dsh.SessionHeader
	from dsh.Seq
	turn int // 0 for all
	at   int // the open turn
	buf  []byte
}

func (v *jsonLog) begin() error {
	return writeJSON(v.w, struct {
		Version int                `json:"version"`
		Type    string             `json:"type"`
		Session *dsh.SessionHeader `json:"session"`
	}{outputVersion, "session", v.head})
}

func (v *jsonLog) event(ev *dsh.Event) (done bool, err error) {
	if d, ok := ev.Data.(dsh.TurnStart); ok {
		v.at = d.Turn
	}
	for one := range dsh.Expand([]dsh.Event{*ev}) {
		if one.Seq >= v.from && (v.turn == 0 || v.turn == v.at) {
			v.buf = append(v.buf[:0], eventLine...)
			v.buf = append(one.AppendJSON(append(v.buf, `"event":`...)), "}\n"...)
			if _, err := v.w.Write(v.buf); err != nil {
				return false, err
			}
		}
	}
	if d, ok := ev.Data.(dsh.TurnEnd); ok {
		v.at = 0
		done = v.turn != 0 && d.Turn >= v.turn
	}
	return done, nil
}

func (v *jsonLog) end(e logEnd) error {
	end := struct {
		Version int           `json:"version"`
		Type    string        `json:"type"`
		Next    dsh.Seq       `json:"next"` // for --from, to go on here
		InUse   *jsonl.Holder `json:"in_use,omitempty"`
		Problem *problem      `json:"problem,omitempty"`
	}{outputVersion, "end", e.events, e.owner, nil}
	switch {
	case e.damage != nil:
		end.Problem = logProblem(e.damage)
	case e.tail.Bytes > 0:
		end.Problem = tornProblem(e.tail)
	}
	return writeJSON(v.w, end)
}
