package session

import (
	"context"
	"iter"
	"slices"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Fork makes a log in store that begins with the first boundary events of
// another one, as an agent that is forked there has it, without an agent:
// session/end-seed says where they end. The boundary must not lie inside a turn
// (see [dsh.CheckFork]).
//
// The header says ID, CreatedAt, which is the time of the end as well, and CWD
// of the new session; what it owes to the other one is filled in. Fork returns
// the header. The log is made whole or, in a [Stager], not at all.
func Fork(ctx context.Context, store Store, from Log, boundary dsh.Seq, h dsh.SessionHeader) (dsh.SessionHeader, error) {
	events, err := from.Read(ctx, 0, 0)
	if err != nil {
		return h, err
	}
	if err := dsh.CheckFork(events, boundary); err != nil {
		return h, err
	}
	events = dsh.Cut(events, boundary)
	h.Version, h.ParentSession, h.SeedLength, h.HasSeed = dsh.FormatVersion, from.Header().ID, boundary, true
	if n := len(events); n > 0 {
		if _, ends := events[n-1].Data.(dsh.EndSeed); !ends {
			events = append(events, dsh.Event{Seq: boundary, Time: h.CreatedAt, Data: dsh.EndSeed{}})
		}
	}
	staged, err := Stage(ctx, store, h, batches(events))
	if err != nil {
		return h, err
	}
	return h, staged.Commit()
}

// batches yields events in parts, so that a store need not write, nor a reader
// read, all of them at once.
func batches(events []dsh.Event) iter.Seq2[[]dsh.Event, error] {
	const most = 1024
	return func(yield func([]dsh.Event, error) bool) {
		for part := range slices.Chunk(events, most) {
			if !yield(part, nil) {
				return
			}
		}
	}
}
