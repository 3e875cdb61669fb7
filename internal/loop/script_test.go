package loop

import (
	"context"
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
	p.cfg = Config{Session: "s", Volatile: true, Call: dsh.CallConfig{Provider: "mock", Model: "m1"}}
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
			if err := configure(&p.cfg.Call, nil, key, value); err != nil {
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

// input reads an input. The grammar is what the scripts show.
func (p *player) input(pos dsh.Pos, verb, rest string) (Input, error) {
	switch verb {
	case "start":
		return Start{Source: hook.Source(rest)}, nil
	case "followup":
		return Deliver{Message: message(rest), Target: dsh.NextTurn, Wake: true}, nil
	case "steer":
		return Deliver{Message: message(rest), Target: dsh.NextStep, Wake: true}, nil
	case "inject":
		return Deliver{Message: message(rest), Target: dsh.NextStep}, nil
	case "prepend":
		target, rest := word(rest)
		return Deliver{Message: message(rest), Target: dsh.Target(target), Front: true}, nil
	case "replace":
		id, rest := word(rest)
		return Replace{ID: dsh.MessageID(id), Message: message(rest)}, nil
	case "remove":
		return Remove{ID: dsh.MessageID(rest)}, nil
	case "clear":
		return Clear{}, nil
	case "cancel":
		cause, keep := word(rest)
		kind, reason, _ := strings.Cut(cause, ":")
		return Cancel{Cause: dsh.Cause{Kind: dsh.CauseKind(kind), Reason: reason}, KeepInbox: keep == "keep"}, nil
	case "maintain":
		return Maintain{}, nil
	case "continue":
		return Continue{}, nil
	case "append":
		return p.append(rest)
	case "synced":
		return Synced{Pos: pos, Err: failure(rest)}, nil
	case "admitted":
		return p.admitted(pos, rest), nil
	case "refused":
		return Refused{Pos: pos}, nil
	case "hook-failed":
		return HookFailed{Pos: pos, Err: errors.New(rest)}, nil
	case "prepared":
		return p.prepared(pos, rest)
	case "derived":
		in := Derived{Pos: pos, Messages: p.history.Messages(), Err: failure(rest)}
		if p.m.State() == (deriving{}).String() {
			return in, dsh.CheckRequest(in.Messages)
		}
		return in, nil
	case "stream":
		return streamed(pos, rest)
	case "stream-end":
		return StreamEnded{Pos: pos, Err: failure(rest)}, nil
	case "recovered":
		return Recovered{Pos: pos, Retry: rest == "retry"}, nil
	case "settled":
		return Settled{Pos: pos}, nil
	case "children-settled":
		return ChildrenSettled{Pos: pos}, nil
	case "tell":
		return Deliver{Message: message(rest), Target: Nearest, Wake: true}, nil
	case "tools-failed":
		return ToolsFailed{Pos: pos, Err: errors.New(rest)}, nil
	case "maintained":
		return Maintained{Pos: pos}, nil
	}
	return p.callAnswer(pos, verb, rest)
}

// admitted [none | only ID TEXT] [; context NAME=TEXT] [; prompt-error TEXT]
// [; system TEXT].
func (p *player) admitted(pos dsh.Pos, rest string) Input {
	in := Admitted{Pos: pos, Messages: p.admit.Messages}
	for _, part := range strings.Split(rest, ";") {
		option, value := word(strings.TrimSpace(part))
		switch option {
		case "none":
			in.Messages = nil
		case "only":
			in.Messages = []*dsh.Message{message(value)}
		case "context":
			name, text, _ := strings.Cut(value, "=")
			in.Prompt.Context = append(in.Prompt.Context, hook.Section{Name: name, Text: text})
		case "prompt-error":
			in.Prompt.Err = errors.New(value)
		case "system":
			in.Prompt.System = value
		}
	}
	return in
}

// prepared [window=N] and the options of new.
func (p *player) prepared(pos dsh.Pos, rest string) (Input, error) {
	in := Prepared{Pos: pos, Config: p.prepare.Config}
	for _, option := range strings.Fields(rest) {
		key, value, _ := strings.Cut(option, "=")
		if key == "window" {
			fmt.Sscan(value, &in.ContextWindow)
			continue
		}
		if err := configure(&in.Config, &in.Defaults, key, value); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// callAnswer reads the answers about one call.
func (p *player) callAnswer(pos dsh.Pos, verb, rest string) (Input, error) {
	id, rest := word(rest)
	i, ok := p.calls[dsh.CallID(id)]
	if !ok {
		return nil, fmt.Errorf("no verb %s, or no call %q", verb, id)
	}
	kind, text := word(rest)
	switch verb {
	case "classified":
		return Classified{Pos: pos, Call: i, Mode: modeNamed(kind)}, nil
	case "judged":
		in := Judged{Pos: pos, Call: i}
		switch kind {
		case "deny":
			in.Verdict = hook.Verdict{Kind: hook.Deny, Reason: text}
		case "ask":
			in.Verdict = hook.Verdict{Kind: hook.Ask, Reason: text}
		case "error":
			in.Err = errors.New(text)
		}
		return in, nil
	case "ran":
		return Ran{Pos: pos, Call: i, Outcome: outcome(hook.Outcome{}, rest)}, nil
	case "reviewed":
		return Reviewed{Pos: pos, Call: i, Outcome: outcome(p.reviews[dsh.CallID(id)], rest)}, nil
	}
	return nil, fmt.Errorf("no verb %s", verb)
}

// outcome changes o by options separated by semicolons: ok TEXT, error TEXT,
// block FEEDBACK, conclude, context ID TEXT.
func outcome(o hook.Outcome, rest string) hook.Outcome {
	for _, part := range strings.Split(rest, ";") {
		option, value := word(strings.TrimSpace(part))
		switch option {
		case "ok":
			o.Content = []dsh.Block{dsh.Text{Text: value}}
		case "error":
			o = Failed(errors.New(value))
		case "block":
			o = Blocked(value)
		case "conclude":
			o.Conclude = true
		case "context":
			m := message(value)
			m.Source = dsh.PluginSource{Plugin: "tool"}
			o.Context = append(o.Context, m)
		}
	}
	return o
}

// append opaque NAME | user ID TEXT | replace START END ID TEXT | result CALL
// SEQ TEXT.
func (p *player) append(rest string) (Input, error) {
	kind, rest := word(rest)
	switch kind {
	case "opaque":
		return Append{Fact: dsh.Opaque{Name: rest, Raw: []byte("{}")}}, nil
	case "user":
		return Append{Fact: dsh.UserMessage{Message: message(rest)}, Surface: dsh.Append}, nil
	case "bare":
		return Append{Fact: dsh.UserMessage{Message: message(rest)}}, nil
	case "replace":
		var op dsh.SurfaceOp
		first, rest := word(rest)
		last, rest := word(rest)
		fmt.Sscan(first, &op.Start)
		fmt.Sscan(last, &op.End)
		op.Kind = dsh.SurfaceReplace
		var cited dsh.Sources
		for _, seq := range p.history.Surface() {
			if op.Start <= seq && seq <= op.End {
				cited = cited.With(seq, seq)
			}
		}
		return Append{Fact: dsh.UserMessage{Message: message(rest)}, Surface: op, Sources: cited}, nil
	}
	return nil, fmt.Errorf("append what: %q", kind)
}

// streamed reads chunks separated by bars: text T, think T, call ID NAME ARGS,
// args ID ARGS, usage IN OUT, finish KIND [CODE MESSAGE].
func streamed(pos dsh.Pos, rest string) (Input, error) {
	in := Streamed{Pos: pos}
	for _, part := range strings.Split(rest, "|") {
		verb, value := word(strings.TrimSpace(part))
		switch verb {
		case "text":
			in.Chunks = append(in.Chunks, dsh.TextDelta{Index: 1, Text: value})
		case "blank":
			in.Chunks = append(in.Chunks, dsh.TextDelta{Index: 1, Text: " \n"})
		case "think":
			in.Chunks = append(in.Chunks, dsh.ReasoningDelta{Index: 0, Text: value})
		case "call":
			id, value := word(value)
			name, args := word(value)
			in.Chunks = append(in.Chunks, dsh.ToolCallDelta{
				Index: callIndex(id), ID: dsh.CallID(id), Name: &name, ArgumentsDelta: args,
			})
		case "usage":
			var u dsh.Usage
			fmt.Sscan(value, &u.InputTokens, &u.OutputTokens)
			in.Chunks = append(in.Chunks, u)
		case "finish":
			kind, value := word(value)
			reason := dsh.FinishReason{Kind: dsh.FinishKind(kind)}
			if value != "" {
				reason.Failure = dsh.AsFailure(failure(value))
			}
			in.Chunks = append(in.Chunks, dsh.Finish{Reason: reason})
		default:
			return nil, fmt.Errorf("no chunk %q", part)
		}
	}
	return in, nil
}

// callIndex gives each call of an answer a block: a is 2, b is 3.
func callIndex(id string) int { return int(id[len(id)-1]) - 'a' + 2 }

// failure reads CODE MESSAGE, plain MESSAGE or canceled; nothing is nil.
func failure(text string) error {
	code, rest := word(text)
	switch {
	case text == "":
		return nil
	case code == "plain":
		return errors.New(rest)
	case code == "canceled":
		return context.Canceled
	}
	return &dsh.Failure{Code: dsh.Code(code), Message: rest}
}

func message(text string) *dsh.Message {
	id, text := word(text)
	m := dsh.UserText(text)
	if id != "?" {
		m.ID = dsh.MessageID(id)
	}
	return m
}

func word(text string) (first, rest string) {
	first, rest, _ = strings.Cut(text, " ")
	return first, strings.TrimSpace(rest)
}
