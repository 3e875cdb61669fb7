package runtime

import (
	"context"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Usage returns what the session's requests used, by route: every attempt
// counts once, failed ones too. It is folded from the log, so it holds what a
// resumed or forked session brought along.
func (a *Agent) Usage(ctx context.Context) (*dsh.Ledger, error) {
	events, err := a.packed(ctx)
	if err != nil {
		return nil, err
	}
	ledger := new(dsh.Ledger)
	for i := range events {
		ledger.Apply(&events[i])
	}
	return ledger, nil
}

// Usage returns the sum over the sessions of all agents that are there: that of
// a run, if it disposes none. An agent that goes meanwhile is left out.
func (rt *Runtime) Usage(ctx context.Context) (*dsh.Ledger, error) {
	sum := new(dsh.Ledger)
	for _, a := range rt.Agents() {
		l, err := a.Usage(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			continue
		}
		for _, r := range l.Routes() {
			sum.Add(r)
		}
	}
	return sum, nil
}
