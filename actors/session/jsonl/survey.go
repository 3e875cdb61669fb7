package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A Found is something in a root that is a log, or looks like one.
type Found struct {
	// ID is what the header says or, if that cannot be read, the place.
	ID dsh.SessionID
	// Path is the file, or a directory that holds no log but what is left of
	// making one, or that cannot be read.
	Path string
}

// find is a Found with what its place says.
type find struct {
	Found
	box   box    // nil if there is no log that this build reads
	later string // version in the name of a log of a later format
	stray []string
	err   error // why the place cannot be looked at
}

// dir returns the directory that was found or holds what was.
func (f *find) dir() string {
	if f.box == nil && f.later == "" {
		return f.Path
	}
	return filepath.Dir(f.Path)
}

// leftover reports whether there is no log.
func (f *find) leftover() bool { return f.box == nil && f.later == "" && f.err == nil }

// deepest is how many directories below the root are looked into. Logs belong
// into the second.
const deepest = 4

// Survey returns everything in the root that is a log or looks like one, also
// where no log belongs and what List passes over or refuses. Of each it reads
// the header and no more. Backups are not among it.
func (s *Store) Survey(ctx context.Context) ([]Found, error) {
	finds, err := s.survey(ctx)
	found := make([]Found, len(finds))
	for i := range finds {
		found[i] = finds[i].Found
	}
	if err != nil {
		return found, fmt.Errorf("jsonl: survey: %w", err)
	}
	return found, nil
}

func (s *Store) survey(ctx context.Context) ([]find, error) {
	if _, err := os.Stat(s.root); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var finds []find
	err := s.walk(ctx, s.root, 0, &finds)
	for i := range finds {
		finds[i].ID = s.named(&finds[i])
	}
	return finds, err
}

// walk looks into dir, which is so many directories below the root.
func (s *Store) walk(ctx context.Context, dir string, depth int, finds *[]find) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if depth == 0 {
			return err
		}
		*finds = append(*finds, find{Found: Found{Path: dir}, err: err})
		return nil
	}
	first := len(*finds)
	var stray []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch b, later := logName(e.Name(), depth); {
		case e.IsDir() || isDir(path):
			continue
		case b != nil || later != "":
			*finds = append(*finds, find{Found: Found{Path: path}, box: b, later: later})
		case isStray(e.Name()):
			stray = append(stray, path)
		}
	}
	switch here := (*finds)[first:]; {
	case len(stray) > 0 && len(here) == 0:
		*finds = append(*finds, find{Found: Found{Path: dir}, stray: stray})
	case len(stray) > 0:
		here[0].stray = stray
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if depth < deepest && (e.IsDir() || isDir(path)) {
			if err := s.walk(ctx, path, depth+1, finds); err != nil {
				return err
			}
		}
	}
	return nil
}

// logName says what log a file of this name is, in a directory so many below
// the root: one of this format, or of which later one. Above the directories of
// sessions no file with the name of a log belongs, whatever its name.
func logName(name string, depth int) (b box, later string) {
	if m := laterName.FindStringSubmatch(name); m != nil {
		return nil, m[1]
	}
	flat := depth < 2 && strings.Contains(name, ".jsonl") && !isStray(name)
	switch {
	case name == zstdName, flat && strings.HasSuffix(name, ".jsonl.zstd"):
		return zstdBox{}, ""
	case name == rawName, flat && strings.HasSuffix(name, ".jsonl"):
		return rawBox{}, ""
	}
	return nil, ""
}

// isStray reports whether a file is one that gets another name once it is whole.
func isStray(name string) bool {
	return strings.HasSuffix(name, temporarySuffix) && strings.Contains(name, rawName)
}

// named returns the ID of what was found.
func (s *Store) named(f *find) dsh.SessionID {
	if f.box != nil {
		if h, err := peekAs(f.Path, f.box); err == nil {
			return h.ID
		}
	}
	name := filepath.Base(f.Path)
	if f.box != nil || f.later != "" {
		if name == zstdName || name == rawName || f.later != "" {
			name = filepath.Base(filepath.Dir(f.Path))
		}
		name, _, _ = strings.Cut(name, ".jsonl")
	}
	return decodeSegment(name)
}

// claims returns what claims to be a session; the first of it is in its place,
// if any is.
func (s *Store) claims(ctx context.Context, id dsh.SessionID) ([]find, error) {
	all, err := s.survey(ctx)
	if err != nil {
		return nil, err
	}
	var claims []find
	for i := range all {
		if all[i].ID != id || len(claims) > 0 && all[i].leftover() {
			continue
		}
		if len(claims) == 1 && claims[0].leftover() {
			claims = claims[:0] // beside a log it does not count
		}
		claims = append(claims, all[i])
		if n := len(claims) - 1; n > 0 && s.box == all[i].box && s.inPlace(&all[i]) {
			claims[0], claims[n] = claims[n], claims[0]
		}
	}
	if len(claims) == 0 {
		return nil, session.ErrNotFound
	}
	return claims, nil
}

// inPlace reports whether a log is where its header says.
func (s *Store) inPlace(f *find) bool {
	h, err := peekAs(f.Path, f.box)
	return err == nil && s.checkPlace(f.Path, &h) == nil
}
