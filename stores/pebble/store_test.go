package pebble

import (
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
)

func openStore(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	sessiontest.Run(t, func(t *testing.T) session.Store { return openStore(t, t.TempDir()) })
	sessiontest.RunReopened(t, func(t *testing.T, dir string) session.Store { return openStore(t, dir) })
}
