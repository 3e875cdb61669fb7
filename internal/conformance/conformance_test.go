package conformance

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
)

var dir = flag.String("dir", "", "a folder with scenarios/ and traces/ to run instead of our own")

// drive plays a scenario inside a bubble and returns its trace. It is nil
// until the runtime can be driven.
var drive func(t *testing.T, s *Scenario) (map[string]any, error)

// mostShown is how many differences of a scenario are listed.
const mostShown = 10

// TestConformance plays every scenario and compares it with its trace. The
// last line that it prints is the counts.
func TestConformance(t *testing.T) {
	if drive == nil {
		t.Skip("nothing drives the runtime yet")
	}
	dirs := []string{"testdata", "testdata/subagents"}
	if *dir != "" {
		dirs = []string{*dir}
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
			found, deviations := run(t, c)
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

// run plays one case and returns what is wrong with it, a line each.
func run(t *testing.T, c Case) (found []string, deviations int) {
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
		var got map[string]any
		synctest.Test(t, func(t *testing.T) { got, err = drive(t, c.Scenario) })
		switch {
		case err != nil:
			found = []string{err.Error()}
		case want == nil:
			found = []string{"there is no trace to compare with"}
		default:
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

// problems returns the errors that err joins.
func problems(err error) []error {
	switch joined := err.(type) { //nolint:errorlint // Load joins them itself.
	case nil:
		return nil
	case interface{ Unwrap() []error }:
		return joined.Unwrap()
	}
	return []error{err}
}
