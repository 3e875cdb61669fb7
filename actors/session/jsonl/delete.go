package jsonl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

var _ session.Deleter = (*Store)(nil)

// Delete removes a session for good: its log, whatever is wrong with that, the
// backups beside it, its lock and its directory. The log goes first, so that a
// crash leaves all of it or none. A log that somebody owns is left alone
// ([session.ErrInUse]), and so is one that does not lie in a directory of its own
// or of which there are several: nobody can tell what was meant.
//
// Logs that name the session as their parent are not touched.
func (s *Store) Delete(ctx context.Context, id dsh.SessionID) error {
	if err := s.remove(ctx, id); err != nil {
		return fmt.Errorf("jsonl: delete %s: %w", id, err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, id dsh.SessionID) error {
	s.mu.Lock()
	created, ok := s.created[id]
	s.mu.Unlock()
	if ok {
		return &InUseError{ID: id, Holder: created.created}
	}
	claims, err := s.claims(ctx, id)
	if err != nil {
		return err
	}
	dir := claims[0].dir()
	for i := range claims {
		if err := claims[i].err; err != nil {
			return err
		}
		if other := claims[i].dir(); other != dir {
			return fmt.Errorf("%w: %s and %s are the same session; remove one by hand", ErrCorrupt, dir, other)
		}
	}
	if !s.own(dir) {
		return fmt.Errorf("%s is not in a directory of its own; remove it by hand", claims[0].Path)
	}
	held, err := acquire(dir, id, 0)
	if err != nil {
		return err
	}
	logs, rest, err := belongings(dir)
	if err == nil {
		err = s.unlink(dir, logs)
	}
	if err != nil {
		return errors.Join(err, held.release())
	}
	return s.clear(dir, rest, held)
}

// belongings returns the files in the directory of a session: its logs, in the
// order of their names, and the rest but for the lock. A file that no store made
// is an error.
func belongings(dir string) (logs, rest []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch b, later := logName(e.Name(), deepest); {
		case e.Name() == lockName:
		case b != nil || later != "":
			logs = append(logs, path)
		case isStray(e.Name()), strings.HasPrefix(e.Name(), rawName) && strings.HasSuffix(e.Name(), backupSuffix):
			rest = append(rest, path)
		default:
			return nil, nil, fmt.Errorf("%s is no part of a session; move it away first", path)
		}
	}
	return logs, rest, nil
}

// unlink removes files of a directory, durably.
func (s *Store) unlink(dir string, files []string) error {
	for _, path := range files {
		if err := s.disk.remove(path); err != nil {
			return err
		}
	}
	return s.syncDir(dir)
}

// clear removes a directory that holds no log any more, and gives its lock up.
// It gets another name first: who comes meanwhile to make a log of the same ID
// makes a directory, and a lock, of its own.
func (s *Store) clear(dir string, rest []string, held *lock) error {
	if err := s.unlink(dir, rest); err != nil {
		return errors.Join(err, held.release())
	}
	going := temporaryName(dir)
	if err := s.disk.rename(dir, going); err != nil {
		return errors.Join(err, held.release())
	}
	return errors.Join(
		s.disk.remove(filepath.Join(going, lockName)),
		s.disk.remove(going),
		held.close(),
		s.syncDir(filepath.Dir(dir)),
	)
}
