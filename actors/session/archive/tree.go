package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// originSubagent is the origin of sessions that belong to their parent's tree.
const originSubagent = "subagent"

// Tree returns the session and all its sub-agents' in store, each behind its
// parent and children in the order in which they were made. Forks are sessions of
// their own. The error tells of logs that cannot be read, which may belong to the
// tree or not; the list is complete but for them. It is empty if the session
// itself is not there.
func Tree(ctx context.Context, store session.Store, root dsh.SessionID) ([]dsh.SessionID, error) {
	below := map[dsh.SessionID][]dsh.SessionHeader{}
	found := false
	var errs []error
	for h, err := range store.List(ctx) {
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case h.ID == root:
			found = true
		case h.Origin == originSubagent:
			below[h.ParentSession] = append(below[h.ParentSession], h)
		}
	}
	if !found {
		return nil, errors.Join(append(errs, fmt.Errorf("archive: %s: %w", root, session.ErrNotFound))...)
	}
	tree := []dsh.SessionID{root}
	seen := map[dsh.SessionID]bool{root: true}
	var walk func(parent dsh.SessionID)
	walk = func(parent dsh.SessionID) {
		children := below[parent]
		slices.SortStableFunc(children, func(a, b dsh.SessionHeader) int {
			return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
		})
		for _, h := range children {
			if !seen[h.ID] { // links that go round were not made by us
				seen[h.ID] = true
				tree = append(tree, h.ID)
				walk(h.ID)
			}
		}
	}
	walk(root)
	return tree, errors.Join(errs...)
}
