package toolset

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// A glob is a pattern for paths. One without a slash is for names at any
// depth, as in .gitignore; the empty one fits everything.
type glob string

// check returns what is wrong with the pattern for the model.
func (g glob) check() error {
	if g != "" && !doublestar.ValidatePattern(string(g)) {
		return badArgs("%q is not a valid glob. Use * and ? within a name, ** for any directories, [abc] and {a,b}.", string(g))
	}
	return nil
}

// fits reports whether the glob fits a path relative to where it starts.
func (g glob) fits(rel string) bool {
	if g == "" {
		return true
	}
	if !strings.Contains(string(g), "/") {
		rel = path.Base(rel)
	}
	return doublestar.MatchUnvalidated(strings.TrimPrefix(string(g), "./"), rel)
}
