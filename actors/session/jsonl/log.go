package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// maxPending is how many bytes a log keeps in memory because they are not
// durable yet; more are made durable without being asked for.
const maxPending = 1 << 20

// log is a log and its owner.
//
// Invariants: the file holds what is durable, up to synced, then pending, up
// to the view's end, and then nothing (the header is the first that is pending); unless broken, when only what is
// durable can be relied on. pending is what a failed sync may have lost: the
// system reports that once and then takes the pages for written, so that they
// must be written again.
type log struct {
	view
	store *Store

	own     sync.Mutex // one call of the owner at a time
	epoch   session.Epoch
	file    file // nil as long as there is no file
	held    *lock
	closed  bool
	synced  int64
	pending [][]byte
	size    int // of pending
	broken  bool
	// unsure says that the path to the file may not be durable, nor what was
	// in it when it was opened.
	unsure bool
	// since is how many rounds of the store's syncer had failed before the
	// first byte that is not durable was written.
	since int64
	// together is whether the store's syncAll reaches the file.
	together bool

	// created is who created the log that has no file.
	created Holder
	// loaded is what was read when the log was opened, for the first Read.
	loaded []dsh.Event
}

var _ session.Log = (*log)(nil)

// Epoch returns the ownership's.
func (l *log) Epoch() session.Epoch { return l.epoch }

// Append adds events.
func (l *log) Append(_ context.Context, fence session.Fence, events []dsh.Event) error {
	l.own.Lock()
	defer l.own.Unlock()
	err := l.admits(fence)
	if err == nil {
		err = l.append(events)
	}
	if err != nil {
		return fmt.Errorf("jsonl: append to %s: %w", l.header.ID, err)
	}
	return nil
}

// admits returns why a writer is refused. That nobody else owns the log is seen
// to by the lock.
func (l *log) admits(fence session.Fence) error {
	switch {
	case l.closed:
		return session.ErrClosed
	case fence.Epoch != l.epoch:
		return session.ErrStale
	case fence.Next != l.next:
		return fmt.Errorf("event %d where %d is due: %w", fence.Next, l.next, session.ErrConflict)
	}
	return nil
}

func (l *log) append(events []dsh.Event) error {
	if len(events) == 0 {
		return nil
	}
	next, err := l.follow(events)
	if err != nil {
		return err
	}
	unit := pack(l.box, events)
	if len(l.pending) == 0 && !l.unsure {
		l.since = l.store.syncer.failures.Load()
	}
	if l.file == nil {
		err = l.materialise(unit)
	} else {
		err = l.write(unit)
	}
	if err != nil {
		return err
	}
	l.pending = append(l.pending, unit)
	l.size += len(unit)
	l.takeLoaded()
	l.grow(len(unit), next)
	if l.size > maxPending {
		_ = l.sync() // the next Sync tries again, and tells
	}
	return nil
}

// write adds a unit to the file, all of it or nothing.
func (l *log) write(unit []byte) error {
	if err := l.restore(); err != nil {
		return err
	}
	err := writeAt(l.file, unit, l.end)
	if err == nil {
		return nil
	}
	if terr := l.file.Truncate(l.end); terr != nil {
		l.broken = true
		err = errors.Join(err, terr)
	}
	return err
}

// follow returns the number of the event behind events, or why they must not
// be appended.
func (l *log) follow(events []dsh.Event) (next dsh.Seq, err error) {
	next = l.next
	for i := range events {
		ev := &events[i]
		if ev.Seq != next {
			return 0, fmt.Errorf("event %d where %d is due: %w", ev.Seq, next, session.ErrConflict)
		}
		if err := dsh.CheckKnown(ev); err != nil {
			return 0, err
		}
		next += ev.Span()
	}
	return next, nil
}

func writeAt(f file, data []byte, at int64) error {
	_, err := f.WriteAt(data, at)
	return err
}

// restore makes the file again what it was before something failed. It returns
// why it cannot; then the log takes no events.
func (l *log) restore() error {
	if !l.broken {
		return nil
	}
	l.mu.Lock() // no read sees it half done
	defer l.mu.Unlock()
	if err := l.file.Truncate(l.synced); err != nil {
		return err
	}
	at := l.synced
	l.since = l.store.syncer.failures.Load()
	for _, unit := range l.pending {
		if err := writeAt(l.file, unit, at); err != nil {
			return err
		}
		at += int64(len(unit))
	}
	l.broken = false
	return nil
}

// Sync makes what was appended durable.
func (l *log) Sync(context.Context) error {
	l.own.Lock()
	defer l.own.Unlock()
	err := session.ErrClosed
	if !l.closed {
		err = l.sync()
	}
	if err != nil {
		return fmt.Errorf("jsonl: sync %s: %w", l.header.ID, err)
	}
	return nil
}

func (l *log) sync() error {
	if l.file == nil {
		return nil
	}
	if err := l.restore(); err != nil {
		return err
	}
	var paths []string
	switch {
	case l.unsure:
		paths = l.store.paths(filepath.Dir(l.path))
	case len(l.pending) == 0:
		return nil
	}
	err := l.store.persist(l.file, paths, l.together, l.since)
	for errors.Is(err, errMissed) { // each time another round failed meanwhile
		l.broken = true
		if err = l.restore(); err == nil {
			err = l.store.persist(l.file, paths, l.together, l.since)
		}
	}
	if err != nil {
		l.broken = true
		return err
	}
	l.synced, l.pending, l.size, l.unsure = l.end, nil, 0, false
	return nil
}

// Read returns packed events.
func (l *log) Read(_ context.Context, from dsh.Seq, limit int) ([]dsh.Event, error) {
	if events := l.takeLoaded(); from == 0 && limit == 0 && events != nil {
		return events, nil
	}
	events, err := l.read(from, limit)
	if err != nil {
		return nil, fmt.Errorf("jsonl: read %s: %w", l.header.ID, err)
	}
	return events, nil
}

// takeLoaded returns what was loaded, once, unless there are events since.
func (l *log) takeLoaded() []dsh.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.loaded
	l.loaded = nil
	return events
}

// Close gives the log up. What was created and never appended to leaves no
// trace.
func (l *log) Close() error {
	l.own.Lock()
	defer l.own.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	l.store.forget(l)
	var err error
	if l.file != nil {
		err = errors.Join(l.restore(), l.file.Close())
	}
	if l.held != nil {
		err = errors.Join(err, l.held.release())
	}
	l.pending = nil
	if err != nil {
		return fmt.Errorf("jsonl: close %s: %w", l.header.ID, err)
	}
	return nil
}

// materialise makes the log's file, with its header and the first unit. It gets
// its name when both are in it; from then on the log exists. All of it becomes
// durable with the first sync.
func (l *log) materialise(unit []byte) error {
	dir, isNew, err := l.store.makeDir(&l.header)
	if err != nil {
		return err
	}
	if isNew && l.held != nil { // somebody removed the directory, and the lock
		_ = l.held.close()
		l.held = nil
	}
	if l.held == nil {
		if l.held, err = acquire(dir, l.header.ID, l.epoch); err != nil {
			return err
		}
	}
	if !isNew {
		if err := l.store.makeRoom(l.path); err != nil {
			return err
		}
	}
	header := l.box.wrap(nil, append(l.header.AppendJSON(nil), '\n'))
	f, err := l.store.publish(l.path, slices.Concat(header, unit))
	if errors.Is(err, session.ErrExists) { // then it is not ours
		err = errors.Join(err, l.held.release())
		l.held = nil
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.end = int64(len(header))
	l.mu.Unlock()
	l.file, l.pending, l.size, l.unsure = f, [][]byte{header}, len(header), true
	l.together = l.store.reaches(f.Stat())
	l.store.forget(l)
	return nil
}

// exists reports whether err is that of a name which is taken.
func exists(err error) bool { return errors.Is(err, fs.ErrExist) }
