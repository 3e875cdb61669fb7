package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// slowBirth is a store that takes its time to make one log, and may fail.
type slowBirth struct {
	*memory.Store
	id   dsh.SessionID
	gate chan struct{}
	err  error
}

func (s *slowBirth) Create(ctx context.Context, h dsh.SessionHeader) (session.Log, error) {
	if h.ID == s.id {
		<-s.gate
		if s.err != nil {
			return nil, s.err
		}
	}
	return s.Store.Create(ctx, h)
}

// A parent that goes while its child is being made waits for that and no longer,
// and nothing is left of the child, whether the parent is disposed of or has
// just settled.
func TestParentGoesBeforeItsChildIsMade(t *testing.T) {
	for _, settles := range []bool{false, true} {
		for _, failure := range []error{nil, errors.New("no space left")} {
			t.Run(fmt.Sprint(settles, failure), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					store := &slowBirth{Store: memory.New(), id: "unborn", gate: make(chan struct{}), err: failure}
					rt, err := runtime.New(runtime.Options{
						Store: store, Providers: map[string]llm.Provider{"mock": answers(script.Text("done", 1))},
					})
					if err != nil {
						t.Fatal(err)
					}
					defer stop(t, rt)
					top, err := rt.Create(t.Context(), topSpec)
					if err != nil {
						t.Fatal(err)
					}
					parent, err := top.Spawn(t.Context(), runtime.ChildSpec{ID: "parent", Label: "job"})
					if err != nil {
						t.Fatal(err)
					}
					born := make(chan error, 1)
					go func() {
						_, err := parent.Spawn(context.Background(), runtime.ChildSpec{ID: "unborn"})
						born <- err
					}()
					synctest.Wait()
					gone := make(chan error, 1)
					go func() {
						if !settles {
							gone <- parent.Dispose(context.Background())
							return
						}
						_, err := parent.Run(context.Background(), "go")
						gone <- err
					}()
					synctest.Wait()
					if len(gone) > 0 {
						t.Errorf("the parent is gone before its child: %v", <-gone)
					}
					close(store.gate)
					if err := <-born; failure == nil && !errors.Is(err, &delegation.Error{Code: delegation.CodeCancelled}) ||
						failure != nil && !errors.Is(err, failure) {
						t.Errorf("Spawn = %v", err)
					}
					if err := <-gone; err != nil {
						t.Error(err)
					}
					synctest.Wait()
					if left := rt.Agents(); len(left) != 1 {
						t.Errorf("%d agents are left", len(left))
					}
				})
			})
		}
	}
}

// forgetsOne is a store that cannot make one session durable.
type forgetsOne struct {
	*disk
	id  dsh.SessionID
	err error
}

func (s *forgetsOne) Create(ctx context.Context, h dsh.SessionHeader) (session.Log, error) {
	log, err := s.disk.Create(ctx, h)
	if err == nil && h.ID == s.id {
		log = &forgetfulLog{Log: log, err: s.err}
	}
	return log, err
}

type forgetfulLog struct {
	session.Log
	err error
}

func (l *forgetfulLog) Sync(context.Context) error { return l.err }

// Nobody is told that a background child works whose task a crash would undo,
// nor how it settled.
func TestBackgroundChildThatIsNotDurable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		full := errors.New("no space left")
		rt, err := runtime.New(runtime.Options{
			Store:     &forgetsOne{disk: newDisk(t, nil, nil), id: "kid", err: full},
			Providers: map[string]llm.Provider{"mock": answers(script.Text("done", 1))},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop(t, rt)
		top, err := rt.Create(t.Context(), topSpec)
		if err != nil {
			t.Fatal(err)
		}
		c, err := top.Spawn(t.Context(), runtime.ChildSpec{ID: "kid", Label: "job", Background: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Begin(t.Context(), dsh.UserText("go")); !errors.Is(err, runtime.ErrNotDurable) || !errors.Is(err, full) {
			t.Errorf("Begin = %v", err)
		}
		if err := c.Dispose(t.Context()); !errors.Is(err, full) {
			t.Errorf("Dispose = %v", err)
		}
		synctest.Wait()
		if s, err := top.State(t.Context()); err != nil || s.Next != 0 {
			t.Errorf("the parent has %d events, %v", s.Next, err)
		}
	})
}
