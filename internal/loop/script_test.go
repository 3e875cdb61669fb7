package loop

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/actortest/loglaw"
)

var rewrite = flag.Bool("rewrite", false, "record what the machine does in testdata and docs/loop.md")

// TestScripts plays testdata/*.script. A script is a story told in blocks:
// inputs, one per line, a line of dashes, and what the machine does with them.
// Lines of inputs that begin with # are the story.
//
// The machine goes on from borders by itself, as under a host without
// observers, unless an input is preceded by "hold". Answers carry the position
// of the machine unless preceded by "@turn.step.attempt".
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.script")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".script"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := play(string(raw))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if wrong := strings.HasPrefix(filepath.Base(file), "wrong-"); wrong != strings.Contains(got, "\npanic ") {
				t.Errorf("%s: only the scripts named wrong-* panic, and they do", file)
			}
			if got == string(raw) {
				return
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s differs; read the diff, then run with -rewrite to keep it:\n%s", file, diff(string(raw), got))
		})
	}
}

// diff shows the first block of lines that differ, with what stands before.
func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	i := 0
	for i < len(w) && i < len(g) && w[i] == g[i] {
		i++
	}
	from := max(0, i-3)
	tail := func(lines []string) string {
		return strings.Join(lines[min(from, len(lines)):min(i+12, len(lines))], "\n")
	}
	return fmt.Sprintf("line %d\n--- want\n%s\n--- got\n%s", i+1, tail(w), tail(g))
}

const dashes = "----"

// play runs a script and returns it as it would have been recorded.
func play(text string) (string, error) {
	p := &player{calls: map[dsh.CallID]int{}}
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		p.out.Reset()
		played := false
		for ; i < len(lines) && lines[i] != dashes; i++ {
			out.WriteString(lines[i] + "\n")
			input := strings.TrimSpace(lines[i])
			if input == "" || strings.HasPrefix(input, "#") {
				continue
			}
			played = true
			if err := p.line(input); err != nil {
				return "", fmt.Errorf("line %d: %s: %w", i+1, input, err)
			}
		}
		for ; i < len(lines) && lines[i] != ""; i++ { // skip what was recorded
		}
		if !played {
			continue
		}
		out.WriteString(dashes + "\n" + p.out.String() + printState(p.m) + "\n")
		if i < len(lines) {
			out.WriteString("\n")
			i++
		}
	}
	return out.String(), p.check()
}

// check holds what was logged to the laws.
func (p *player) check() error {
	laws := loglaw.Laws{Inherited: p.inherited}
	if err := laws.AddAll(p.log); err != nil {
		return err
	}
	if p.m.Idle() && !p.broken {
		return laws.Closed()
	}
	return nil
}

// player drives a machine by the lines of a script.
type player struct {
	cfg     Config
	m       *Machine
	now     int64
	log     []dsh.Event
	history dsh.History // folded on its own, to answer Derive from
	out     strings.Builder
	// inherited is how many events a fork copied.
	inherited dsh.Seq
	broken    bool // a step panicked: the machine is not to be trusted

	admit   Admit
	prepare Prepare
	calls   map[dsh.CallID]int
	reviews map[dsh.CallID]hook.Outcome
}

func (p *player) line(text string) error {
	verb, rest := word(text)
	hold := verb == "hold"
	if hold {
		verb, rest = word(rest)
	}
	switch verb {
	case "new":
		return p.fresh(rest)
	case "restore":
		return p.restore(rest)
	}
	if p.m == nil {
		return errors.New("a script begins with new")
	}
	pos := p.m.Pos()
	if at, ok := strings.CutPrefix(verb, "@"); ok {
		if _, err := fmt.Sscanf(at, "%d.%d.%d", &pos.Turn, &pos.Step, &pos.Attempt); err != nil {
			return err
		}
		verb, rest = word(rest)
	}
	in, err := p.input(pos, verb, rest)
	if err != nil {
		return err
	}
	p.feed(in)
	for !hold && p.m.Between() && !p.broken {
		p.feed(Continue{})
	}
	return nil
}

// feed applies one input and prints what follows from it.
func (p *player) feed(in Input) {
	defer func() {
		if v := recover(); v != nil {
			p.broken = true
			fmt.Fprintf(&p.out, "panic %v\n", v)
		}
	}()
	p.now++
	state, pos := p.m.State(), p.m.Pos()
	effects, err := p.m.Step(p.now, in)
	for _, e := range effects {
		p.note(e)
	}
	printEffects(&p.out, effects)
	_, goesOn := in.(Continue)
	switch {
	case err != nil:
		fmt.Fprintf(&p.out, "refused %v\n", err)
	case len(effects) == 0 && !goesOn && state == p.m.State() && pos == p.m.Pos():
		p.out.WriteString("nothing\n")
	}
}

// note remembers what later lines answer by default.
func (p *player) note(e Effect) {
	switch e := e.(type) {
	case *Log:
		for i := range e.Events {
			p.record(e.Events[i])
		}
	case Admit:
		p.admit = e
	case Prepare:
		p.prepare = e
	case Classify:
		p.calls[e.Call.ID] = e.Index
	case Review:
		if p.reviews == nil {
			p.reviews = map[dsh.CallID]hook.Outcome{}
		}
		p.reviews[e.Call.ID] = e.Outcome
	}
}

func (p *player) record(ev dsh.Event) {
	p.log = append(p.log, ev)
	if err := p.history.Apply(&ev); err != nil {
		panic(err)
	}
}

// fresh begins a new session: new [durable] [children] [parallel=N]
// [route=P/M] [effort=E] [max=N].
func (p *player) fresh(rest string) error {
	if p.m != nil {
		if err := p.check(); err != nil {
			return err
		}
	}
	p.log, p.history, p.inherited, p.broken = nil, dsh.History{}, 0, false
	p.cfg = Config{Session: "s", Volatile: true, Call: &dsh.CallConfig{Provider: "mock", Model: "m1"}}
	for _, option := range strings.Fields(rest) {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "durable":
			p.cfg.Volatile = false
		case "children":
			p.cfg.Children = true
		case "parallel":
			fmt.Sscan(value, &p.cfg.MaxParallelCalls)
		default:
			if err := configure(p.cfg.Call, nil, key, value); err != nil {
				return err
			}
		}
	}
	p.m = New(p.cfg)
	return nil
}

func configure(c *dsh.CallConfig, d *dsh.AdapterDefaults, key, value string) error {
	value, filled := strings.CutSuffix(value, "(filled)")
	switch key {
	case "route":
		c.Provider, c.Model, _ = strings.Cut(value, "/")
	case "effort":
		c.ReasoningEffort = value
		if filled {
			d.ReasoningEffort = true
		}
	case "max":
		fmt.Sscan(value, &c.MaxTokens)
		if filled {
			d.MaxTokens = true
		}
	default:
		return fmt.Errorf("unknown option %q", key)
	}
	return nil
}

// restore replaces the machine by the one that its log leads to, as after a
// crash or, with fork, by that of a session that copied the log.
func (p *player) restore(rest string) error {
	if rest == "fork" {
		p.inherited = p.m.Next()
	}
	for _, ev := range dsh.Closers(p.log) {
		fmt.Fprintf(&p.out, "repair %s\n", printEvent(&ev))
		p.record(ev)
	}
	m, err := Restore(p.cfg, p.log, p.inherited)
	if err != nil {
		return err
	}
	p.m = m
	return nil
}
