package jsonl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// headerSize is how much of a log is read for its header at first.
const headerSize = 8 << 10

// listed returns the header of the log in a session's directory; ok is false
// if there is nothing to list.
func (s *Store) listed(dir string) (h dsh.SessionHeader, ok bool, err error) {
	if !isDir(dir) {
		if strings.Contains(dir[len(s.root):], ".jsonl") {
			return h, false, damage(dir, 0, errors.New("a log must be in a directory of its own"))
		}
		return h, false, nil
	}
	path, err := s.logIn(dir)
	if err != nil || path == "" {
		return h, false, err
	}
	h, err = s.peek(path)
	switch {
	case errors.Is(err, errNoHeader):
		return h, false, nil
	case err != nil:
		return h, false, err
	}
	return h, true, s.checkPlace(path, &h)
}

// peek reads a log's header and, if it can, no more.
func (s *Store) peek(path string) (dsh.SessionHeader, error) { return peekAs(path, s.box) }

// peekAs is peek for a log that lies in b.
func peekAs(path string, b box) (h dsh.SessionHeader, err error) {
	f, err := os.Open(path)
	if err != nil {
		return h, err
	}
	defer f.Close()
	data := make([]byte, headerSize)
	n, err := io.ReadFull(f, data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return h, err
	}
	h, _, err = readHeader(path, b, data[:n])
	if !errors.Is(err, errTorn) || n < len(data) {
		return h, err
	}
	if data, err = os.ReadFile(path); err != nil {
		return h, fmt.Errorf("header: %w", err)
	}
	h, _, err = readHeader(path, b, data)
	return h, err
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Stat returns what the file system says of the log with this header, as List
// yields it: when it was last written, say. Its events are not read.
func (s *Store) Stat(h *dsh.SessionHeader) (fs.FileInfo, error) {
	dir, err := s.dirOf(h)
	if err != nil {
		return nil, fmt.Errorf("jsonl: stat %s: %w", h.ID, err)
	}
	info, err := os.Stat(filepath.Join(dir, s.box.name()))
	if err != nil {
		return nil, fmt.Errorf("jsonl: stat %s: %w", h.ID, err)
	}
	return info, nil
}
