package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
)

// What can be seen does not depend on where sessions are kept either: the same
// traces come from logs that are files. Reading and writing them does not block
// durably, so a bubble's time stands still meanwhile and synctest.Wait covers
// it; the bubble needs nothing else.
func TestConformanceOfStoredSessions(t *testing.T) {
	for _, dir := range []string{"testdata", "testdata/subagents"} {
		cases, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		for _, c := range cases {
			run(t, c, func() session.Store { return stored(t, root) })
		}
		logs, err := filepath.Glob(filepath.Join(root, "*", "*", "*", "session.jsonl"))
		if err != nil || len(logs) < len(cases) {
			t.Errorf("%d scenarios left %d logs (%v)", len(cases), len(logs), err)
		}
		t.Logf("%d scenarios, %d logs", len(cases), len(logs))
	}
}

// stored returns a new store of files under root.
func stored(t *testing.T, root string) session.Store {
	dir, err := os.MkdirTemp(root, "store")
	if err != nil {
		t.Fatal(err)
	}
	s, err := jsonl.Open(dir, jsonl.Options{Encoding: jsonl.Raw, SyncEach: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
