package loop

import (
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// The tables are written by hand and checked against the machine, each cell by
// the script that leads to it; docs/loop.md is printed from them.

// states leads to each state, by lines of a script. Calls a and b are open
// where the state is about calls; "executing" has one entry per question that
// can be open.
var states = []struct{ name, script string }{
	{"idle", ``},
	{"admitting, barrier", `followup m1 hello`},
	{"admitting", `admitting, barrier; synced`},
	{"step-entered", `admitting; hold admitted`},
	{"preparing", `admitting; admitted`},
	{"deriving", `preparing; prepared`},
	{"streaming", `deriving; derived`},
	{"recovering", `streaming; stream-end SERVER down`},
	{"answer-logged", `streaming; stream call a t {} | call b t {} | finish tool-calls; hold stream-end`},
	{"executing, mode", `streaming; stream call a t {} | call b t {} | finish tool-calls; stream-end`},
	{"executing, policies", `executing, mode; classified a exclusive`},
	{"executing, barrier", `executing, policies; judged a allow`},
	{"executing, body", `executing, barrier; synced`},
	{"executing, review", `executing, body; ran a ok fine`},
	{"results-logged", `executing, review; hold reviewed a`},
	{"step-closed", `streaming; stream text hi | finish stop; hold stream-end; hold continue`},
	{"stopping", `streaming; stream text hi | finish stop; stream-end`},
	{"settling", `admitting; hold cancel user keep; hold admitted`},
	{"turn-closed", `stopping; hold settled`},
	{"maintaining", `maintain`},
}

// groups are the columns of the table of commands.
var groups = []struct {
	name   string
	states []string
}{
	{"idle", []string{"idle"}},
	{"in a turn", []string{
		"admitting, barrier", "admitting", "step-entered", "preparing", "deriving", "streaming", "recovering",
		"answer-logged", "executing, mode", "executing, policies", "executing, barrier", "executing, body",
		"executing, review", "results-logged", "step-closed", "stopping",
	}},
	{"settling", []string{"settling"}},
	{"turn-closed", []string{"turn-closed"}},
	{"maintaining", []string{"maintaining"}},
}

// commandTable says what each command does in each group of states, and
// behind the stroke what it does there after a cancel.
const commandTable = `
command | idle | in a turn | settling | turn-closed | maintaining
start resume | logs | logs | logs | logs | logs
followup x text | step: admitting | queues for a turn / queues for a turn, latches | queues for a turn, latches | queues for a turn, latches | queues for a turn, latches
steer x text | step: admitting | queues for a step / queues for a turn, latches | queues for a turn, latches | queues for a step, latches / queues for a turn, latches | queues for a step, latches / queues for a turn, latches
inject x text | queues for a step | queues for a step | queues for a step | queues for a step | queues for a step
wake | step: admitting | nothing / latches | latches | latches | latches
prepend next-turn x text | queues for a turn | queues for a turn | queues for a turn | queues for a turn | queues for a turn
replace i x text | replaces | replaces | replaces | replaces | replaces
replace none x text | refuses: not pending | refuses: not pending | refuses: not pending | refuses: not pending | refuses: not pending
remove i | withdraws | withdraws | withdraws | withdraws | withdraws
remove none | refuses: not pending | refuses: not pending | refuses: not pending | refuses: not pending | refuses: not pending
inject i text | refuses: pending | refuses: pending | refuses: pending | refuses: pending | refuses: pending
clear | withdraws | withdraws | withdraws | withdraws | withdraws
cancel user | withdraws | withdraws, aborts / withdraws | withdraws | withdraws | withdraws, aborts / withdraws
cancel user keep | nothing | aborts / nothing | nothing | nothing | aborts / nothing
cancel disposed keep | nothing | aborts / nothing | nothing | nothing | aborts / nothing
maintain | step: maintaining | refuses: busy | refuses: busy | refuses: busy | refuses: busy
append opaque todo/write | logs | logs | logs | logs | logs
append bare x text | refuses: surface | refuses: surface | refuses: surface | refuses: surface | refuses: surface
`

// answerTable says what each answer leads to, and what it leads to after a
// cancel. Answers that are not listed for a state were not asked for there:
// they panic.
const answerTable = `
state               | answer                        | leads to                   | after a cancel
admitting, barrier  | synced                        | asks admit                 | turn-closed
admitting, barrier  | synced plain disk full        | turn-closed                | turn-closed
admitting           | admitted                      | step-entered               | turn-closed
admitting           | admitted none                 | turn-closed                | turn-closed
admitting           | refused                       | turn-closed                | turn-closed
admitting           | hook-failed broke             | turn-closed                | turn-closed
preparing           | prepared                      | asks derive: deriving      | step-closed
preparing           | prepared route=               | step-closed                | step-closed
preparing           | hook-failed broke             | step-closed                | step-closed
deriving            | derived                       | asks stream: streaming     | step-closed
deriving            | derived plain disk full       | step-closed                | step-closed
streaming           | stream text hi                | logs                       | nothing
streaming           | stream-end                    | answer-logged              | step-closed
streaming           | stream-end SERVER down        | asks recover: recovering   | step-closed
recovering          | recovered retry               | asks prepare: preparing    | step-closed
recovering          | recovered stand               | step-closed                | step-closed
recovering          | hook-failed broke             | step-closed                | step-closed
executing, mode     | classified a parallel         | asks judge                 | step-closed
executing, mode     | tools-failed broke            | nothing                    | nothing
executing, policies | judged a allow                | asks sync                  | asks review
executing, policies | judged a deny no              | asks review                | asks review
executing, policies | judged a error broke          | asks review                | asks review
executing, policies | tools-failed broke            | nothing                    | nothing
executing, barrier  | synced                        | asks run                   | asks review
executing, barrier  | synced plain disk full        | asks review                | asks review
executing, barrier  | tools-failed broke            | nothing                    | nothing
executing, body     | ran a ok fine                 | asks review                | asks review
executing, body     | tools-failed broke            | nothing                    | nothing
executing, review   | reviewed a                    | results-logged             | results-logged
executing, review   | tools-failed broke            | nothing                    | nothing
stopping            | settled                       | turn-closed                | turn-closed
stopping            | hook-failed broke             | turn-closed                | turn-closed
settling            | children-settled              | turn-closed                | turn-closed
maintaining         | maintained                    | idle                       | idle
step-entered        | continue                      | asks prepare: preparing    | step-closed
answer-logged       | continue                      | asks classify: executing   | step-closed
results-logged      | continue                      | asks classify: executing   | step-closed
step-closed         | continue                      | asks ask-stopping: stopping | turn-closed
turn-closed         | continue                      | idle                       | idle
`

// answers has one of each kind.
var answers = []string{
	"synced", "admitted", "refused", "hook-failed broke", "prepared", "derived", "stream text hi", "stream-end",
	"recovered stand", "settled", "children-settled", "classified a parallel", "judged a allow", "ran a ok fine", "reviewed a",
	"tools-failed broke", "maintained", "continue",
}

// at returns a player whose machine is in a state, aborted or not, with the
// message i pending for a step if asked to.
func at(t *testing.T, name string, aborted, pending bool) *player {
	t.Helper()
	p := &player{calls: map[dsh.CallID]int{"a": 0}}
	first := "new durable"
	if name == "settling" {
		first = "new durable children"
	}
	lines := append([]string{first}, linesTo(name)...)
	if pending {
		lines = append(lines, "hold inject i pending")
	}
	if aborted {
		lines = append(lines, "hold cancel user keep")
	}
	for _, l := range lines {
		if err := p.line(l); err != nil {
			t.Fatalf("on the way to %s: %s: %v", name, l, err)
		}
	}
	if state, _, _ := strings.Cut(name, ","); p.m.State() != state || p.broken {
		t.Fatalf("the way to %s leads to %s\n%s", name, p.m.State(), p.out.String())
	}
	return p
}

func linesTo(name string) []string {
	for _, s := range states {
		if s.name != name {
			continue
		}
		if s.script == "" {
			return nil
		}
		lines := strings.Split(s.script, "; ")
		if before := linesTo(lines[0]); before != nil {
			return append(before, lines[1:]...)
		}
		return lines
	}
	return nil
}

// does applies one line and says in short what came of it.
func does(t *testing.T, p *player, text string) string {
	t.Helper()
	verb, rest := word(text)
	in, err := p.input(p.m.Pos(), verb, rest)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	before, latched := p.m.State(), p.m.latched
	var effects []Effect
	var refused error
	panicked := func() (panicked bool) {
		defer func() { panicked = recover() != nil }()
		effects, refused = p.m.Step(9, in)
		return false
	}()
	switch {
	case panicked:
		return "panics"
	case refused != nil && len(effects) > 0:
		return "refuses with effects"
	case refused != nil:
		return "refuses: " + reason(refused)
	}
	return summary(effects, before, p.m.State(), p.m.latched && !latched)
}

func reason(err error) string {
	for _, r := range []struct {
		err  error
		text string
	}{{ErrBusy, "busy"}, {ErrDuplicate, "pending"}, {ErrNotPending, "not pending"}, {dsh.ErrSurface, "surface"}} {
		if strings.Contains(err.Error(), r.err.Error()) {
			return r.text
		}
	}
	return err.Error()
}

// summary condenses effects to what the tables say.
func summary(effects []Effect, before, after string, latched bool) string {
	var did []string
	asks := ""
	logs, notes := false, false
	for _, e := range effects {
		switch e := e.(type) {
		case *Log:
			logs = true
			for i := range e.Events {
				if s, ok := e.Events[i].Data.(dsh.InboxSpliced); ok {
					did = append(did, spliced(s))
				}
			}
		case *Notify:
			notes = true
		case Abort:
			did = append(did, "aborts")
		case EndTurn:
		default:
			asks, _ = word(printQuestion(e))
		}
	}
	if latched {
		did = append(did, "latches")
	}
	switch {
	case before != after && (before == "idle" || after == ""):
		return "step: " + after
	case before != after && asks != "" && before != "idle":
		return "asks " + asks + ": " + after
	case before != after:
		return after
	case asks != "":
		return "asks " + asks
	case len(did) > 0:
		return strings.Join(slices.Compact(did), ", ")
	case logs:
		return "logs"
	case notes:
		return "notes"
	}
	return "nothing"
}

func spliced(s dsh.InboxSpliced) string {
	switch {
	case s.Removed > 0 && len(s.Inserted) > 0:
		return "replaces"
	case s.Removed > 0:
		return "withdraws"
	case s.Target == dsh.NextStep:
		return "queues for a step"
	}
	return "queues for a turn"
}

func cells(table string) [][]string {
	var rows [][]string
	for _, l := range strings.Split(strings.TrimSpace(table), "\n") {
		var row []string
		for _, cell := range strings.Split(l, " | ") {
			row = append(row, strings.TrimSpace(cell))
		}
		rows = append(rows, row)
	}
	return rows
}

// Every state meets every command, before and after a cancel.
func TestCommandTable(t *testing.T) {
	rows := cells(commandTable)
	covered := map[string]bool{}
	for _, row := range rows[1:] {
		for i, group := range groups {
			if rows[0][i+1] != group.name {
				t.Fatalf("column %d is %q, want %q", i+1, rows[0][i+1], group.name)
			}
			want, after, differs := strings.Cut(row[i+1], " / ")
			if !differs {
				after = want
			}
			for _, state := range group.states {
				covered[state] = true
				command := row[0]
				pending := !strings.HasPrefix(command, "steer") && !strings.HasPrefix(command, "followup")
				if got := does(t, at(t, state, false, pending), command); got != want {
					t.Errorf("%s in %s: %s; the table says %s", command, state, got, want)
				}
				if got := does(t, at(t, state, true, pending), command); got != after && state != "idle" {
					t.Errorf("%s in %s after a cancel: %s; the table says %s", command, state, got, after)
				}
			}
		}
	}
	for _, s := range states {
		if !covered[s.name] {
			t.Errorf("state %s is in no column", s.name)
		}
	}
}

// Every state meets every answer: what was not asked for panics, what comes
// from another position is ignored.
func TestAnswerTable(t *testing.T) {
	listed := map[string]bool{}
	for _, row := range cells(answerTable)[1:] {
		state, answer := row[0], row[1]
		verb, _ := word(answer)
		listed[state+" "+verb] = true
		if got := does(t, at(t, state, false, false), answer); got != row[2] {
			t.Errorf("%s in %s: %s; the table says %s", answer, state, got, row[2])
		}
		if got := does(t, at(t, state, true, false), answer); got != row[3] {
			t.Errorf("%s in %s after a cancel: %s; the table says %s", answer, state, got, row[3])
		}
	}
	for _, s := range states {
		for _, answer := range answers {
			verb, rest := word(answer)
			p := at(t, s.name, false, false)
			if !listed[s.name+" "+verb] {
				if got := does(t, p, answer); got != "panics" {
					t.Errorf("%s in %s: %s; nobody asked for it", answer, s.name, got)
				}
			}
			if verb == "continue" {
				continue
			}
			p = at(t, s.name, false, false)
			in, err := p.input(dsh.Pos{Turn: 7, Step: 7, Attempt: 7}, verb, rest)
			if err != nil {
				t.Fatal(err)
			}
			before := printState(p.m)
			if effects, err := p.m.Step(9, in); err != nil || len(effects) > 0 || printState(p.m) != before {
				t.Errorf("late %s in %s is not ignored", answer, s.name)
			}
		}
	}
}
