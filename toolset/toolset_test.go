package toolset

import (
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/tool"
)

func TestNew(t *testing.T) {
	tools, err := New(Options{Root: t.TempDir()})
	if err != nil || len(tools) != len(allNames) {
		t.Fatalf("got %d tools, %v", len(tools), err)
	}
	modes := map[string]tool.Mode{ReadFile: tool.Parallel, ListFiles: tool.Parallel, Search: tool.Parallel}
	for i, x := range tools {
		if s := x.Schema(); s.Name != allNames[i] || s.Description == "" {
			t.Errorf("tool %d is %+v", i, s)
		}
		if got := x.(tool.Moded).Mode(); got != modes[x.Schema().Name] {
			t.Errorf("%s is %v", x.Schema().Name, got)
		}
	}
	tools, err = New(Options{Names: []string{Search, ReadFile}})
	if err != nil || len(tools) != 2 || tools[0].Schema().Name != Search {
		t.Errorf("got %v %v", tools, err)
	}
	if tools, err = New(Options{Names: []string{}}); err != nil || len(tools) != 0 {
		t.Errorf("no names: %v %v", tools, err)
	}
}

// Every problem of the options is told at once.
func TestOptionsAreChecked(t *testing.T) {
	_, err := New(Options{
		Root: "/nowhere/at/all", Names: []string{"raed", "shell", "shell", "zzz"},
		ShellTimeout: time.Hour, MaxShellTimeout: time.Minute, KillDelay: -1,
		MaxOutput: -1, MaxFile: -1, MaxLines: -1, MaxEntries: -1, MaxMatches: -1,
	})
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, part := range []string{
		"/nowhere", `no tool "raed"; did you mean read_file?`, `no tool "zzz"; there are shell,`, `"shell" is named twice`,
		"ShellTimeout 1h0m0s is more", "KillDelay", "MaxOutput", "MaxFile", "MaxLines", "MaxEntries", "MaxMatches",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q", part)
		}
	}
	if _, err := New(Options{Root: "doc.go"}); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Error(err)
	}
}
