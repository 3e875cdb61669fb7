package torture

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// forgetful is a store that keeps what was not synced in memory, so that a
// kill loses what a power failure may lose. It notes how long a log is after
// each sync; whoever killed the process may cut off what is behind that.
type forgetful struct {
	session.Store
	plan plan
}

func (f forgetful) Create(ctx context.Context, h dsh.SessionHeader) (session.Log, error) {
	return f.forget(f.Store.Create(ctx, h))
}

func (f forgetful) Open(ctx context.Context, id dsh.SessionID) (session.Log, error) {
	return f.forget(f.Store.Open(ctx, id))
}

func (f forgetful) forget(log session.Log, err error) (session.Log, error) {
	if err != nil {
		return nil, err
	}
	return &forgetfulLog{Log: log, plan: f.plan}, nil
}

// forgetfulLog is not read behind its first append.
type forgetfulLog struct {
	session.Log
	plan plan

	mu       sync.Mutex
	unsynced []dsh.Event
}

func (l *forgetfulLog) Append(_ context.Context, _ session.Fence, events []dsh.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsynced = append(l.unsynced, events...)
	return nil
}

func (l *forgetfulLog) Sync(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := session.Extend(ctx, l.Log, l.unsynced); err != nil {
		return err
	}
	l.unsynced = nil
	if err := l.Log.Sync(ctx); err != nil {
		return err
	}
	return l.plan.keep(l.Header().ID)
}

// file returns the file of a session's log, or nothing if there is none.
func (p plan) file(id dsh.SessionID) string {
	found, err := filepath.Glob(filepath.Join(p.Dir, "logs", "*", string(id), "session.jsonl*"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0]
}

// ids returns the sessions whose logs have a file.
func (p plan) ids() []dsh.SessionID {
	dirs, _ := filepath.Glob(filepath.Join(p.Dir, "logs", "*", "*", "session.jsonl*")) // the pattern is right
	ids := make([]dsh.SessionID, len(dirs))
	for i, file := range dirs {
		ids[i] = dsh.SessionID(filepath.Base(filepath.Dir(file)))
	}
	return ids
}

func (p plan) lengths(id dsh.SessionID) string { return filepath.Join(p.Dir, "lengths-"+string(id)) }

// keep notes that a log is durable as it is.
func (p plan) keep(id dsh.SessionID) error {
	info, err := os.Stat(p.file(id))
	if err != nil {
		return err
	}
	return mark(p.lengths(id), strconv.FormatInt(info.Size(), 10))
}

// tear cuts off some of what is not durable of a log, and returns whether there
// was anything. Of a log that was never synced nothing need be left.
func (p plan) tear(id dsh.SessionID, rng *rand.Rand) (bool, error) {
	file := p.file(id)
	info, err := os.Stat(file)
	if err != nil || !p.Forgetful || info.Size() == 0 {
		return false, err
	}
	lengths, err := linesOf(p.lengths(id))
	if err != nil {
		return false, err
	}
	if len(lengths) == 0 {
		return true, unmake(file, info.Size(), rng)
	}
	durable, err := strconv.ParseInt(lengths[len(lengths)-1], 10, 64)
	if err != nil || info.Size() <= durable {
		return false, err
	}
	return true, os.Truncate(file, durable+rng.Int64N(info.Size()-durable))
}

// unmake does to a log that was never synced what a power failure may do: the
// directory, the name or the content is lost, some of that or all.
func unmake(file string, size int64, rng *rand.Rand) error {
	switch rng.IntN(5) {
	case 0:
		return os.RemoveAll(filepath.Dir(file))
	case 1:
		return os.Remove(file)
	case 2:
		return os.Truncate(file, 0)
	case 3:
		return os.Truncate(file, rng.Int64N(size))
	}
	from := rng.Int64N(size) // the length was written, and not all of the rest
	return errors.Join(os.Truncate(file, from), os.Truncate(file, max(size, from+64)))
}

// neverSynced reports whether no sync of a log was noted.
func (p plan) neverSynced(id dsh.SessionID) bool {
	lengths, err := linesOf(p.lengths(id))
	return err == nil && len(lengths) == 0
}
