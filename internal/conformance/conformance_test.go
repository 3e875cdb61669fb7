package conformance

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/memory"
)

var dir = flag.String("dir", "", "a folder with scenarios/ and traces/ to run instead of our own")

// mostShown is how many differences of a scenario are listed.
const mostShown = 10

// TestConformance plays every scenario and compares it with its trace. The
// last line that it prints is the counts.
func TestConformance(t *testing.T) {
	dirs := []string{"testdata", "testdata/subagents"}
	if *dir != "" {
		dirs = []string{folder(*dir)}
	}
	passed, failed, deviating := 0, 0, 0
	for _, dir := range dirs {
		cases, err := Load(dir)
		for _, problem := range problems(err) {
			t.Error(problem)
			fmt.Printf("FAIL %v\n", problem)
			failed++
		}
		for _, c := range cases {
			found, deviations := run(t, c, volatile)
			deviating += deviations
			if len(found) == 0 {
				passed++
				continue
			}
			failed++
			fmt.Printf("FAIL %s: %s", c.Name, found[0])
			if more := len(found) - 1; more > 0 {
				fmt.Printf(" (and %d more)", more)
			}
			fmt.Println()
		}
	}
	fmt.Printf("%d deviations on purpose\n", deviating)
	fmt.Printf("%d passed, %d failed\n", passed, failed)
}

// A store that has to make its log durable changes the questions that the loop
// asks, and nothing that can be seen.
func TestConformanceOfDurableSessions(t *testing.T) {
	cases, err := Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		run(t, c, func() session.Store { return durable{memory.New()} })
	}
}

// durable is a store that says of itself that it needs to sync.
type durable struct{ *memory.Store }

func (durable) Volatile() bool { return false }

func volatile() session.Store { return memory.New() }

// folder returns the folder that -dir names, from here or from the top of the
// module, where go test was most likely called.
func folder(dir string) string {
	if top := filepath.Join("..", "..", dir); !filepath.IsAbs(dir) && !exists(dir) && exists(top) {
		return top
	}
	return dir
}

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// run plays one case and returns what is wrong with it, a line each.
func run(t *testing.T, c Case, newStore func() session.Store) (found []string, deviations int) {
	t.Run(c.Name, func(t *testing.T) {
		defer func() {
			if t.Failed() && len(found) == 0 {
				found = []string{"the run itself failed"}
			}
		}()
		want, n, err := Expected(c.Trace, c.Name, Deviations, "testdata/deviations")
		if err != nil {
			found = []string{err.Error()}
			t.Error(err)
			return
		}
		deviations = n
		got, err := inBubble(t, c.Scenario, newStore)
		switch {
		case err != nil:
			found = []string{err.Error()}
		case want == nil:
			found = []string{"there is no trace to compare with"}
		default:
			deviations += c.Apply(got, want)
			for _, d := range Compare(got, want, c.SchedulingSensitive) {
				found = append(found, d.String())
			}
		}
		for i, line := range found {
			if i == mostShown {
				t.Errorf("and %d more", len(found)-i)
				break
			}
			t.Error(line)
		}
	})
	return found, deviations
}

// inBubble plays a scenario in a bubble of its own. A bubble in which everything
// waits for ever panics; that is the scenario's failure and nobody else's.
func inBubble(t *testing.T, s *Scenario, newStore func() session.Store) (trace map[string]any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.Join(err, fmt.Errorf("the bubble: %v", v))
		}
	}()
	synctest.Test(t, func(*testing.T) { trace, err = Drive(s, newStore) })
	return trace, err
}
