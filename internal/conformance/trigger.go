package conformance

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/dsh-actor/dsh-actor/actors/llm/script"
)

// A moment is a call of an extension point, as far as filters ask.
type moment struct {
	agent        string // its key
	turn, step   int
	callID, tool string
	typ, status  string
}

// A trigger is a scripted hook and how often it was asked.
type trigger struct {
	*Hook
	mu             sync.Mutex
	matched, fired int
}

// triggers returns the scenario's hooks of a point, in order.
func (s *Scenario) triggers(point string) []*trigger {
	var out []*trigger
	for i := range s.Hooks {
		if s.Hooks[i].Point == point {
			out = append(out, &trigger{Hook: &s.Hooks[i]})
		}
	}
	return out
}

// pull reports whether the hook acts at this moment. Every matching moment
// counts for nth, whether it acts or not.
func (t *trigger) pull(m moment) bool {
	if !t.fits(m) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.matched++
	if t.Nth != 0 && t.matched != t.Nth || t.Times != 0 && t.fired == t.Times {
		return false
	}
	t.fired++
	return true
}

func (t *trigger) fits(m moment) bool {
	return (t.Agent == "" || t.Agent == m.agent) &&
		is(t.Turn, m.turn) && is(t.Step, m.step) && is(t.CallID, m.callID) && is(t.Tool, m.tool) &&
		is(t.Type, m.typ) && is(t.Status, m.status)
}

// is reports whether a filter lets a value through; no filter lets any.
func is[T comparable](filter *T, value T) bool { return filter == nil || *filter == value }

// act performs the parts that all points share, in their order: wait, act,
// throw.
func (t *trigger) act(ctx context.Context, gates *script.Gates, do func([]Action)) error {
	if t.Wait != "" {
		gates.Wait(context.WithoutCancel(ctx), t.Wait)
	}
	if t.WaitOrAbort != "" && !gates.Wait(ctx, t.WaitOrAbort) {
		return context.Cause(ctx)
	}
	if len(t.Actions) > 0 {
		do(slices.Clone(t.Actions))
	}
	if t.Throw != nil {
		return errors.New(*t.Throw)
	}
	return nil
}
