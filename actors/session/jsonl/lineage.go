package jsonl

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

var _ session.Lineage = (*Store)(nil)

// lineage remembers the parents that headers name, which never change, so that
// only logs that are new are looked into. The zero value remembers nothing.
type lineage struct {
	mu       sync.Mutex
	projects map[string]*project // by name
}

// project is what is known of a project's directory.
//
// Invariant: parents and open together hold the names that the directory had
// when it was read.
type project struct {
	changed time.Time // of the directory, when it was read; zero if it may have changed since
	parents map[string]dsh.SessionID
	// open is names whose header is not known, or that have none yet, and when
	// something was last made in them; zero if nobody looked.
	open map[string]time.Time
}

// settledAfter is how much older than the look a change must be for a later
// one to show in the directory's time, on any file system.
const settledAfter = 2 * time.Second

// clockError is how far clocks may have been put back between a session and a
// child of it.
const clockError = 24 * time.Hour

// Children yields the headers of the logs whose parent is a session, oldest
// first. A header is read once, and not at all as long as nobody asks for the
// children of a session that is about as old: directories in which nothing was
// made since cannot be its children's. A project in which no session was added
// costs one look at its directory's time.
func (s *Store) Children(ctx context.Context, parent dsh.SessionID) iter.Seq2[dsh.SessionHeader, error] {
	return func(yield func(dsh.SessionHeader, error) bool) {
		headers, err := s.childrenOf(ctx, parent)
		for _, h := range headers {
			if !yield(h, nil) {
				return
			}
		}
		if err != nil {
			yield(dsh.SessionHeader{}, err)
		}
	}
}

func (s *Store) childrenOf(ctx context.Context, parent dsh.SessionID) ([]dsh.SessionHeader, error) {
	s.lineage.mu.Lock()
	defer s.lineage.mu.Unlock()
	if err := s.learn(ctx, s.bornBefore(parent)); err != nil {
		return nil, err
	}
	var headers []dsh.SessionHeader
	for name, p := range s.lineage.projects {
		for dir, named := range p.parents {
			if named != parent {
				continue
			}
			if h, ok, err := s.listed(filepath.Join(s.root, name, dir)); err == nil && ok && h.ParentSession == parent {
				headers = append(headers, h)
			}
		}
	}
	slices.SortFunc(headers, func(a, b dsh.SessionHeader) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return headers, nil
}

// bornBefore returns when no child of a session can have been there yet; the
// zero time if that is not known.
func (s *Store) bornBefore(id dsh.SessionID) time.Time {
	path, err := s.find(id)
	if err != nil || path == "" {
		return time.Time{}
	}
	h, err := s.peek(path)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(h.CreatedAt).Add(-clockError)
}

// learn brings the lineage up to date with what was made since a time.
func (s *Store) learn(ctx context.Context, since time.Time) error {
	entries, err := os.ReadDir(s.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	known := s.lineage.projects
	s.lineage.projects = make(map[string]*project, len(entries))
	for _, e := range entries {
		p := known[e.Name()]
		if p == nil {
			p = &project{parents: map[string]dsh.SessionID{}}
		}
		s.lineage.projects[e.Name()] = p
		if err := s.learnProject(ctx, filepath.Join(s.root, e.Name()), p, since); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) learnProject(ctx context.Context, dir string, p *project, since time.Time) error {
	now := time.Now()
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return nil // whoever lists is told
	}
	if p.changed.IsZero() || !info.ModTime().Equal(p.changed) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil
		}
		parents, open := p.parents, p.open
		p.parents, p.open = make(map[string]dsh.SessionID, len(entries)), map[string]time.Time{}
		for _, e := range entries {
			if parent, ok := parents[e.Name()]; ok {
				p.parents[e.Name()] = parent
			} else {
				p.open[e.Name()] = open[e.Name()]
			}
		}
		p.changed = time.Time{}
		if now.Sub(info.ModTime()) > settledAfter {
			p.changed = info.ModTime()
		}
	}
	for name, made := range p.open {
		if err := ctx.Err(); err != nil {
			return err
		}
		if made.IsZero() {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
				made = info.ModTime()
			}
		}
		if !made.IsZero() && made.Before(since) {
			p.open[name] = made
			continue
		}
		if h, ok, err := s.listed(filepath.Join(dir, name)); err == nil && ok {
			p.parents[name] = h.ParentSession
			delete(p.open, name)
		} else {
			p.open[name] = time.Time{} // its log may be on its way
		}
	}
	return nil
}
