package sessiontest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// cases hold for every store.
var cases = []struct {
	name, rule string
	run        func(t *testing.T, s session.Store)
}{
	{"not found", "Opening a log that nobody created is ErrNotFound.", func(t *testing.T, s session.Store) {
		if _, err := s.Open(t.Context(), "nobody"); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}},
	{"exists", "An ID is free once: creating it again is ErrExists, whether it has events or not, is open or closed.", func(t *testing.T, s session.Store) {
		log := create(t, s, "a")
		again := func(when string) {
			if _, err := s.Create(t.Context(), Header("a")); !errors.Is(err, session.ErrExists) {
				t.Errorf("%s: got %v", when, err)
			}
			h := Header("a")
			h.CWD = "/elsewhere"
			if _, err := s.Create(t.Context(), h); !errors.Is(err, session.ErrExists) {
				t.Errorf("%s, elsewhere: got %v", when, err)
			}
		}
		again("empty")
		add(t, log, Turn(1, 0))
		again("written")
		closeLog(t, log)
		again("closed")
	}},
	{"in use", "A log has one owner: opening it is ErrInUse until that one closed it.", func(t *testing.T, s session.Store) {
		log := create(t, s, "a")
		busy := func(when string) {
			if _, err := s.Open(t.Context(), "a"); !errors.Is(err, session.ErrInUse) {
				t.Errorf("%s: got %v", when, err)
			}
		}
		busy("created")
		add(t, log, Turn(1, 0))
		busy("written")
		closeLog(t, log)
		log = open(t, s, "a")
		busy("opened again")
		closeLog(t, log)
		open(t, s, "a")
	}},
	{"header", "The header comes back as it was, from the log and from the list.", func(t *testing.T, s session.Store) {
		for _, want := range []dsh.SessionHeader{
			Header("full"),
			{Version: dsh.FormatVersion, ID: "least", CreatedAt: 1_790_000_000_001},
			{Version: dsh.FormatVersion, ID: `../odd/ID:*?"<>|~ π𝄞`, CreatedAt: 1_790_000_000_002, CWD: `C:\w d\π`},
		} {
			log, err := s.Create(t.Context(), want)
			if err != nil {
				t.Fatal(err)
			}
			if got := log.Header(); !reflect.DeepEqual(got, want) {
				t.Errorf("created %+v\n   want %+v", got, want)
			}
			add(t, log, Turn(1, 0))
			closeLog(t, log)
			if got := open(t, s, want.ID).Header(); !reflect.DeepEqual(got, want) {
				t.Errorf("opened %+v\n  want %+v", got, want)
			}
			listed := false
			for got, err := range s.List(t.Context()) {
				listed = listed || err == nil && reflect.DeepEqual(got, want)
			}
			if !listed {
				t.Errorf("%s is not listed", want.ID)
			}
		}
	}},
	{"round trip", "Events come back as they were, packed or not, in one batch or many.", func(t *testing.T, s session.Store) {
		log := create(t, s, "a")
		var all []dsh.Event
		for turn := range 10 {
			next := Turn(turn+1, dsh.Seq(turn*17))
			if turn%2 == 0 {
				add(t, log, next)
			} else {
				for i := range next {
					add(t, log, next[i:i+1:i+1])
				}
			}
			all = append(all, next...)
		}
		same(t, read(t, log, 0, 0), all)
		if err := log.Sync(t.Context()); err != nil {
			t.Error(err)
		}
		same(t, read(t, log, 0, 0), all)
	}},
	{"empty", "A log without events reads as nothing; appending nothing does nothing.", func(t *testing.T, s session.Store) {
		log := create(t, s, "a")
		add(t, log, nil)
		if got := read(t, log, 0, 0); len(got) != 0 {
			t.Errorf("got %d events", len(got))
		}
		if err := log.Sync(t.Context()); err != nil {
			t.Error(err)
		}
	}},
	{"numbering", "Events that do not follow the last one are ErrConflict, and none of them is stored.", func(t *testing.T, s session.Store) {
		log := create(t, s, "a")
		refuse := func(events []dsh.Event) {
			t.Helper()
			if err := session.Extend(t.Context(), log, events); !errors.Is(err, session.ErrConflict) {
				t.Errorf("at %d: got %v", events[0].Seq, err)
			}
		}
		refuse(Turn(1, 1))
		first := Turn(1, 0)
		add(t, log, first)
		refuse(first)
		refuse(Turn(2, after(first)+1))
		refuse(Turn(2, after(first)-1))
		same(t, read(t, log, 0, 0), first)
		second := Turn(2, after(first))
		add(t, log, second)
		same(t, read(t, log, 0, 0), slices.Concat(first, second))
	}},
	{"read from the middle", "Read covers from, possibly beginning earlier inside a run, and goes on without a gap; a limit is kept roughly, but there is always something if there is anything.", func(t *testing.T, s session.Store) {
		log := create(t, s, "a")
		var all []dsh.Event
		for turn := range 10 {
			next := Turn(turn+1, dsh.Seq(len(lines(all))))
			add(t, log, next)
			all = append(all, next...)
		}
		total := after(all)
		want := lines(all)
		for from := dsh.Seq(0); from < total; from += 3 {
			for _, limit := range []int{0, 1, 3, 50} {
				got := read(t, log, from, limit)
				if len(got) == 0 || got[0].Seq > from || got[0].Last() < from {
					t.Fatalf("from %d, limit %d: begins with %v", from, limit, got)
				}
				for i, line := range lines(got) {
					if line != want[int(got[0].Seq)+i] {
						t.Fatalf("from %d, limit %d: got %s", from, limit, line)
					}
				}
				if end := after(got); limit == 0 && end != total || limit > 0 && int(end-from) > limit+100 {
					t.Fatalf("from %d, limit %d: ends at %d", from, limit, end)
				}
			}
		}
		for _, from := range []dsh.Seq{total, total + 100} {
			if got := read(t, log, from, 0); len(got) != 0 {
				t.Errorf("behind the end: got %d events", len(got))
			}
		}
	}},
	{"reads beside appends", "Read is safe beside the owner's calls and sees whole batches, in order, without a gap.", func(t *testing.T, s session.Store) {
		const turns = 30
		log := create(t, s, "a")
		length := after(Turn(1, 0))
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for from := dsh.Seq(0); from < turns*length; {
					got, err := log.Read(t.Context(), from, 10)
					if err != nil {
						t.Error(err)
						return
					}
					if len(got) == 0 {
						time.Sleep(time.Millisecond)
						continue
					}
					if got[0].Seq > from || got[0].Last() < from {
						t.Errorf("from %d: begins with %d", from, got[0].Seq)
						return
					}
					from = after(got)
				}
			})
		}
		for turn := range turns {
			add(t, log, Turn(turn+1, dsh.Seq(turn)*length))
			if err := log.Sync(t.Context()); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
	}},
	{"closed", "A closed log refuses appends with ErrClosed and goes on reading; closing it again is no error and takes nothing from the next owner.", func(t *testing.T, s session.Store) {
		log := create(t, s, "a")
		first := Turn(1, 0)
		add(t, log, first)
		closeLog(t, log)
		if err := session.Extend(t.Context(), log, Turn(2, after(first))); !errors.Is(err, session.ErrClosed) {
			t.Errorf("append: got %v", err)
		}
		same(t, read(t, log, 0, 0), first)
		next := open(t, s, "a")
		closeLog(t, log)
		if _, err := s.Open(t.Context(), "a"); !errors.Is(err, session.ErrInUse) {
			t.Errorf("open: got %v", err)
		}
		second := Turn(2, after(first))
		add(t, next, second)
		if err := session.Extend(t.Context(), log, second); !errors.Is(err, session.ErrClosed) {
			t.Errorf("append by the first owner: got %v", err)
		}
		same(t, read(t, next, 0, 0), slices.Concat(first, second))
	}},
	{"continued", "A log that is opened again is numbered on.", func(t *testing.T, s session.Store) {
		log := create(t, s, "a")
		var all []dsh.Event
		for turn := range 5 {
			same(t, read(t, log, 0, 0), all)
			next := Turn(turn+1, dsh.Seq(len(lines(all))))
			add(t, log, next)
			all = append(all, next...)
			closeLog(t, log)
			log = open(t, s, "a")
			if err := session.Extend(t.Context(), log, Turn(9, 0)); !errors.Is(err, session.ErrConflict) {
				t.Errorf("got %v", err)
			}
		}
		same(t, read(t, log, 3, 0), dsh.Cut(all, after(all))[3:])
	}},
	{"fenced", "A writer of an earlier ownership, or with another idea of what is stored, is refused.", func(t *testing.T, s session.Store) {
		log := create(t, s, "a")
		first := Turn(1, 0)
		add(t, log, first)
		past := session.Fence{Epoch: log.Epoch(), Next: after(first)}
		closeLog(t, log)
		log = open(t, s, "a")
		if log.Epoch() <= past.Epoch {
			t.Errorf("epoch %d follows %d", log.Epoch(), past.Epoch)
		}
		second := Turn(2, after(first))
		if err := log.Append(t.Context(), past, second); !errors.Is(err, session.ErrStale) {
			t.Errorf("an earlier epoch: got %v", err)
		}
		for _, next := range []dsh.Seq{0, past.Next - 1, past.Next + 1} {
			fence := session.Fence{Epoch: log.Epoch(), Next: next}
			if err := log.Append(t.Context(), fence, second); !errors.Is(err, session.ErrConflict) {
				t.Errorf("next %d where %d is due: got %v", next, past.Next, err)
			}
		}
		same(t, read(t, log, 0, 0), first)
		add(t, log, second)
	}},
	{"list", "All logs are listed once, oldest first, open or not.", func(t *testing.T, s session.Store) {
		if ids := headers(t, s); len(ids) != 0 {
			t.Errorf("an empty store lists %v", ids)
		}
		var want []dsh.SessionID
		for i := range 20 {
			h := Header(dsh.SessionID(fmt.Sprintf("s-%d", i*7%20)))
			h.CreatedAt += int64(i)
			h.CWD = fmt.Sprintf("/srv/%d", i%3)
			log, err := s.Create(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			add(t, log, Turn(1, 0))
			if i%2 == 0 {
				closeLog(t, log)
			}
			want = append(want, h.ID)
		}
		if got := headers(t, s); !slices.Equal(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
		for _, err := range s.List(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			break // a list can be left
		}
	}},
	{"lineage", "A store that finds children by itself finds those that a look at all headers finds, in the same order.", func(t *testing.T, s session.Store) {
		kin, ok := s.(session.Lineage)
		if !ok {
			t.Skip("the store does not")
		}
		compare := func(when string) {
			for _, parent := range []dsh.SessionID{"s-0", "s-1", "s-7", "nobody"} {
				var got, want []dsh.SessionHeader
				for h, err := range kin.Children(t.Context(), parent) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, h)
				}
				for h, err := range s.List(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					if h.ParentSession == parent {
						want = append(want, h)
					}
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s: children of %s: %v, want %v", when, parent, got, want)
				}
			}
		}
		compare("empty")
		for i := range 20 {
			h := Header(dsh.SessionID(fmt.Sprintf("s-%d", i)))
			h.CreatedAt += int64(i)
			h.CWD = fmt.Sprintf("/srv/%d", i%3)
			if h.ParentSession = dsh.SessionID(fmt.Sprintf("s-%d", i/8)); i == 0 {
				h.ParentSession = ""
			}
			log, err := s.Create(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			add(t, log, Turn(1, 0))
			if i%2 == 0 {
				closeLog(t, log)
			}
			compare(fmt.Sprintf("with %d", i+1))
		}
		for _, err := range kin.Children(t.Context(), "s-0") {
			if err != nil {
				t.Error(err)
			}
			break // it can be left
		}
	}},
	{"big", "Events of megabytes and batches of thousands of events are nothing special.", func(t *testing.T, s session.Store) {
		log := create(t, s, "a")
		big := number(0, 1_790_000_000_000,
			dsh.Event{Data: dsh.Opaque{Name: "todo/write", Raw: []byte(`"` + strings.Repeat("0123456789abcdef", 1<<17) + `"`)}},
			dsh.Event{Data: dsh.Opaque{Name: "todo/write", Raw: []byte(`[` + strings.Repeat("1,", 1<<16) + `0]`)}})
		for i := range 3000 {
			big = append(big, number(after(big), int64(i), dsh.Event{Data: dsh.ChunkRun{
				Turn: 1, Step: 1, Chunks: []dsh.Chunk{dsh.TextDelta{Text: "a"}, dsh.TextDelta{Text: "b"}},
			}})...)
		}
		add(t, log, big)
		small := Turn(2, after(big))
		add(t, log, small)
		same(t, read(t, log, 0, 0), slices.Concat(big, small))
		closeLog(t, log)
		same(t, read(t, open(t, s, "a"), 0, 0), slices.Concat(big, small))
	}},
	{"together", "Logs are independent: many can be written and made durable at the same time.", func(t *testing.T, s session.Store) {
		var wg sync.WaitGroup
		for i := range 20 {
			log := create(t, s, dsh.SessionID(fmt.Sprint(i)))
			wg.Go(func() {
				var all []dsh.Event
				for turn := range 5 {
					next := Turn(turn+1, dsh.Seq(len(lines(all))))
					if err := errors.Join(session.Extend(t.Context(), log, next), log.Sync(t.Context())); err != nil {
						t.Error(err)
						return
					}
					all = append(all, next...)
				}
				got, err := log.Read(t.Context(), 0, 0)
				if err != nil || !slices.Equal(lines(got), lines(all)) {
					t.Errorf("log %d holds something else (%v)", i, err)
				}
			})
		}
		wg.Wait()
	}},
}
