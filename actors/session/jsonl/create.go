package jsonl

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// makeDir makes the directory of the log with header h and returns its path.
// Names above it are durable then.
func (s *Store) makeDir(h *dsh.SessionHeader) (string, error) {
	dir, err := s.dirOf(h)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(s.root, 0o700); err != nil {
		return "", err
	}
	for _, d := range []string{filepath.Dir(dir), dir} {
		if _, err := os.Stat(d); err == nil {
			continue
		}
		if err := s.disk.mkdir(d); err != nil {
			return "", err
		}
		if err := s.syncDir(filepath.Dir(d)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// publish makes a file that holds data, all of it durable before the file has
// its name. The name is not (see nameDurably). The caller has the lock.
func (s *Store) publish(path string, data []byte) (_ file, err error) {
	s.sweep(path)
	temporary := temporaryName(path)
	f, err := s.disk.create(temporary)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = s.disk.remove(temporary) // who opens the log next tries again
		if err != nil {
			_ = f.Close()
		}
	}()
	if err := writeAt(f, data, 0); err != nil {
		return nil, err
	}
	if err := s.syncer.sync(f.Sync, s.reaches(f.Stat())); err != nil {
		return nil, err
	}
	if err := s.disk.link(temporary, path); exists(err) {
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

// nameDurably makes the name of a log durable.
func (s *Store) nameDurably(path string) error { return s.syncDir(filepath.Dir(path)) }

// syncDir makes the names in a directory durable, together with what else is
// to be just now.
func (s *Store) syncDir(dir string) error {
	return s.syncer.sync(func() error { return s.disk.syncDir(dir) }, s.reaches(os.Stat(dir)))
}

// sweep removes what a crash left of making the log at path.
func (s *Store) sweep(path string) {
	left, err := filepath.Glob(escapeGlob(path) + ".*" + temporarySuffix)
	if err != nil {
		return // no harm done
	}
	for _, name := range left {
		_ = s.disk.remove(name)
	}
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
