package loop

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// maintaining: a maintenance task runs. The public status stays idle; input
// that wakes waits for its end.
type maintaining struct{}

func (*maintaining) String() string { return "maintaining" }

func (s *maintaining) step(m *Machine, in Input) state {
	switch in.(type) {
	case Cancel:
		return s // the task was told
	case Maintained:
		return m.endPhase()
	default:
		return m.unexpected(s, in)
	}
}

// maintain begins a task, from true idle only.
func (m *Machine) maintain() error {
	if !m.Idle() {
		return fmt.Errorf("loop: maintenance: %w", ErrBusy)
	}
	m.tasks++
	m.pos = dsh.Pos{Turn: m.lastTurn, Step: -2, Attempt: m.tasks}
	m.aborted, m.latched = dsh.Cause{}, false
	m.do(RunMaintenance{Pos: m.pos})
	m.state = &maintaining{}
	return nil
}
