package tool

import (
	"cmp"
	"slices"
	"strings"
)

// nearest is how many names Near returns at most.
const nearest = 3

// Near returns up to three of names that resemble name, the nearest first. It
// is for messages about an unknown name.
func Near(name string, names []string) []string {
	type scored struct {
		name     string
		distance int
	}
	var found []scored
	want := fold(name)
	if want == "" {
		return nil
	}
	for _, n := range names {
		if d, ok := resemblance(want, n); ok {
			found = append(found, scored{n, d})
		}
	}
	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var near []string
	for _, f := range found[:min(len(found), nearest)] {
		near = append(near, f.name)
	}
	return near
}

// resemblance compares a folded name with a candidate and with each word of
// it; a smaller number is nearer.
func resemblance(want, candidate string) (distance int, ok bool) {
	whole := fold(candidate)
	distance = edits(want, whole)
	ok = distance <= max(len(want), len(whole))/3
	if len(want) >= 3 && strings.Contains(whole, want) || len(whole) >= 3 && strings.Contains(want, whole) {
		distance, ok = 1, true
	}
	for _, word := range strings.FieldsFunc(candidate, isSeparator) {
		word = fold(word)
		if d := edits(want, word); d <= min(len(want), len(word))/3 && (!ok || d+1 < distance) {
			distance, ok = d+1, true
		}
	}
	return distance, ok
}

func isSeparator(r rune) bool { return r == '_' || r == '-' || r == '.' || r == ' ' || r == '/' }

// fold drops what models get wrong without meaning it: case and separators.
// Names are compared by their first 64 bytes.
func fold(name string) string {
	if len(name) > maxName {
		name = name[:maxName]
	}
	return strings.ToLower(strings.Join(strings.FieldsFunc(name, isSeparator), ""))
}

// edits is the number of insertions, deletions, substitutions and swaps of
// neighbours between a and b.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			swap := 1
			if a[i-1] == b[j-1] {
				swap = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+swap)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
