package loop

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dsh-actor/dsh-actor/dsh"
)

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
	switch s.rng.IntN(29) {
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
		s.feed(Wake{})
	case 28:
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
		Surface: dsh.Replace(s.surface[from].seq, s.surface[to].seq),
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
			Surface: dsh.Replace(n.seq, n.seq), Sources: dsh.Cite(n.seq),
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
