package conformance

import (
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
		logs := 0
		for _, c := range cases {
			var roots []string
			run(t, c, func() session.Store {
				root := t.TempDir()
				roots = append(roots, root)
				s, err := jsonl.Open(root, jsonl.Options{Encoding: jsonl.Raw, SyncEach: true})
				if err != nil {
					t.Fatal(err)
				}
				return s
			})
			for _, root := range roots {
				left, _ := filepath.Glob(filepath.Join(root, "*", "*", "session.jsonl"))
				logs += len(left)
			}
		}
		if logs < len(cases) {
			t.Errorf("%d scenarios left %d logs", len(cases), logs)
		}
		t.Logf("%d scenarios, %d logs", len(cases), logs)
	}
}
