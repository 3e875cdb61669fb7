package jsonl

import (
	"errors"
	"iter"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// batchesOf yields events in batches, and then an error if there is one.
func batchesOf(err error, batches ...[]dsh.Event) iter.Seq2[[]dsh.Event, error] {
	return func(yield func([]dsh.Event, error) bool) {
		for _, b := range batches {
			if !yield(b, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// A staged log is nowhere until it is committed, and whole then.
func TestStage(t *testing.T) {
	bothEncodings(t, func(t *testing.T, e Encoding) {
		y := newYard(t, e)
		one := sessiontest.Turn(1, 0)
		two := sessiontest.Turn(2, one[len(one)-1].Last()+1)
		staged, err := y.Stage(t.Context(), header("a"), batchesOf(nil, one, nil, two))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := y.Open(t.Context(), "a"); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("before: %v", err)
		}
		if _, err := y.Stage(t.Context(), header("a"), batchesOf(nil)); !errors.Is(err, session.ErrInUse) {
			t.Errorf("a second: %v", err)
		}
		if err := staged.Commit(); err != nil {
			t.Fatal(err)
		}
		log, err := y.Open(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		events, err := log.Read(t.Context(), 0, 0)
		if err != nil || !slices.Equal(jsonOf(events), jsonOf(slices.Concat(one, two))) || log.Header() != header("a") {
			t.Errorf("%d events, %v", len(events), err)
		}
		if _, err := y.Stage(t.Context(), header("a"), batchesOf(nil)); !errors.Is(err, session.ErrExists) {
			t.Errorf("a third: %v", err)
		}
	})
}

// What was not committed leaves no log, and the ID is free.
func TestStageGivenUp(t *testing.T) {
	y := newYard(t, Zstd)
	one := sessiontest.Turn(1, 0)
	staged, err := y.Stage(t.Context(), header("a"), batchesOf(nil, one))
	if err != nil {
		t.Fatal(err)
	}
	if err := staged.Discard(); err != nil {
		t.Fatal(err)
	}
	odd := errors.New("odd")
	for _, bad := range []iter.Seq2[[]dsh.Event, error]{
		batchesOf(odd, one),
		batchesOf(nil, one, one),
		batchesOf(nil, []dsh.Event{{Data: dsh.Opaque{Name: "custom/x", Raw: []byte("{}")}}}),
	} {
		if _, err := y.Stage(t.Context(), header("a"), bad); err == nil {
			t.Error("it was staged")
		}
	}
	if found, err := y.Survey(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
	log, err := y.Create(t.Context(), header("a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

// Whatever operation fails, there is the whole log or none.
func TestStageFaults(t *testing.T) {
	for from := int64(0); ; from++ {
		disk := &badDisk{from: from, count: 1, err: syscall.ENOSPC}
		y := newYard(t, Zstd)
		y.disk, y.syncer.disk = disk, disk
		one := sessiontest.Turn(1, 0)
		staged, err := y.Stage(t.Context(), header("a"), batchesOf(nil, one))
		if err == nil {
			err = staged.Commit()
		}
		failed := disk.done.Load() > from
		disk.from = 1 << 40
		path := y.root + "/--srv-demo--/a/" + y.box.name()
		data, rerr := os.ReadFile(path)
		switch {
		case err != nil && !errors.Is(err, syscall.ENOSPC):
			t.Fatal(err)
		case err != nil && rerr == nil:
			t.Errorf("failing at %d: there is a log of %d bytes", from, len(data))
		case err == nil && rerr != nil:
			t.Errorf("failing at %d: %v", from, rerr)
		case err == nil:
			if r, err := y.Check(t.Context(), "a"); err != nil || r.Verdict != Sound || r.Events == 0 {
				t.Errorf("failing at %d: %+v, %v", from, r, err)
			}
		}
		if !failed {
			t.Logf("%d operations", from)
			return
		}
	}
}
