package pebble

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	kv "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// badDisk fails operations that write, from number from on, count of them. What
// it holds at the first failure, without what was never synced, is crashed.
type badDisk struct {
	mem         *vfs.MemFS
	from, count int64
	done        atomic.Int64 // operations so far
	once        sync.Once
	crashed     *vfs.MemFS
}

func newBadDisk(t *testing.T, dir string, from, count int64) *badDisk {
	t.Helper()
	mem := vfs.NewCrashableMem()
	if err := makeDurably(mem, filepath.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	return &badDisk{mem: mem, from: from, count: count}
}

// String names the disk.
func (d *badDisk) String() string { return fmt.Sprintf("fails from %d, %d times", d.from, d.count) }

// MaybeError fails an operation when it is time to.
func (d *badDisk) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpLock, errorfs.OpFilePreallocate:
		return nil
	}
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
		return nil
	}
	n := d.done.Add(1) - 1
	if n < d.from || n >= d.from+d.count {
		return nil
	}
	d.once.Do(func() { d.crashed = d.mem.CrashClone(vfs.CrashCloneCfg{}) })
	return fmt.Errorf("operation %d: %w", n, syscall.ENOSPC)
}

func (d *badDisk) fs() vfs.FS { return errorfs.Wrap(d.mem, d) }

// insist repeats what fails until the disk is well.
func insist(t *testing.T, what string, do func() error) {
	t.Helper()
	for range 10_000 {
		err := do()
		if err == nil {
			return
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", what, err)
			return
		}
	}
	t.Errorf("%s fails for ever", what)
}

// Whatever operation fails, for once or for a while: what was refused can be
// stored later, what was made durable is there when the process stops at the
// failure, and the process is never ended.
func TestFaults(t *testing.T) {
	for _, count := range []int64{1, 7, 100} {
		for from := int64(0); ; from++ {
			dir := t.TempDir()
			disk := newBadDisk(t, dir, from, count)
			all, durable := faults(t, disk, dir)
			if t.Failed() {
				t.Fatalf("operations from %d on, %d", from, count)
			}
			if disk.crashed == nil {
				t.Logf("%d times: %d operations", count, from)
				break // nothing failed: there are no more operations
			}
			crashed(t, disk.crashed, dir, all, durable)
			if t.Failed() {
				t.Fatalf("crashed at operation %d", from)
			}
		}
	}
}

// faults makes turns durable in a store on a disk that fails, and returns all
// events and how many were durable at the first failure.
func faults(t *testing.T, disk *badDisk, dir string) (all []dsh.Event, durable dsh.Seq) {
	var s *Store
	insist(t, "open", func() (err error) {
		s, err = open(dir, disk.fs())
		return err
	})
	var log session.Log
	insist(t, "create", func() (err error) {
		log, err = s.Create(t.Context(), sessiontest.Header("a"))
		return err
	})
	note := func(next dsh.Seq) {
		if disk.done.Load() <= disk.from {
			durable = next
		}
	}
	for turn := range 4 {
		events := sessiontest.Turn(turn, after(all))
		insist(t, "append", func() error { return session.Extend(t.Context(), log, events) })
		all = append(all, events...)
		if turn == 2 {
			continue // goes with the next
		}
		insist(t, "sync", func() error { return log.Sync(t.Context()) })
		note(after(all))
		var got []dsh.Event
		insist(t, "read", func() (err error) {
			got, err = log.Read(t.Context(), 0, 0)
			return err
		})
		equal(t, got, all)
		if turn == 1 {
			insist(t, "flush", func() error {
				return s.db.use(func(engine *kv.DB, _ int) error { return engine.Flush() })
			})
		}
	}
	if err := log.Close(); err != nil {
		t.Error(err) // nothing is pending
	}
	if err := s.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	reopened(t, disk.mem, dir, func(got []dsh.Event, next dsh.Seq) { equal(t, got, all) })
	return all, durable
}

// crashed checks what a crash left.
func crashed(t *testing.T, disk vfs.FS, dir string, all []dsh.Event, durable dsh.Seq) {
	reopened(t, disk, dir, func(got []dsh.Event, next dsh.Seq) {
		if next < durable {
			t.Errorf("%d events were durable, %d are left", durable, next)
		}
		equal(t, got, dsh.Cut(all, next))
	})
}

// reopened opens the log "a" on a disk that is well and checks it. One that is
// not there has no events.
func reopened(t *testing.T, disk vfs.FS, dir string, check func(got []dsh.Event, next dsh.Seq)) {
	t.Helper()
	s, err := open(dir, disk)
	if err != nil {
		t.Error(err)
		return
	}
	defer s.Close()
	log, err := s.Open(t.Context(), "a")
	if errors.Is(err, session.ErrNotFound) {
		check(nil, 0)
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	defer log.Close()
	got, err := log.Read(t.Context(), 0, 0)
	if err != nil {
		t.Error(err)
		return
	}
	check(got, after(got))
	if err := session.Extend(t.Context(), log, sessiontest.Turn(9, after(got))); err != nil {
		t.Error(err)
	}
}

// equal compares events one by one.
func equal(t *testing.T, got, want []dsh.Event) {
	t.Helper()
	g, w := lines(got), lines(want)
	if !slices.Equal(g, w) {
		t.Errorf("got %d events, want %d, or they differ", len(g), len(w))
	}
}

func lines(events []dsh.Event) (list []string) {
	for ev := range dsh.Expand(events) {
		list = append(list, string(ev.AppendJSON(nil)))
	}
	return list
}

// A disk that fails now and then while many sessions write costs them nothing
// but time.
func TestFaultsTogether(t *testing.T) {
	const sessions, turns = 20, 15
	dir := t.TempDir()
	disk := newBadDisk(t, dir, 1<<40, 0)
	flaky := errorfs.Wrap(disk.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpLock || op.Kind.ReadOrWrite() == errorfs.OpIsRead {
			return nil
		}
		if disk.done.Add(1)%97 == 0 {
			return syscall.ENOSPC
		}
		return nil
	}))
	var s *Store
	insist(t, "open", func() (err error) {
		s, err = open(dir, flaky)
		return err
	})
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			var log session.Log
			insist(t, "create", func() (err error) {
				log, err = s.Create(t.Context(), sessiontest.Header(dsh.SessionID(fmt.Sprint(i))))
				return err
			})
			var all []dsh.Event
			for turn := range turns {
				events := sessiontest.Turn(turn, after(all))
				insist(t, "append", func() error { return session.Extend(t.Context(), log, events) })
				all = append(all, events...)
				insist(t, "sync", func() error { return log.Sync(t.Context()) })
			}
			var got []dsh.Event
			insist(t, "read", func() (err error) {
				got, err = log.Read(t.Context(), 0, 0)
				return err
			})
			equal(t, got, all)
			if err := log.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if s.db.generation < 3 {
		t.Errorf("the engine was opened %d times: nothing failed", s.db.generation)
	}
	_ = s.Close() // its last writes may fail, too
	s, err := open(dir, disk.mem)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range sessions {
		log, err := s.Open(t.Context(), dsh.SessionID(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := log.Read(t.Context(), 0, 0)
		if err != nil || after(got) != turns*after(sessiontest.Turn(0, 0)) {
			t.Errorf("log %d has %d events (%v)", i, after(got), err)
		}
		log.Close()
	}
}

// What was closed without a sync is there after a crash: nothing else would
// keep it beyond the process.
func TestCloseIsDurable(t *testing.T) {
	dir := t.TempDir()
	disk := newBadDisk(t, dir, 1<<40, 0)
	s, err := open(dir, disk.fs())
	if err != nil {
		t.Fatal(err)
	}
	log, err := s.Create(t.Context(), sessiontest.Header("a"))
	if err != nil {
		t.Fatal(err)
	}
	all := sessiontest.Turn(1, 0)
	if err := errors.Join(session.Extend(t.Context(), log, all), log.Close()); err != nil {
		t.Fatal(err)
	}
	left := disk.mem.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	reopened(t, left, dir, func(got []dsh.Event, _ dsh.Seq) { equal(t, got, all) })
}
