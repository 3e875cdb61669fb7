package loop

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/actortest/loglaw"
	"github.com/dsh-actor/dsh-actor/replay"
)

// The laws hold whatever happens in whatever order:
//
//   - those of a log (see loglaw): brackets nest, each call has one result in
//     the model's order, requests are such that a strict provider takes them;
//   - those of a host's view (see watch): every accepted message is claimed,
//     discarded or pending, admitted ones are logged, one cause per aborted
//     turn, nothing starts after an abort, bodies overlap as their modes allow,
//     no question is open in idle and one is open in every other state;
//   - a cancelled machine is idle when the last answer has come;
//   - the same inputs give the same effects;
//   - folding the log gives the machine that wrote it, and a log that breaks
//     off anywhere is repaired to one that obeys the laws;
//   - the log replays: each request derived from it is the one that was made.
//
// A failure names its seed: DSH_ACTOR_SEED=n replays it alone, DSH_ACTOR_SEEDS=n
// sets how many are tried.
func TestLaws(t *testing.T) {
	first, count := seeds(t, 1000)
	var mu sync.Mutex
	var workers sync.WaitGroup
	seen := map[string]bool{}
	next := first
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				mu.Lock()
				seed := next
				next++
				mu.Unlock()
				if seed >= first+count || t.Failed() {
					return
				}
				s, err := live(seed)
				if err != nil {
					t.Errorf("seed %d: %v\n%s\nreplay with DSH_ACTOR_SEED=%d go test ./internal/loop -run TestLaws",
						seed, err, s.recent(), seed)
					return
				}
				mu.Lock()
				maps.Copy(seen, s.arrows)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if t.Failed() {
		return
	}
	drawn := map[string]bool{}
	for _, a := range arrows {
		drawn[a.from+" "+a.to] = true
		if count >= 1000 && !seen[a.from+" "+a.to] {
			t.Errorf("nobody went from %s to %s, as docs/loop.md draws", a.from, a.to)
		}
	}
	for a := range seen {
		if !drawn[a] {
			t.Errorf("docs/loop.md draws no way for %s", a)
		}
	}
}

func seeds(t *testing.T, usual uint64) (first, count uint64) {
	t.Helper()
	number := func(name string) (n uint64, ok bool) {
		text := os.Getenv(name)
		if text == "" {
			return 0, false
		}
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			t.Fatalf("%s=%q: %v", name, text, err)
		}
		return n, true
	}
	if n, ok := number("DSH_ACTOR_SEED"); ok {
		return n, 1
	}
	if n, ok := number("DSH_ACTOR_SEEDS"); ok {
		return 0, n
	}
	if testing.Short() {
		return 0, usual / 10
	}
	return 0, usual
}

// live lets one sim live one to three lives, each from the log of the one
// before, which ended by itself or by a crash.
func live(seed uint64) (s *sim, err error) {
	s = newSim(seed)
	defer func() {
		if v := recover(); v != nil {
			if b, ok := v.(breach); ok {
				err = b.err
				return
			}
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	for range 1 + s.rng.IntN(3) {
		s.run(20 + s.rng.IntN(120))
		s.watch.balance(s.m)
		s.replay()
		s.refold()
		s.crashes()
		s.rederive()
		if s.chance(2) {
			s.breakOff()
			continue
		}
		m, err := Restore(s.cfg, s.log, 0)
		if err != nil {
			return s, fmt.Errorf("restore at rest: %w", err)
		}
		s.begin(m, hook.Resume)
	}
	return s, nil
}

// recent is what the last inputs caused.
func (s *sim) recent() string {
	from := max(0, len(s.life.trace)-12)
	return strings.Join(s.life.trace[from:], "")
}

// replay gives the inputs of this life to a machine that begins as this one
// did: it must do the same.
func (s *sim) replay() {
	m := New(s.cfg)
	if s.life.from > 0 {
		var err error
		if m, err = Restore(s.cfg, s.log[:s.life.from], 0); err != nil {
			fail("replay: %w", err)
		}
	}
	for i, in := range s.life.inputs {
		effects, err := m.Step(in.now, in.in)
		if again := render(in.in, effects, err); again != s.life.trace[i] {
			fail("the same input %d gives\n%s\nand\n%s", i, s.life.trace[i], again)
		}
	}
}

// refold restores a machine from the log: at idle it is the one that wrote it.
func (s *sim) refold() {
	m, err := Restore(s.cfg, s.log, 0)
	if err != nil {
		fail("restore: %w", err)
	}
	a, b := s.m.Inbox(), m.Inbox()
	switch {
	case !slices.Equal(a.NextStep, b.NextStep) || !slices.Equal(a.NextTurn, b.NextTurn):
		fail("the restored inbox is another")
	case s.m.next != m.next || s.m.lastTurn != m.lastTurn:
		fail("restored to event %d, turn %d instead of %d, %d", m.next, m.lastTurn, s.m.next, s.m.lastTurn)
	case s.m.header.Header != m.header.Header || (s.m.header.Context == nil) != (m.header.Context == nil) ||
		m.header.Context != nil && *s.m.header.Context != *m.header.Context:
		fail("the restored header is another")
	case !slices.Equal(s.m.history.Messages(), m.history.Messages()) ||
		!slices.Equal(s.m.history.Surface(), m.history.Surface()) || s.m.history.Generation() != m.history.Generation():
		fail("the restored history is another")
	case s.m.contextSaid() != m.contextSaid():
		fail("the restored runtime context is another")
	}
	var own []dsh.Seq
	for _, n := range s.surface {
		own = append(own, n.seq)
	}
	if !slices.Equal(own, m.history.Surface()) {
		fail("the surface is %v, counted by hand it is %v", m.history.Surface(), own)
	}
}

// rederive replays the log: it has no finding, and an audited one yields the
// requests that streams were opened for.
func (s *sim) rederive() {
	report := replay.Run(dsh.SessionHeader{ID: s.cfg.Session}, s.log)
	for _, found := range report.Findings {
		fail("the log does not replay: %v", found)
	}
	for _, r := range report.Requests {
		if s.audited != (r.Digest == replay.Same) {
			fail("request %v through %d compares %q", r.Pos, r.Through, r.Digest)
		}
	}
}

// crashes breaks the log off at some places: repaired, it obeys the laws.
func (s *sim) crashes() {
	for range 6 {
		cut := dsh.Cut(s.log, dsh.Seq(s.rng.IntN(int(s.m.next)+1)))
		repaired(s.cfg, cut)
	}
}

func repaired(cfg Config, cut []dsh.Event) []dsh.Event {
	whole := append(slices.Clip(cut), dsh.Closers(cut)...)
	if err := loglaw.Check(whole); err != nil {
		fail("broken off at %d and repaired: %w", len(cut), err)
	}
	for _, log := range [][]dsh.Event{cut, whole} {
		for _, found := range replay.Run(dsh.SessionHeader{ID: cfg.Session}, log).Findings {
			fail("broken off at %d, it does not replay: %v", len(cut), found)
		}
	}
	if more := dsh.Closers(whole); len(more) > 0 {
		fail("a repaired log needs %d more closers", len(more))
	}
	if _, err := Restore(cfg, whole, 0); err != nil {
		fail("broken off at %d and repaired: %w", len(cut), err)
	}
	return whole
}

// breakOff crashes the machine wherever it is after some more inputs, repairs
// its log and begins another life on it.
func (s *sim) breakOff() {
	for range s.rng.IntN(40) {
		if len(s.open) == 0 || s.chance(4) {
			s.command()
		} else {
			s.answer(s.rng.IntN(len(s.open)))
		}
	}
	closers := dsh.Closers(s.log)
	whole := repaired(s.cfg, s.log)
	for ev := range dsh.Expand(closers) {
		if err := s.laws.Add(&ev); err != nil {
			fail("repair: %w", err)
		}
		s.fold(ev)
	}
	s.log = whole
	m, err := Restore(s.cfg, s.log, 0)
	if err != nil {
		fail("restore after a crash: %w", err)
	}
	s.begin(m, hook.Resume)
}
