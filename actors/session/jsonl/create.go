package jsonl

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// makeDir makes the directory of the log with header h, and returns its path and
// whether it is new. Its name is not durable (see paths).
func (s *Store) makeDir(h *dsh.SessionHeader) (dir string, isNew bool, err error) {
	if dir, err = s.dirOf(h); err != nil {
		return "", false, err
	}
	s.openRoot()
	err = s.disk.mkdir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.makeAbove(dir); err == nil {
			err = s.disk.mkdir(dir)
		}
	}
	if err != nil && !exists(err) {
		return "", false, err
	}
	return dir, err == nil, nil
}

// makeAbove makes what there is not of the directories above dir.
func (s *Store) makeAbove(dir string) error {
	above := filepath.Dir(dir)
	if _, err := os.Stat(above); err == nil || above == dir {
		return err
	}
	if err := s.makeAbove(above); err != nil {
		return err
	}
	if err := s.disk.mkdir(above); err != nil {
		if exists(err) { // somebody else made it meanwhile
			err = nil
		}
		return err
	}
	s.openRoot()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.settled, above)
	if len(above) <= len(s.root) {
		s.aboveRoot = append(s.aboveRoot, filepath.Dir(above))
	}
	return nil
}

// paths returns the directories that hold the names on the path to the log in
// dir, as far as they may not be durable.
func (s *Store) paths(dir string) []string {
	project := filepath.Dir(dir)
	dirs := []string{dir, project}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled[project] {
		return dirs
	}
	return append(append(dirs, s.root), s.aboveRoot...)
}

// persist makes a file durable together with what else is to be just now, and
// also what paths returned. A file of nil leaves it at these. since is how many
// rounds of the syncer had failed before anything of it was written.
func (s *Store) persist(f file, paths []string, together bool, since int64) error {
	it := syncing{files: len(paths), together: together, since: since}
	if f != nil {
		it.alone = f.Sync
		it.files++
	}
	if len(paths) > 0 {
		it.alone = func() error { return s.syncAlone(f, paths) }
	}
	err := s.syncer.sync(it)
	if err == nil && len(paths) > 2 {
		s.mu.Lock()
		s.settled[paths[1]] = true
		s.mu.Unlock()
	}
	return err
}

func (s *Store) syncAlone(f file, dirs []string) error {
	if f != nil {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	for _, dir := range dirs {
		if err := s.disk.syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// publish makes a file that holds data, all of it before the file has its name.
// Neither is durable. The caller has the lock.
func (s *Store) publish(path string, data []byte) (_ file, err error) {
	temporary := temporaryName(path)
	f, err := s.disk.create(temporary)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.disk.remove(temporary) // who opens the log next tries again
			_ = f.Close()
		}
	}()
	if err := writeAt(f, data, 0); err != nil {
		return nil, err
	}
	if err := s.disk.claim(temporary, path); exists(err) {
		return nil, fmt.Errorf("%w: %s", session.ErrExists, path)
	} else if err != nil {
		return nil, err
	}
	return f, nil
}

// temporarySuffix ends the names of files that are not whole yet.
const temporarySuffix = ".tmp"

// temporaryName returns a name for what is to be the file at path.
func temporaryName(path string) string { return path + "." + nonce() + temporarySuffix }

// nameDurably makes the name of a log durable, and the path to it.
func (s *Store) nameDurably(path string) error {
	dir := filepath.Dir(path)
	return s.persist(nil, s.paths(dir), s.reaches(os.Stat(dir)), s.syncer.failures.Load())
}

// syncDir makes the names in a directory durable, together with what else is
// to be just now.
func (s *Store) syncDir(dir string) error {
	return s.persist(nil, []string{dir}, s.reaches(os.Stat(dir)), s.syncer.failures.Load())
}

// sweep removes what a crash left of making the log at path. The caller has the
// lock.
func (s *Store) sweep(path string) {
	left, err := filepath.Glob(escapeGlob(path) + ".*" + temporarySuffix)
	if err != nil {
		return // no harm done
	}
	for _, name := range left {
		_ = s.disk.remove(name)
	}
}

// makeRoom makes room for the log at path: a stillborn one is removed. The caller
// has the lock.
func (s *Store) makeRoom(path string) error {
	s.sweep(path)
	if !stillborn(path, s.box) {
		return nil
	}
	return s.disk.remove(path)
}

// escapeGlob makes a pattern that matches path and nothing else.
func escapeGlob(path string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func nonce() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
