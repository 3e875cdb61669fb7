package jsonl

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// lock is the ownership of a log: a lock on a file beside it, which the system
// gives up when its process ends. The file itself stays: to remove it safely
// would need more than it is worth.
type lock struct{ held *flock.Flock }

// acquire takes the log in dir, or says in an [InUseError] who has it.
func acquire(dir string, id dsh.SessionID) (*lock, error) {
	path := filepath.Join(dir, lockName)
	held := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	ok, err := held.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if !ok {
		return nil, &InUseError{ID: id, Holder: holder(path)}
	}
	// Who holds the lock is a courtesy; that it is held is not.
	if note, err := json.Marshal(ourselves()); err == nil {
		_ = os.WriteFile(path, note, 0o600)
	}
	return &lock{held}, nil
}

// holder reads who holds the lock at path; zero if that cannot be told.
func holder(path string) (h Holder) {
	note, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(note, &h) != nil {
		return Holder{}
	}
	return h
}

// release gives the log up.
func (l *lock) release() error {
	_ = os.Truncate(l.held.Path(), 0) // nobody holds it any more
	return l.held.Close()
}

// ourselves is this process as a holder.
func ourselves() Holder {
	host, _ := os.Hostname() // a nameless one is told as that
	return Holder{PID: os.Getpid(), Host: host, Since: time.Now().UTC().Truncate(time.Millisecond)}
}
