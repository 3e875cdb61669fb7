package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// lock is the ownership of a log: a lock on a file beside it, which the system
// gives up when its process ends. The file itself stays: to remove it safely
// would need more than it is worth.
type lock struct {
	held  *flock.Flock
	epoch session.Epoch
}

// note is what the file holds. The epoch of the last owner stays in it.
type note struct {
	*Holder
	Epoch session.Epoch `json:"epoch,omitempty"`
}

// acquire takes the log in dir, or says in an [InUseError] who has it. An epoch
// of 0 means the next.
func acquire(dir string, id dsh.SessionID, epoch session.Epoch) (*lock, error) {
	path := filepath.Join(dir, lockName)
	held := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	ok, err := held.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if !ok {
		return nil, &InUseError{ID: id, Holder: readNote(path).holder()}
	}
	if epoch == 0 {
		epoch = nextEpoch(readNote(path).Epoch)
	}
	us := ourselves()
	writeNote(path, note{Holder: &us, Epoch: epoch})
	return &lock{held, epoch}, nil
}

// nextEpoch returns one that is larger than last, also if a crash has lost that:
// it is a time in milliseconds.
func nextEpoch(last session.Epoch) session.Epoch {
	return max(last+1, session.Epoch(time.Now().UnixMilli()))
}

// readNote returns what the file at path says; nothing if that cannot be told.
func readNote(path string) (n note) {
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &n) != nil {
		return note{}
	}
	return n
}

// owner returns the process that owns the log in dir, nil if nobody does: the
// lock says whether, and the note beside it who. Who asks is not taken for an
// owner, but for an instant if one has crashed.
func owner(dir string) (*Holder, error) {
	path := filepath.Join(dir, lockName)
	last := readNote(path)
	if last.Holder == nil && last.Epoch != 0 {
		return nil, nil // the last owner has given it up
	}
	held := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := held.TryRLock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case free:
		return nil, held.Close()
	}
	h := last.holder()
	return &h, nil
}

func (n note) holder() Holder {
	if n.Holder == nil {
		return Holder{}
	}
	return *n.Holder
}

// writeNote says who holds the lock at path. That is a courtesy; that it is held
// is not. A longer note before it is made blank, not cut off: ext4 writes a file
// that was cut to the disk when it is closed, and this one need not be there.
func writeNote(path string, n note) {
	data, err := json.Marshal(n)
	if err != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	if blank := info.Size() - int64(len(data)); blank > maxNote {
		_ = f.Truncate(int64(len(data)))
	} else if blank > 0 {
		data = append(data, bytes.Repeat([]byte{' '}, int(blank))...)
	}
	_ = writeAt(f, data, 0)
}

// maxNote is more than a note is long.
const maxNote = 4 << 10

// release gives the log up.
func (l *lock) release() error {
	writeNote(l.held.Path(), note{Epoch: l.epoch}) // nobody holds it any more
	return l.close()
}

// close gives the log up, and leaves the note as it is.
func (l *lock) close() error { return l.held.Close() }

// ourselves is this process as a holder.
func ourselves() Holder {
	return Holder{PID: os.Getpid(), Host: hostname(), Since: time.Now().UTC().Truncate(time.Millisecond)}
}

var hostname = sync.OnceValue(func() string {
	name, _ := os.Hostname() // a nameless one is told as that
	return name
})
