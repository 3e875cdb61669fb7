package sessiontest

import (
	"errors"
	"slices"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// reopened are the cases for stores that outlive their process.
var reopened = []struct {
	name, rule string
	run        func(t *testing.T, open func() session.Store)
}{
	{"reopened", "What was appended and closed is in the next store, which numbers on.", func(t *testing.T, store func() session.Store) {
		var all []dsh.Event
		for turn := range 5 {
			s := store()
			var log session.Log
			if turn == 0 {
				log = create(t, s, "a")
			} else {
				log = open(t, s, "a")
			}
			next := Turn(turn+1, dsh.Seq(len(lines(all))))
			add(t, log, next)
			all = append(all, next...)
			if err := log.Sync(t.Context()); err != nil {
				t.Error(err)
			}
			same(t, read(t, log, 0, 0), all)
			closeLog(t, log)
		}
		if got := headers(t, store()); !slices.Equal(got, []dsh.SessionID{"a"}) {
			t.Errorf("listed %v", got)
		}
	}},
	{"owned elsewhere", "A log that another store has open is ErrInUse, and can be opened when that one closed it.", func(t *testing.T, store func() session.Store) {
		here, there := store(), store()
		log := create(t, here, "a")
		first := Turn(1, 0)
		add(t, log, first)
		if _, err := there.Open(t.Context(), "a"); !errors.Is(err, session.ErrInUse) {
			t.Errorf("open: got %v", err)
		}
		if _, err := there.Create(t.Context(), Header("a")); !errors.Is(err, session.ErrExists) {
			t.Errorf("create: got %v", err)
		}
		if got := headers(t, there); !slices.Equal(got, []dsh.SessionID{"a"}) {
			t.Errorf("listed %v", got)
		}
		closeLog(t, log)
		same(t, read(t, open(t, there, "a"), 0, 0), first)
	}},
	{"created twice", "Of two stores that create one ID, one gets the log; the other's first append fails and stores nothing.", func(t *testing.T, store func() session.Store) {
		one := create(t, store(), "a")
		other, err := store().Create(t.Context(), Header("a"))
		if errors.Is(err, session.ErrExists) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		first := Turn(1, 0)
		add(t, one, first)
		if err := session.Extend(t.Context(), other, first); !errors.Is(err, session.ErrExists) && !errors.Is(err, session.ErrInUse) {
			t.Errorf("append: got %v", err)
		}
		closeLog(t, one)
		if err := session.Extend(t.Context(), other, first); !errors.Is(err, session.ErrExists) {
			t.Errorf("append behind the other: got %v", err)
		}
		closeLog(t, other)
		same(t, read(t, open(t, store(), "a"), 0, 0), first)
	}},
	{"closed without sync", "Close does not lose what the store took, as long as the machine runs.", func(t *testing.T, store func() session.Store) {
		log := create(t, store(), "a")
		first := Turn(1, 0)
		add(t, log, first)
		closeLog(t, log)
		same(t, read(t, open(t, store(), "a"), 0, 0), first)
	}},
}
