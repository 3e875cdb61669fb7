package sessiontest

import (
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
)

// Run runs the cases that hold for every store, each on an empty one from
// open.
func Run(t *testing.T, open func(t *testing.T) session.Store) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Log(c.rule)
			c.run(t, open(t))
		})
	}
}

// RunReopened runs the cases for stores that outlive their process. Each calls
// open several times with the same empty directory; what was in the store that
// the first call gave must be in that of the next.
func RunReopened(t *testing.T, open func(t *testing.T, dir string) session.Store) {
	for _, c := range reopened {
		t.Run(c.name, func(t *testing.T) {
			t.Log(c.rule)
			dir := t.TempDir()
			c.run(t, func() session.Store { return open(t, dir) })
		})
	}
}
