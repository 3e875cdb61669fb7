package loop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/actortest/loglaw"
	"github.com/dsh-actor/dsh-actor/tool"
)

// sim is a host without a will of its own: it answers what the machine asks in
// random order and with random answers, and gives random commands in between.
// Everything is drawn from one seed.
type sim struct {
	rng *rand.Rand
	cfg Config
	m   *Machine
	now int64

	log     []dsh.Event // packed, of all lives
	laws    loglaw.Laws
	surface []node // kept on its own, for safe replacements
	life    life

	open     []question
	answered []Input // to come once more, late
	resting  bool    // no more commands
	calm     bool    // answer so that turns come to their end
	nextID   int
	sent     []*dsh.Message
	watch    watch
	arrows   map[string]bool
}

// life is what one machine was given and did, to be played again.
type life struct {
	from   int // length of the log when it began
	start  int64
	inputs []timed
	trace  []string
}

type timed struct {
	now int64
	in  Input
}

// question is an open effect, with what is left of a stream.
type question struct {
	effect   Effect
	pos      dsh.Pos
	chunks   []dsh.Chunk
	messages []*dsh.Message // the history when Derive was asked
	through  dsh.Seq        // what Sync and Derive make durable
}

type node struct {
	seq     dsh.Seq
	message *dsh.Message
}

func newSim(seed uint64) *sim {
	s := &sim{rng: rand.New(rand.NewPCG(seed, 0)), arrows: map[string]bool{}, now: 1000}
	s.cfg = Config{
		Session: "s", Volatile: s.chance(2), Children: s.chance(2), MaxParallelCalls: s.rng.IntN(4),
		Call: dsh.CallConfig{Provider: "p", Model: "m"},
	}
	s.watch = newWatch()
	s.begin(New(s.cfg), hook.Startup)
	return s
}

// chance is true once in n times.
func (s *sim) chance(n int) bool { return s.rng.IntN(n) == 0 }

func pickOne[T any](s *sim, from ...T) T { return from[s.rng.IntN(len(from))] }

// begin makes m the machine of a new life.
func (s *sim) begin(m *Machine, source hook.Source) {
	s.m, s.open, s.answered = m, nil, nil
	s.life = life{from: len(s.log), start: s.now}
	s.watch.begin()
	s.feed(Start{Source: source})
}

// breach is a law broken; run recovers it.
type breach struct{ err error }

func fail(format string, args ...any) { panic(breach{fmt.Errorf(format, args...)}) }

// run lets the sim live for a number of inputs, then come to rest.
func (s *sim) run(inputs int) {
	for range inputs {
		switch {
		case len(s.open) == 0 || s.chance(4):
			s.command()
		default:
			s.answer(s.rng.IntN(len(s.open)))
		}
	}
	s.rest()
}

// rest lets everything come to its end: by a cancel, or because the answers
// are such that no more is owed.
func (s *sim) rest() {
	s.resting = true
	defer func() { s.resting = false }()
	if s.chance(2) {
		s.feed(Cancel{Cause: dsh.Cause{Kind: dsh.CauseUser}, KeepInbox: s.chance(2)})
		if s.m.latched { // a wake that came before: it opens turns of its own
			s.feed(Cancel{Cause: dsh.Cause{Kind: dsh.CauseUser}})
		}
		// Whatever the answers are, they are the last: nothing new is asked.
		for n := len(s.open) + 64; len(s.open) > 0; n-- {
			if n == 0 {
				fail("a cancelled machine goes on asking: %s", s.describeOpen())
			}
			s.answer(s.rng.IntN(len(s.open)))
		}
	} else {
		s.calm = true
		for n := 3000; len(s.open) > 0; n-- {
			if n == 0 {
				fail("calm answers come to no end: %s", s.describeOpen())
			}
			s.answer(s.rng.IntN(len(s.open)))
		}
		s.calm = false
	}
	if !s.m.Idle() {
		fail("every question is answered and the machine is %v at %v", s.m.State(), s.m.Pos())
	}
	if err := s.laws.Closed(); err != nil {
		fail("at rest: %w", err)
	}
}

func (s *sim) describeOpen() string {
	var names []string
	for _, q := range s.open {
		names = append(names, printQuestion(q.effect))
	}
	return strings.Join(names, ", ")
}

// feed gives the machine one input and lets it pass the borders behind it, with
// an observer's command in between now and then.
func (s *sim) feed(in Input) error {
	err := s.step(in)
	for s.m.Between() {
		if !s.resting && s.chance(8) {
			s.command()
			continue
		}
		if err := s.step(Continue{}); err != nil {
			fail("Continue is refused: %w", err)
		}
	}
	if s.m.Idle() {
		s.m.Rest()
	}
	return err
}

// step gives the machine one input and looks at everything that it did.
func (s *sim) step(in Input) error {
	s.now += int64(s.rng.IntN(3))
	s.life.inputs = append(s.life.inputs, timed{s.now, in})
	before := s.m.State()
	s.watch.input(s.m, in)
	effects, err := s.m.Step(s.now, in)
	s.life.trace = append(s.life.trace, render(in, effects, err))
	if err != nil && len(effects) > 0 {
		fail("a refused %T has effects", in)
	}
	if after := s.m.State(); after != before {
		s.arrows[before+" "+after] = true
	}
	for _, e := range effects {
		s.perform(e)
	}
	s.watch.after(s, in, err)
	return err
}

// render writes everything that an input caused, down to the JSON of events.
func render(in Input, effects []Effect, err error) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%T %+v\n", in, in)
	printEffects(&out, effects)
	for _, e := range effects {
		if l, ok := e.(*Log); ok {
			for ev := range dsh.Expand(l.Events) {
				out.Write(ev.AppendJSON(nil))
				out.WriteByte('\n')
			}
		}
	}
	if err != nil {
		fmt.Fprintf(&out, "refused %v\n", err)
	}
	return out.String()
}

func (s *sim) perform(e Effect) {
	s.watch.effect(s, e)
	q := question{effect: e, pos: s.m.Pos()}
	switch e := e.(type) {
	case *Log:
		s.log = append(s.log, e.Events...)
		for ev := range dsh.Expand(e.Events) {
			if err := s.laws.Add(&ev); err != nil {
				fail("%w", err)
			}
			s.fold(ev)
			s.watch.event(ev)
		}
		return
	case *Notify, Abort, EndTurn:
		return
	case Sync:
		q.through = s.m.Next()
	case Derive:
		q.messages, q.through = s.laws.History().Messages(), e.Through+1
	case OpenStream:
		q.chunks = s.chunks()
	case Admit, Prepare, Recover, AskStopping, AwaitChildren, Classify, Judge, Run, Review, RunMaintenance:
	}
	s.open = append(s.open, q)
}

// fold keeps the surface without dsh.History.
func (s *sim) fold(ev dsh.Event) {
	n := node{seq: ev.Seq}
	switch d := ev.Data.(type) {
	case dsh.UserMessage:
		n.message = d.Message
	case dsh.AssistantMessage:
		n.message = d.Message
	case dsh.ToolFinished:
		n.message = d.Message
	default:
		return
	}
	if ev.Surface.Kind == dsh.SurfaceAppend {
		s.surface = append(s.surface, n)
		return
	}
	at := func(seq dsh.Seq) int {
		return slices.IndexFunc(s.surface, func(n node) bool { return n.seq == seq })
	}
	s.surface = slices.Replace(s.surface, at(ev.Surface.Start), at(ev.Surface.End)+1, n)
}

// units returns the ranges of the surface that may be replaced without parting
// a call from its result.
func (s *sim) units() (ranges [][2]int) {
	for i := 0; i < len(s.surface); i++ {
		last := i + len(dsh.CallsOf(s.surface[i].message.Content))
		if last >= len(s.surface) {
			break // results are missing
		}
		ranges = append(ranges, [2]int{i, last})
		i = last
	}
	return ranges
}

// answer answers an open question, or gives a part of a stream's answer.
func (s *sim) answer(i int) {
	q := s.open[i]
	if e, ok := q.effect.(OpenStream); ok && len(q.chunks) > 0 && !s.chance(12) {
		n := 1 + s.rng.IntN(len(q.chunks))
		s.open[i].chunks = q.chunks[n:]
		in := Streamed{Pos: e.Pos, Chunks: q.chunks[:n:n]}
		s.answered = append(s.answered, in)
		s.feed(in)
		return
	}
	s.open = slices.Delete(s.open, i, i+1)
	in := s.answerTo(q)
	s.answered = append(s.answered, in)
	if err := s.feed(in); err != nil {
		fail("the answer %T is refused: %w", in, err)
	}
}

var errBroke = errors.New("it broke")

func (s *sim) broke() bool { return !s.calm && s.chance(12) }

func (s *sim) answerTo(q question) Input {
	switch e := q.effect.(type) {
	case Sync:
		if s.broke() {
			return Synced{Pos: e.Pos, Err: errBroke}
		}
		s.watch.durable = max(s.watch.durable, q.through)
		return Synced{Pos: e.Pos}
	case Admit:
		return s.admission(e)
	case Prepare:
		return s.preparation(e)
	case Derive:
		if s.broke() {
			return Derived{Pos: e.Pos, Err: errBroke}
		}
		return Derived{Pos: e.Pos, Messages: q.messages}
	case OpenStream:
		if s.broke() {
			return StreamEnded{Pos: e.Pos, Err: pickOne[error](s, errBroke, context.Canceled, &dsh.Failure{Code: dsh.CodeServer})}
		}
		return StreamEnded{Pos: e.Pos}
	case Recover:
		if s.broke() {
			return HookFailed{Pos: e.Pos, Err: errBroke}
		}
		return Recovered{Pos: e.Pos, Retry: !s.calm && !s.chance(3)}
	case AskStopping:
		if s.broke() {
			return HookFailed{Pos: e.Pos, Err: errBroke}
		}
		return Settled(e)
	case AwaitChildren:
		return ChildrenSettled(e)
	case RunMaintenance:
		return Maintained(e)
	default:
		return s.callAnswer(e)
	}
}

func (s *sim) admission(e Admit) Input {
	in := Admitted{Pos: e.Pos, Messages: e.Messages}
	if s.calm {
		return in
	}
	switch s.rng.IntN(16) {
	case 0:
		return Refused{Pos: e.Pos}
	case 1:
		return HookFailed{Pos: e.Pos, Err: errBroke}
	case 2:
		in.Messages = nil
	case 3:
		in.Messages = append(slices.Clone(e.Messages), dsh.PluginText("hook", "added"))
	case 4:
		in.Messages = []*dsh.Message{s.message()}
	case 5:
		in.Prompt.Err = errBroke
	}
	in.Prompt.System = pickOne(s, "", "", "be brief")
	for range s.rng.IntN(2) {
		in.Prompt.Context = append(in.Prompt.Context, hook.Section{Name: "cwd", Text: pickOne(s, "/a", "/b")})
	}
	return in
}

func (s *sim) preparation(e Prepare) Input {
	in := Prepared{Pos: e.Pos, Config: e.Config}
	if s.calm {
		in.Config.Provider, in.Config.Model = "p", "m"
		return in
	}
	switch s.rng.IntN(12) {
	case 0:
		return HookFailed{Pos: e.Pos, Err: errBroke}
	case 1:
		in.Config.Provider = ""
	case 2, 3:
		in.Config.Provider, in.Config.Model = "p", pickOne(s, "m", "n")
	case 4:
		in.Config.ReasoningEffort = pickOne(s, "low", "high")
	case 5:
		in.ContextWindow = 1000
	}
	if in.Config.MaxTokens == 0 && s.chance(2) {
		in.Config.MaxTokens, in.Defaults.MaxTokens = 100, true
	}
	return in
}

func (s *sim) callAnswer(e Effect) Input {
	switch e := e.(type) {
	case Classify:
		mode := pickOne(s, tool.Parallel, tool.Parallel, tool.Exclusive)
		s.watch.modes[e.Index] = mode
		return Classified{Pos: e.Pos, Call: e.Index, Mode: mode}
	case Judge:
		in := Judged{Pos: e.Pos, Call: e.Index}
		switch s.rng.IntN(10) {
		case 0:
			in.Verdict.Kind = hook.Deny
		case 1:
			in.Verdict = hook.Verdict{Kind: hook.Ask, Reason: "why not"}
		case 2:
			in.Err = errBroke
		}
		return in
	case Run:
		return Ran{Pos: e.Pos, Call: e.Index, Outcome: s.outcome()}
	case Review:
		in := Reviewed{Pos: e.Pos, Call: e.Index, Outcome: e.Outcome}
		if e.Skip {
			return in
		}
		switch s.rng.IntN(8) {
		case 0:
			in.Outcome = Blocked("no")
		case 1:
			in.Outcome = Failed(errBroke)
		case 2:
			in.Outcome.Content = []dsh.Block{dsh.Text{Text: "shorter"}}
		case 3:
			in.Outcome.Context = append(slices.Clip(in.Outcome.Context), s.message())
		}
		return in
	}
	panic(fmt.Sprintf("no answer to %T", e))
}

func (s *sim) outcome() hook.Outcome {
	o := hook.Outcome{Content: []dsh.Block{dsh.Text{Text: "fine"}}}
	switch s.rng.IntN(8) {
	case 0:
		o = Failed(errBroke)
	case 1:
		o = Failed(tool.Errorf("SOME", "coded"))
	case 2:
		o.Conclude = true
	case 3:
		o.Context = []*dsh.Message{dsh.PluginText("tool", "note")}
	case 4:
		o.Context = []*dsh.Message{s.message(), s.known()} // perhaps pending already
	case 5:
		o.Content = nil
	}
	return o
}

// chunks returns what a model says, well formed or not.
func (s *sim) chunks() []dsh.Chunk {
	if s.calm {
		return []dsh.Chunk{dsh.TextDelta{Text: "done"}, dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}}}
	}
	var out []dsh.Chunk
	for range s.rng.IntN(3) {
		out = append(out, dsh.ReasoningDelta{Index: 0, Text: "hm"})
	}
	for range s.rng.IntN(4) {
		out = append(out, dsh.TextDelta{Index: 1, Text: pickOne(s, "some ", "words ", " ", "")})
	}
	for i := range s.rng.IntN(6) - 1 {
		out = append(out, s.call(i+2)...)
	}
	if s.chance(3) {
		out = append(out, dsh.Usage{InputTokens: 3, OutputTokens: 2})
	}
	if s.chance(8) {
		s.rng.Shuffle(len(out), func(i, k int) { out[i], out[k] = out[k], out[i] })
	}
	if s.chance(12) {
		return out // no finish at all
	}
	reason := dsh.FinishReason{Kind: pickOne(s,
		dsh.FinishStop, dsh.FinishStop, dsh.FinishToolCalls, dsh.FinishToolCalls, dsh.FinishMaxTokens, dsh.FinishError, dsh.FinishAborted,
	)}
	if (reason.Kind == dsh.FinishError || reason.Kind == dsh.FinishAborted) && !s.chance(4) {
		reason.Failure = &dsh.Failure{Code: dsh.CodeRateLimit, Message: "slow down"}
	}
	out = append(out, dsh.Finish{Reason: reason})
	if s.chance(12) {
		out = append(out, dsh.TextDelta{Index: 1, Text: "behind the finish"})
	}
	return out
}

// call returns the chunks of one call; IDs may be missing or given twice.
func (s *sim) call(index int) []dsh.Chunk {
	id := dsh.CallID(pickOne(s, "c1", "c2", "c3", "", fmt.Sprintf("call-%d", index+1)))
	name := "t"
	out := []dsh.Chunk{dsh.ToolCallDelta{Index: index, ID: id, Name: &name, ArgumentsDelta: "{"}}
	if s.chance(2) {
		return append(out, dsh.BlockEnd{Index: index, Block: dsh.ToolCall{ID: id, Name: name, Arguments: "{}"}})
	}
	return append(out, dsh.ToolCallDelta{Index: index, ArgumentsDelta: "}"})
}

// message returns a message that nobody has sent yet.
func (s *sim) message() *dsh.Message {
	s.nextID++
	m := dsh.UserText(fmt.Sprintf("message %d", s.nextID))
	m.ID = dsh.MessageID(fmt.Sprintf("m%d", s.nextID))
	return m
}

// known returns a message that was sent before, or a new one.
func (s *sim) known() *dsh.Message {
	if len(s.sent) == 0 {
		return s.message()
	}
	return pickOne(s, s.sent...)
}

func (s *sim) send(d Deliver) {
	if s.chance(8) {
		d.Message = s.known() // perhaps pending still, perhaps sent again
	} else {
		d.Message = s.message()
	}
	pending := slices.ContainsFunc(s.watch.pending(s.m), func(m *dsh.Message) bool { return m.ID == d.Message.ID })
	err := s.feed(d)
	if pending != errors.Is(err, ErrDuplicate) || !pending && err != nil {
		fail("delivery of %s (pending: %v): %v", d.Message.ID, pending, err)
	}
	if err == nil {
		s.sent = append(s.sent, d.Message)
	}
}

// command gives a random command, or an answer that is late.
func (s *sim) command() {
	switch s.rng.IntN(28) {
	case 0, 1, 2, 3, 4, 5:
		s.send(Deliver{Target: dsh.NextTurn, Wake: true})
	case 6, 7, 8:
		s.send(Deliver{Target: dsh.NextStep, Wake: true})
	case 9, 10, 11:
		s.send(Deliver{Target: dsh.NextStep})
	case 12:
		s.send(Deliver{Target: pickOne(s, dsh.NextStep, dsh.NextTurn), Front: true, Wake: s.chance(2)})
	case 13:
		s.feed(Replace{ID: s.known().ID, Message: pickOne(s, s.message(), s.known())})
	case 14:
		s.feed(Remove{ID: s.known().ID})
	case 15:
		s.feed(Clear{})
	case 16, 17:
		s.feed(Cancel{Cause: s.cause(), KeepInbox: s.chance(2)})
	case 18:
		if err := s.feed(Maintain{}); err != nil && !errors.Is(err, ErrBusy) {
			fail("maintenance: %v", err)
		}
	case 19:
		s.feed(Append{Fact: dsh.Opaque{Name: "todo/write", Raw: []byte("{}")}})
	case 20:
		if !s.laws.Owing() {
			s.feed(Append{Fact: dsh.UserMessage{Message: s.message()}, Surface: dsh.Append})
		}
	case 21, 22:
		s.replaceSurface()
	case 23:
		s.rewriteResult()
	case 24:
		if err := s.feed(Append{Fact: dsh.UserMessage{Message: s.message()}}); !errors.Is(err, dsh.ErrSurface) {
			fail("a message without a place is taken: %v", err)
		}
	case 25, 26:
		s.late()
	case 27:
		if s.m.State() == (*executing)(nil).String() {
			s.feed(ToolsFailed{Pos: s.m.Pos(), Err: errBroke})
		}
	}
}

func (s *sim) cause() dsh.Cause {
	if s.chance(40) {
		return dsh.Cause{Kind: dsh.CauseDisposed}
	}
	return pickOne(s, dsh.Cause{Kind: dsh.CauseUser}, dsh.Cause{Kind: dsh.CauseParent},
		dsh.Cause{Kind: dsh.CauseHook, Reason: "over budget"})
}

// replaceSurface replaces a range of whole units by a summary.
func (s *sim) replaceSurface() {
	units := s.units()
	if len(units) == 0 {
		return
	}
	i := s.rng.IntN(len(units))
	k := min(len(units)-1, i+s.rng.IntN(3))
	from, to := units[i][0], units[k][1]
	var cited []dsh.Seq
	for _, n := range s.surface[from : to+1] {
		cited = append(cited, n.seq)
	}
	in := Append{
		Fact:    dsh.UserMessage{Message: s.message()},
		Surface: dsh.SurfaceOp{Kind: dsh.SurfaceReplace, Start: s.surface[from].seq, End: s.surface[to].seq},
		Sources: dsh.Cite(cited...),
	}
	if err := s.feed(in); err != nil {
		fail("a good replacement is refused: %w", err)
	}
}

// rewriteResult shortens one tool result in place.
func (s *sim) rewriteResult() {
	for _, n := range s.surface {
		r, ok := n.message.Content, false
		if len(r) == 1 {
			_, ok = r[0].(dsh.ToolResult)
		}
		if !ok || s.chance(2) {
			continue
		}
		result := r[0].(dsh.ToolResult)
		result.Content = []dsh.Block{dsh.Text{Text: "pruned"}}
		shorter := *n.message
		shorter.Content = []dsh.Block{result}
		in := Append{
			Fact:    dsh.ToolFinished{Turn: 1, Step: 1, Message: &shorter},
			Surface: dsh.SurfaceOp{Kind: dsh.SurfaceReplace, Start: n.seq, End: n.seq}, Sources: dsh.Cite(n.seq),
		}
		if err := s.feed(in); err != nil {
			fail("a good rewrite is refused: %w", err)
		}
		return
	}
}

// late gives an answer once more whose position has passed.
func (s *sim) late() {
	if len(s.answered) == 0 {
		return
	}
	in := pickOne(s, s.answered...)
	if pos, _ := position(in); pos == s.m.Pos() {
		return
	}
	before := len(s.log)
	state := printState(s.m)
	err := s.step(in)
	if err != nil || len(s.log) != before || printState(s.m) != state {
		fail("a late %T is not ignored", in)
	}
}
