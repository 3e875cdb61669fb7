package loop

import (
	"fmt"
	"os"
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

// arrows are all ways from one state to another; the laws (see law_test.go)
// see each of them and no other.
var arrows = []struct{ from, to, label string }{
	{"idle", "admitting", "a wake"},
	{"idle", "maintaining", "maintain"},
	{"maintaining", "idle", "done"},
	{"maintaining", "admitting", "done, a wake was latched"},
	{"admitting", "step-entered", "admitted"},
	{"admitting", "turn-closed", "refused, emptied, failed, cancelled"},
	{"step-entered", "preparing", "continue"},
	{"step-entered", "step-closed", "no prompt, cancelled"},
	{"preparing", "deriving", "prepared"},
	{"preparing", "step-closed", "failed, cancelled"},
	{"deriving", "streaming", "derived"},
	{"deriving", "step-closed", "failed, cancelled"},
	{"streaming", "answer-logged", "the stream ended"},
	{"streaming", "recovering", "the stream failed"},
	{"streaming", "step-closed", "cancelled"},
	{"recovering", "preparing", "retry"},
	{"recovering", "step-closed", "stands, failed, cancelled"},
	{"answer-logged", "executing", "with calls"},
	{"answer-logged", "step-closed", "without calls, cancelled"},
	{"executing", "results-logged", "a result is logged"},
	{"executing", "step-closed", "cancelled, broken"},
	{"results-logged", "executing", "more to do"},
	{"results-logged", "step-closed", "all have results"},
	{"step-closed", "admitting", "another step is owed"},
	{"step-closed", "stopping", "the turn has an ending"},
	{"step-closed", "turn-closed", "failed, cancelled"},
	{"stopping", "admitting", "steered on"},
	{"stopping", "turn-closed", "settled, failed, cancelled"},
	{"admitting", "settling", "cancelled, with children"},
	{"step-closed", "settling", "cancelled, with children"},
	{"stopping", "settling", "cancelled, with children"},
	{"settling", "turn-closed", "the children have settled"},
	{"turn-closed", "admitting", "input is pending"},
	{"turn-closed", "idle", "nothing is pending, or the turn did not end well"},
}

const docPath = "../../docs/loop.md"

// docs/loop.md says what the tables say.
func TestLoopDocument(t *testing.T) {
	want := document()
	got, err := os.ReadFile(docPath)
	if err == nil && string(got) == want {
		return
	}
	if *rewrite {
		if err := os.WriteFile(docPath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is stale (%v): run go test ./internal/loop -run Document -rewrite", docPath, err)
}

func document() string {
	var out strings.Builder
	out.WriteString(docIntro)
	out.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> idle\n")
	for _, a := range arrows {
		fmt.Fprintf(&out, "    %s --> %s: %s\n", nodeName(a.from), nodeName(a.to), a.label)
	}
	out.WriteString("```\n" + docCommands)
	writeTable(&out, cells(commandTable))
	out.WriteString(docAnswers)
	writeTable(&out, cells(answerTable))
	out.WriteString(docEnd)
	return out.String()
}

func nodeName(state string) string { return strings.ReplaceAll(state, "-", "_") }

func writeTable(out *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(prose(cell)))
		}
	}
	for n, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(out, "| %-*s ", widths[i], prose(cell))
		}
		out.WriteString("|\n")
		if n == 0 {
			for _, w := range widths {
				out.WriteString("|" + strings.Repeat("-", w+2))
			}
			out.WriteString("|\n")
		}
	}
}

// prose turns the words of a script into those of a reader.
func prose(cell string) string {
	return strings.NewReplacer(
		"step: ", "→ ", "synced plain disk full", "synced, failed", "derived plain disk full", "derived, failed",
		"hook-failed broke", "hook failed", "tools-failed broke", "tools failed", "stream-end SERVER down", "stream ended, failed",
		"stream-end", "stream ended", "stream text hi", "chunks", "prepared route=", "prepared, no route",
		"admitted none", "admitted, no messages", "recovered retry", "recovered: retry", "recovered stand", "recovered: stands",
		"classified a parallel", "classified", "judged a allow", "judged: allow", "judged a deny no", "judged: deny or ask",
		"judged a error broke", "judged, failed", "ran a ok fine", "ran", "reviewed a", "reviewed", "asks ask-stopping", "asks turn-stopping",
		"start resume", "start", "followup x text", "followup", "steer x text", "steer", "inject x text", "inject",
		"prepend next-turn x text", "prepend", "replace i x text", "replace", "replace none x text", "replace, not pending",
		"remove i", "remove", "remove none", "remove, not pending", "children-settled", "children settled", "inject i text", "any, with a pending ID",
		"cancel user keep", "cancel, keeping the inbox", "cancel disposed keep", "cancel by dispose, keeping", "cancel user", "cancel",
		"append opaque todo/write", "append", "append bare x text", "append, no place on the surface",
		": deriving", " → deriving", ": streaming", " → streaming", ": recovering", " → recovering", ": preparing", " → preparing",
		": executing", " → executing", ": stopping", " → stopping",
	).Replace(cell)
}

const docIntro = `# The loop

<!-- Printed by internal/loop/table_test.go; run go test ./internal/loop -run Document -rewrite. -->

The loop of an agent is a machine without a clock, a goroutine or a random
number: inputs go in, effects come out (package internal/loop). A state is what
the machine waits for. Whatever it waits for is answered exactly once, however
the answer turns out, so a turn always ends; a cancel does not end a turn by
itself, it shortens the way to the end, and the turn closes when the last
answer has come.

A turn is a row of steps. Before each step input is claimed and the hooks are
asked (*admitting*); the step opens, a request is prepared (*preparing*), the
history is derived from a log that is durable by then (*deriving*), the model
answers (*streaming*), a failed request may be tried again (*recovering*), and
the calls of the answer run (*executing*). When no further step is owed, the
hooks may steer the turn on (*stopping*). An aborted turn waits for the agent's
children before it closes (*settling*), where there can be any; the table's
other rows are those of an agent that cannot have them. Maintenance is a state of its own,
since it excludes turns (*maintaining*).

Between two transitions the machine stands at a border (*step-entered*,
*answer-logged*, *results-logged*, *step-closed*, *turn-closed*) and goes on
when its host says so. Nothing is open there; it is where a cancel by an
observer of what was just logged takes effect.

`

const docCommands = `
## Commands

Commands are taken in every state; a refused one changes nothing. Where a cell
has two parts, the second holds after a cancel, until the phase is over.
*Latches* means: a turn opens as soon as the phase is over, if anything is
pending then; *withdraws* assumes that something is pending. A cancel that is
not told to keep the inbox drops a latch too, and an agent that is being
disposed latches nothing.

`

const docAnswers = `
## Answers

Each answer is shown where it is asked for. Anywhere else it panics, since only
a bug of the host can give it; an answer that carries the position of an
earlier question is late and ignored. *Continue* is the host's word to go on
from a border. *Asks* without a state means that the state stays. In
*executing* one question about a call is open at a time (its mode, its
policies, a barrier, its review), while any number of bodies run.

`

const docEnd = `
A turn that ends goes on with the next one at once if it ended well
(*completed* or *max-tokens*) and input is pending; after any other end, input
waits for the next wake.
`
