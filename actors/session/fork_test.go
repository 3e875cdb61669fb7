package session_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// parent returns the log of two turns.
func parent(t *testing.T, s session.Store) (log session.Log, turns [2][]dsh.Event) {
	t.Helper()
	log, err := s.Create(t.Context(), dsh.SessionHeader{ID: "parent", CWD: "/srv"})
	if err != nil {
		t.Fatal(err)
	}
	turns[0] = sessiontest.Turn(1, 0)
	turns[1] = sessiontest.Turn(2, turns[0][len(turns[0])-1].Last()+1)
	for _, events := range turns {
		if err := session.Extend(t.Context(), log, events); err != nil {
			t.Fatal(err)
		}
	}
	return log, turns
}

func TestFork(t *testing.T) {
	s := memory.New()
	from, turns := parent(t, s)
	boundary := turns[1][0].Seq
	h, err := session.Fork(t.Context(), s, from, boundary, dsh.SessionHeader{ID: "fork", CreatedAt: 99, CWD: "/srv"})
	want := dsh.SessionHeader{
		Version: dsh.FormatVersion, ID: "fork", CreatedAt: 99, CWD: "/srv", ParentSession: "parent", SeedLength: boundary, HasSeed: true,
	}
	if err != nil || h != want {
		t.Fatalf("%+v, %v", h, err)
	}
	log, err := s.Open(t.Context(), "fork")
	if err != nil {
		t.Fatal(err)
	}
	events, err := log.Read(t.Context(), 0, 0)
	if err != nil || log.Header() != want || len(events) != len(turns[0])+1 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	last := events[len(events)-1]
	if _, ok := last.Data.(dsh.EndSeed); !ok || last.Seq != boundary || last.Time != 99 {
		t.Errorf("the last event is %+v", last)
	}
	// A fork of all of a fork has no second end.
	if _, err := session.Fork(t.Context(), s, log, boundary+1, dsh.SessionHeader{ID: "again"}); err != nil {
		t.Fatal(err)
	}
	again, err := s.Open(t.Context(), "again")
	if err != nil {
		t.Fatal(err)
	}
	if all, err := again.Read(t.Context(), 0, 0); err != nil || len(all) != len(events) {
		t.Errorf("%d events, %v", len(all), err)
	}
}

func TestForkRefused(t *testing.T) {
	s := memory.New()
	from, turns := parent(t, s)
	end := turns[1][len(turns[1])-1].Last() + 1
	for _, boundary := range []dsh.Seq{-1, 2, end - 1, end + 1} {
		var refused *dsh.ForkError
		if _, err := session.Fork(t.Context(), s, from, boundary, dsh.SessionHeader{ID: "f"}); !errors.As(err, &refused) {
			t.Errorf("%d: %v", boundary, err)
		}
	}
	if _, err := session.Fork(t.Context(), s, from, end, dsh.SessionHeader{ID: "parent"}); !errors.Is(err, session.ErrExists) {
		t.Error(err)
	}
	if _, err := session.Fork(t.Context(), s, from, 0, dsh.SessionHeader{ID: "f"}); err != nil {
		t.Errorf("of nothing: %v", err)
	}
}

// A store that cannot stage shows the log meanwhile, and not if that fails.
func TestStageInAnyStore(t *testing.T) {
	one := sessiontest.Turn(1, 0)
	odd := errors.New("odd")
	batches := func(err error) iter.Seq2[[]dsh.Event, error] {
		return func(yield func([]dsh.Event, error) bool) {
			if yield(one, nil) && err != nil {
				yield(nil, err)
			}
		}
	}
	s := memory.New()
	stage := func(ctx context.Context, err error) (session.Staged, error) {
		return session.Stage(ctx, s, dsh.SessionHeader{ID: "a"}, batches(err))
	}
	ids := func() (ids []dsh.SessionID) {
		for h, err := range s.List(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			ids = append(ids, h.ID)
		}
		return ids
	}
	if _, err := stage(t.Context(), odd); !errors.Is(err, odd) || len(ids()) != 0 {
		t.Errorf("%v, left %v", err, ids())
	}
	staged, err := stage(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := staged.Discard(); err != nil || len(ids()) != 0 {
		t.Errorf("%v, left %v", err, ids())
	}
	if staged, err = stage(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := staged.Commit(); err != nil || !slices.Equal(ids(), []dsh.SessionID{"a"}) {
		t.Errorf("%v, %v", err, ids())
	}
	log, err := s.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if events, err := log.Read(t.Context(), 0, 0); err != nil || len(events) != len(one) {
		t.Errorf("%d events, %v", len(events), err)
	}
}
