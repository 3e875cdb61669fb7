package jsonl_test

import (
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
)

var encodings = map[string]jsonl.Options{
	"zstd": {},
	"raw":  {Encoding: jsonl.Raw, SyncEach: true},
}

func open(t testing.TB, dir string, opts jsonl.Options) *jsonl.Store {
	t.Helper()
	s, err := jsonl.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	for name, opts := range encodings {
		t.Run(name, func(t *testing.T) {
			sessiontest.Run(t, func(t *testing.T) session.Store { return open(t, t.TempDir(), opts) })
			sessiontest.RunReopened(t, func(t *testing.T, dir string) session.Store { return open(t, dir, opts) })
		})
	}
}
