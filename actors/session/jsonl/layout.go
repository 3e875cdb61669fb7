package jsonl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Names inside a root: <project>/<session>/<log>.
const (
	noCWD    = "_no-cwd"
	rawName  = "session.jsonl"
	zstdName = "session.jsonl.zstd"
	lockName = "session.lock"
)

// laterName matches the logs of later formats, which have their version in the
// name.
var laterName = regexp.MustCompile(`^session\.v([0-9]+)\.jsonl(\.zstd)?$`)

// projectKey returns the directory name of a working directory. Long paths may
// share one: identity is the log's header.
func projectKey(cwd string) (string, error) {
	const most = 251
	if cwd == "" {
		return "", errors.New("empty working directory")
	}
	var key []byte
	inSeparators := false
	for _, u := range utf16.Encode([]rune(cwd)) {
		separator := u == '/' || u == '\\' || u == ':'
		switch {
		case !separator:
			key = appendUnit(key, u)
		case !inSeparators:
			key = append(key, '-')
		}
		inSeparators = separator
	}
	name := strings.TrimLeft(string(key), "-")
	if name == "" {
		name = "root"
	}
	return "--" + name[:min(len(name), most)] + "--", nil
}

// encodeSegment returns the directory name of a session. It can be reversed.
func encodeSegment(id dsh.SessionID) (string, error) {
	switch id {
	case "":
		return "", errors.New("empty session ID")
	case ".":
		return "~002E", nil
	case "..":
		return "~002E~002E", nil
	}
	var name []byte
	for _, u := range utf16.Encode([]rune(string(id))) {
		name = appendUnit(name, u)
	}
	return string(name), nil
}

// decodeSegment reverses encodeSegment as far as name allows.
func decodeSegment(name string) dsh.SessionID {
	var units []uint16
	for i := 0; i < len(name); i++ {
		if name[i] == '~' && i+5 <= len(name) {
			if u, err := strconv.ParseUint(name[i+1:i+5], 16, 16); err == nil {
				units = append(units, uint16(u))
				i += 4
				continue
			}
		}
		units = append(units, uint16(name[i]))
	}
	return dsh.SessionID(utf16.Decode(units))
}

func appendUnit(dst []byte, u uint16) []byte {
	switch {
	case u >= 'A' && u <= 'Z', u >= 'a' && u <= 'z', u >= '0' && u <= '9', u == '.', u == '_', u == '-':
		return append(dst, byte(u))
	}
	return fmt.Appendf(dst, "~%04X", u)
}

// dirOf returns the directory of the log with header h.
func (s *Store) dirOf(h *dsh.SessionHeader) (string, error) {
	project := noCWD
	if h.CWD != "" {
		key, err := projectKey(h.CWD)
		if err != nil {
			return "", err
		}
		project = key
	}
	segment, err := encodeSegment(h.ID)
	if err != nil {
		return "", err
	}
	return filepath.Join(s.root, project, segment), nil
}

// logIn returns the path of the log in a session's directory, or "" if there
// is none. A log that this store must not touch is an error.
func (s *Store) logIn(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	found := ""
	for _, e := range entries {
		name := e.Name()
		if m := laterName.FindStringSubmatch(name); m != nil {
			return "", laterError(filepath.Join(dir, name), m[1])
		}
		switch name {
		case s.box.name():
			found = filepath.Join(dir, name)
		case rawName, zstdName:
			return "", fmt.Errorf("%s: %w: the store keeps %s", filepath.Join(dir, name), ErrEncoding, s.box.name())
		}
	}
	return found, nil
}

// find returns the path of a session's log, or "" if there is none. Which
// project it belongs to is not known, so all are looked at.
func (s *Store) find(id dsh.SessionID) (string, error) {
	segment, err := encodeSegment(id)
	if err != nil {
		return "", err
	}
	projects, err := s.projects.in(s.root)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	found := ""
	for _, name := range projects {
		dir := filepath.Join(s.root, name, segment)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		path, err := s.logIn(dir)
		if err != nil {
			return "", err
		}
		if path != "" && found != "" && stillborn(path, s.box) {
			continue
		}
		if path != "" && found != "" && !stillborn(found, s.box) {
			return "", fmt.Errorf("%w: %s and %s are the same session", ErrCorrupt, found, path)
		}
		if path != "" {
			found = path
		}
	}
	return found, err
}

// names remembers what is in a directory. The zero value remembers nothing.
type names struct {
	mu   sync.Mutex
	dir  fs.FileInfo // when it was read; nil if it may have changed since
	list []string
}

// in returns the names in a directory, which must be the same each time.
func (n *names) in(dir string) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if n.dir != nil && os.SameFile(info, n.dir) && info.ModTime().Equal(n.dir.ModTime()) {
		return n.list, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	n.dir, n.list = nil, make([]string, len(entries))
	for i, e := range entries {
		n.list[i] = e.Name()
	}
	if now.Sub(info.ModTime()) > settledAfter {
		n.dir = info
	}
	return n.list, nil
}

// checkPlace returns why a log with header h must not be where it is.
func (s *Store) checkPlace(path string, h *dsh.SessionHeader) error {
	dir, err := s.dirOf(h)
	if err != nil {
		return damage(path, 1, err)
	}
	if is := filepath.Dir(path); filepath.Clean(dir) != filepath.Clean(is) {
		return damage(path, 1, fmt.Errorf("the header of session %q belongs into %s", h.ID, dir))
	}
	return nil
}

// Detect returns the encoding of the logs in dir: that of the first that it
// finds, Zstd if there is none.
func Detect(dir string) Encoding {
	projects, _ := os.ReadDir(dir) // what cannot be read is told by whoever lists
	for _, p := range projects {
		sessions, _ := os.ReadDir(filepath.Join(dir, p.Name()))
		for _, s := range sessions {
			for _, e := range []Encoding{Zstd, Raw} {
				if _, err := os.Stat(filepath.Join(dir, p.Name(), s.Name(), boxOf(e).name())); err == nil {
					return e
				}
			}
		}
	}
	return Zstd
}
