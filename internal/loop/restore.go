package loop

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Restore returns the machine that a log leads to. The log must be closed (see
// [dsh.Closers]): whatever turn was open in it is over. inherited is how many
// of its sequence numbers were copied from another session: their pending
// input is not this session's. An error names the event that does not fit.
func Restore(cfg Config, log []dsh.Event, inherited dsh.Seq) (*Machine, error) {
	m := New(cfg)
	for i := range log {
		ev := &log[i]
		if ev.Seq != m.next {
			return nil, fmt.Errorf("loop: restore: event %d follows %d", ev.Seq, m.next-1)
		}
		if err := m.restore(ev, ev.Seq < inherited); err != nil {
			return nil, fmt.Errorf("loop: restore event %d: %w", ev.Seq, err)
		}
		m.next += ev.Span()
	}
	return m, nil
}

func (m *Machine) restore(ev *dsh.Event, inherited bool) error {
	if err := m.history.Apply(ev); err != nil {
		return err
	}
	m.header.Apply(ev)
	m.seeded = false
	switch d := ev.Data.(type) {
	case dsh.TurnStart:
		m.lastTurn = d.Turn
	case dsh.InboxSpliced:
		if !inherited {
			return m.inbox.Apply(d)
		}
	case dsh.EndSeed:
		m.seeded = true
	default:
	}
	return nil
}
