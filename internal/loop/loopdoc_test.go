package loop

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

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
