package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	s := newShot(t).want(exitOK, "version")
	s.says(&s.out, "dsh-actor ", "go        go1.", "platform  ")
	s = newShot(t).want(exitOK, "version", "--json")
	var b build
	if err := json.Unmarshal([]byte(s.out.String()), &b); err != nil || b.Version == "" || b.Go == "" {
		t.Errorf("%v: %s", err, s.out.String())
	}
	s = newShot(t).want(exitOK, "--version")
	s.says(&s.out, "dsh-actor "+b.Version)
}

func TestTools(t *testing.T) {
	s := newShot(t).want(exitOK, "tools")
	s.says(&s.out, "shell (exclusive)\n    ", "read_file (parallel)\n    ")
	for line := range strings.Lines(s.out.String()) {
		if len(line) > 90 {
			t.Errorf("line of %d bytes: %s", len(line), line)
		}
	}
	s = newShot(t).want(exitOK, "tools", "--json")
	var list struct {
		Version int
		Tools   []struct {
			Name, Description, Mode string
			Parameters              map[string]any
		}
	}
	if err := json.Unmarshal([]byte(s.out.String()), &list); err != nil || list.Version != 1 {
		t.Fatalf("%v: %s", err, s.out.String())
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Description == "" || tool.Parameters["type"] != "object" {
			t.Errorf("%+v", tool)
		}
	}
	if !slices.Equal(names, toolNames) {
		t.Errorf("tools %v, want %v", names, toolNames)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"--help"}} {
		s := newShot(t).want(exitOK, args...)
		s.says(&s.out, "Available Commands:", "run", "tools", "version", "completion", "dsh-actor run \"List")
	}
	for _, args := range [][]string{{"help", "run"}, {"run", "--help"}} {
		s := newShot(t).want(exitOK, args...)
		s.says(&s.out, "Exit status:", "Environment:", "Examples:", "DSH_ACTOR_API_KEY", "--base-url", "130")
		s.says(&s.out, "3    a limit cut the turn")
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		s := newShot(t).want(exitOK, "completion", shell)
		s.says(&s.out, "dsh-actor")
	}
	for _, tt := range []struct {
		args []string
		want []string
		dir  string
	}{
		{[]string{"run", "--provider", ""}, []string{"demo", "openai", "deepseek"}, ":4"},
		{[]string{"run", "--output", ""}, outputs, ":4"},
		{[]string{"run", "--tools", ""}, append([]string{"none"}, toolNames...), ":6"},
		{[]string{"run", "--tools", "shell,s"}, []string{"shell,search", "shell,subagent"}, ":6"},
		{[]string{"run", "--cwd", ""}, nil, ":16"},
		{[]string{"run", "--sessions-dir", ""}, nil, ":16"},
		{[]string{"run", "--store", ""}, []string{"jsonl", "memory"}, ":4"},
		{[]string{"run", "--resume", ""}, nil, ":36"},
		{[]string{"run", ""}, nil, ":4"},
		{[]string{"run", "--max-p"}, []string{"--max-parallel-tools"}, ":4"},
		{[]string{"to"}, []string{"tools"}, ":4"},
	} {
		s := newShot(t).want(exitOK, append([]string{"__complete"}, tt.args...)...)
		var got []string
		for line := range strings.Lines(s.out.String()) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			got = append(got, name)
		}
		if want := append(slices.Clone(tt.want), tt.dir); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", tt.args, got, want)
		}
	}
}
