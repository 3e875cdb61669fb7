package loop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/actortest/loglaw"
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

	// audited agents log what their requests were.
	audited bool

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
		Call: &dsh.CallConfig{Provider: "p", Model: "m"},
	}
	s.audited = seed%2 == 0
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
	for _, e := range slices.Clone(effects) {
		if e, ok := e.(OpenStream); ok && s.audited {
			s.audit(e.Request)
		}
	}
	return err
}

// audit logs what a request is that a stream was opened for.
func (s *sim) audit(r *dsh.Request) {
	fact := dsh.RequestSent{
		Turn: r.Pos.Turn, Step: r.Pos.Step, Attempt: r.Pos.Attempt,
		Through: r.Through, Messages: len(r.Messages), Digest: r.Digest(),
	}
	if err := s.step(Append{Fact: fact}); err != nil {
		fail("the record of a request is refused: %w", err)
	}
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
	if ev.Surface.Kind() == dsh.SurfaceAppend {
		s.surface = append(s.surface, n)
		return
	}
	at := func(seq dsh.Seq) int {
		return slices.IndexFunc(s.surface, func(n node) bool { return n.seq == seq })
	}
	start, end := ev.Surface.Range()
	s.surface = slices.Replace(s.surface, at(start), at(end)+1, n)
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
