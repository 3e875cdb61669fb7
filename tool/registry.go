package tool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// A Registry is one scope of tools. A scope sees its own tools and those of
// the scopes above it; its own come first. The zero value is an empty scope
// with nothing above it. Methods are safe for concurrent use.
//
// Agents do not read a Registry but a [Set] that it was at one moment, so a
// change is seen by the steps that begin after it.
type Registry struct {
	parent *Registry
	filter *filter               // of what is seen of parent; nil shows all
	mu     sync.Mutex            // held by whoever changes own or snap
	own    atomic.Pointer[scope] // nil when empty; replaced, never changed
	snap   atomic.Pointer[Set]
}

// NewFiltered returns an empty scope below parent that sees of it only the
// tools that allow names, without those that deny names; see [Set.Filter]. A
// name that parent has no tool for is an error. Tools that come to parent later
// are seen if the filter lets them through.
func NewFiltered(parent *Registry, allow, deny []string) (*Registry, error) {
	f := &filter{allow: slices.Clone(allow), deny: slices.Clone(deny)}
	if _, err := parent.Snapshot().Filter(allow, deny); err != nil {
		return nil, err
	}
	return &Registry{parent: parent, filter: f}, nil
}

// filter narrows what a scope sees of the one above it. It remembers its last
// result, so that a Set stays the same pointer while what is above does.
type filter struct {
	allow, deny []string
	last        atomic.Pointer[filtered]
}

type filtered struct{ of, set *Set }

func (f *filter) apply(s *Set) *Set {
	if last := f.last.Load(); last != nil && last.of == s {
		return last.set
	}
	made := &filtered{of: s, set: s.narrow(f.allow, f.deny)}
	f.last.Store(made)
	return made.set
}

// scope is the tools that one Registry holds itself. Its address stands for
// its content.
type scope struct{ entries map[string]*Entry }

// NewRegistry returns an empty scope below parent, or one with nothing above
// it if parent is nil.
func NewRegistry(parent *Registry) *Registry { return &Registry{parent: parent} }

// Register adds tools to the scope, all or none. A name that the scope has
// already is an error; one that a scope above has is shadowed. A name must be
// 1 to 64 of the characters a-z, A-Z, 0-9, _ and -; the parameters must be a
// JSON Schema of type object. The error tells every problem of every tool.
//
// The optional interfaces of a tool are looked at here: Schema, Mode and
// Timeout are asked once.
func (r *Registry) Register(tools ...Tool) error {
	added := make(map[string]*Entry, len(tools))
	var problems []error
	for i, t := range tools {
		e, err := compile(t)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("tool: register %s: %w", nameOf(e, i), err))
		case added[e.schema.Name] != nil:
			problems = append(problems, fmt.Errorf("tool: register %q: the name is given twice; rename one of them", e.schema.Name))
		default:
			added[e.schema.Name] = e
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	entries := map[string]*Entry{}
	if own := r.own.Load(); own != nil {
		entries = maps.Clone(own.entries)
	}
	for name, e := range added {
		if entries[name] != nil {
			problems = append(problems, fmt.Errorf("tool: register %q: the scope has a tool of this name; unregister it first, or register in a scope below", name))
		}
		entries[name] = e
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	if len(added) > 0 {
		r.own.Store(&scope{entries})
	}
	return nil
}

// nameOf names a tool in an error, by its place if it has no name.
func nameOf(e *Entry, i int) string {
	if e == nil || e.schema.Name == "" {
		return fmt.Sprintf("tool %d", i)
	}
	return fmt.Sprintf("%q", e.schema.Name)
}

// Unregister removes the scope's own tools of these names and returns how many
// there were. Calls that run are not disturbed.
func (r *Registry) Unregister(names ...string) (removed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.own.Load()
	if own == nil {
		return 0
	}
	entries := maps.Clone(own.entries)
	for _, name := range names {
		delete(entries, name)
	}
	switch removed = len(own.entries) - len(entries); {
	case len(entries) == 0:
		r.own.Store(nil)
		r.snap.Store(nil)
	case removed > 0:
		r.own.Store(&scope{entries})
	}
	return removed
}

// Snapshot returns what the scope sees now. It is the same pointer as before
// unless this scope or one above it changed; a scope without tools of its own
// shares the Set of the one above it.
func (r *Registry) Snapshot() *Set {
	own := r.own.Load()
	if own == nil {
		return r.above()
	}
	if s := r.snap.Load(); s != nil && s.own == own && s.above == r.above() {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.build()
}

// build makes the snapshot. Holding mu over the look at what is above keeps a
// slow goroutine from publishing an older Set over a newer one.
func (r *Registry) build() *Set {
	own, above := r.own.Load(), r.above()
	if own == nil {
		return above
	}
	if s := r.snap.Load(); s != nil && s.own == own && s.above == above {
		return s
	}
	entries := make(map[string]*Entry, len(above.entries)+len(own.entries))
	maps.Copy(entries, above.entries)
	maps.Copy(entries, own.entries)
	s := newSet(entries)
	s.own, s.above = own, above
	r.snap.Store(s)
	return s
}

func (r *Registry) above() *Set {
	switch {
	case r.parent == nil:
		return noTools
	case r.filter != nil:
		return r.filter.apply(r.parent.Snapshot())
	}
	return r.parent.Snapshot()
}
