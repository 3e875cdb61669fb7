package main

import (
	"maps"
	"slices"

	"github.com/dsh-actor/dsh-actor/internal/words"
)

// The words of the command line.
var (
	plural    = words.Plural
	short     = words.Duration
	count     = words.Usage
	grouped   = words.Grouped
	oneLine   = words.OneLine
	preview   = words.Arguments
	summary   = words.Result
	printable = words.Printable
)

// A colour is what a line is about.
type colour int

const (
	plain colour = iota
	faint
	good
	warn
	fail
)

// palette is the escape sequence of each colour. The zero value has none.
type palette [fail + 1]string

var colours = palette{faint: "\x1b[2m", good: "\x1b[32m", warn: "\x1b[33m", fail: "\x1b[31m"}

func (p palette) apply(c colour, text string) string {
	if p[c] == "" {
		return text
	}
	return p[c] + text + "\x1b[0m"
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
