package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tmpProject returns a directory with a kind of sub-agents and one that is
// broken.
func tmpProject(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	agents := filepath.Join(dir, ".dsh-actor", "agents")
	if err := os.MkdirAll(agents, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"scout.md": "---\nname: scout\ndescription: Looks around.\ntools: [list_files]\n---\nLook.\n",
		"bad.md":   "---\ncolour: red\n---\n",
	} {
		if err := os.WriteFile(filepath.Join(agents, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAgentsList(t *testing.T) {
	dir := tmpProject(t)
	s := newShot(t)
	s.env["DSH_ACTOR_HOME"] = t.TempDir()
	s.want(exitFailed, "agents", "list", "--cwd", dir)
	s.says(&s.out, "scout\n    Looks around.\n    tools: list_files\n")
	s.says(&s.err, `bad.md:2: there is no field "colour"`, "bad.md:3: a description is missing")
	if err := os.Remove(filepath.Join(dir, ".dsh-actor", "agents", "bad.md")); err != nil {
		t.Fatal(err)
	}
	s = newShot(t)
	s.env["DSH_ACTOR_HOME"] = t.TempDir()
	s.want(exitOK, "agents", "list", "--cwd", dir, "--json")
	var list struct {
		Version int
		Agents  []struct{ Name, Description, Persona string }
	}
	if err := json.Unmarshal([]byte(s.out.String()), &list); err != nil || list.Version != 1 || len(list.Agents) != 1 || list.Agents[0].Persona != "Look." {
		t.Errorf("%v: %s", err, s.out.String())
	}
}

// A run shows its sub-agents and tells programs of them.
func TestRunWithHelpers(t *testing.T) {
	dir := tmpProject(t)
	run := func(code int, args ...string) *shot {
		s := newShot(t)
		s.env["DSH_ACTOR_HOME"] = t.TempDir()
		return s.want(code, append([]string{"run", "--cwd", dir}, args...)...)
	}
	s := run(exitOK, "List the files with three helpers")
	s.says(&s.err, "⤷ list the files", "✓ list the files · ", "⤷ search for TODO", "bad.md:2")
	s.says(&s.out, "A helper was asked to list the files. It said")

	s = run(exitOK, "-o", "json", "List the files with 2 helpers")
	var r result
	if err := json.Unmarshal([]byte(s.out.String()), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Children) != 2 || r.UsageTotal.Input != r.Usage.Input+r.Children[0].Usage.Input+r.Children[1].Usage.Input {
		t.Errorf("result %+v", r)
	}
	for _, c := range r.Children {
		if c.Parent != r.Agent || c.Depth != 1 || c.Outcome != "completed" || c.Code != "" {
			t.Errorf("child %+v", c)
		}
	}

	s = run(exitOK, "-o", "stream-json", "List the files with 2 helpers")
	children := map[string]bool{}
	for line := range strings.Lines(s.out.String()) {
		var l struct {
			Type, Agent, Parent string
			Depth               int
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Agent == "" {
			t.Fatalf("%v: %s", err, line)
		}
		if l.Depth == 1 {
			children[l.Agent+" of "+l.Parent] = true
		}
	}
	if len(children) != 2 {
		t.Errorf("children %v", children)
	}

	s = run(exitOK, "--max-depth", "0", "List the files with two helpers")
	if strings.Contains(s.err.String(), "⤷") {
		t.Errorf("there are sub-agents:\n%s", s.err.String())
	}
	s = run(exitUsage, "--max-depth", "-1", "--max-children", "0", "x")
	s.says(&s.err, "--max-depth is -1", "--max-children is 0")
}
