package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// The conversation goes on: same session, same model, the next turn, and the
// model sees what was said before. What is told is of this run.
func TestResume(t *testing.T) {
	h := newHouse(t, llmtest.Text("first answer").Usage(10, 0, 1), llmtest.Text("second answer").Usage(20, 0, 2))
	id := h.first("--tools", "none", "--cwd", project(t), "hello")
	before := len(h.events(id))

	s := h.want(exitOK, "run", "--resume", string(id[:12]), "--tools", "none", "-o", "stream-json", "and now?")
	events, last := streamFrom(t, dsh.Seq(before), s.out.String())
	if events[0].Type() != dsh.TypeEndSeed {
		t.Errorf("the stream begins with %s", events[0].Type())
	}
	if b := h.asked(1); b.Model != "m" || b.said() != "user: hello\nassistant: first answer\nuser: and now?" {
		t.Errorf("%s was asked:\n%s", b.Model, b.said())
	}
	if last.Session != id || !last.Resumed || last.Turn != 2 || last.Text != "second answer" || last.Steps != 1 ||
		last.Usage.Input != 20 || last.Usage.Output != 2 || last.UsageTotal.Input != 20 || last.Requests != 1 {
		t.Errorf("result %+v", last)
	}
	s.says(&s.err, "session "+string(id)+", with 1 turn so far")
	if got := len(h.events(id)); got != before+len(events) {
		t.Errorf("the log has %d events, want %d and %d", got, before, len(events))
	}
	s.says(&s.out, `"type":"start","session":"`+string(id)+`","agent":"`+string(id)+`"`, `"store":"jsonl","resumed":true}`)
}

// What was chosen for the first run is chosen for the next, unless a flag says
// otherwise.
func TestResumeRestores(t *testing.T) {
	dir, other := project(t), project(t)
	h := newHouse(t)
	h.srv.Respond(func(llmtest.Request) llmtest.Response { return llmtest.Text("fine") })
	id := string(h.first("--cwd", dir, "--system", "You review {{cwd}}.", "--temperature", "0.5", "--top-p", "0.9", "--seed", "7", "--max-tokens", "77", "hello"))
	resume := func(args ...string) body {
		t.Helper()
		s := h.shot()
		s.env[envModel], s.env["DSH_ACTOR_TEMPERATURE"], s.env["DSH_ACTOR_MAX_TOKENS"] = "not-asked", "1.5", "5"
		s.want(exitOK, append([]string{"run", "--resume", id, "go on"}, args...)...)
		return h.asked(len(h.srv.Requests()) - 1)
	}
	system := func(b body) string { return b.Messages[0].Content }
	b := resume()
	if b.Model != "m" || *b.Temperature != 0.5 || *b.TopP != 0.9 || *b.Seed != 7 || b.MaxTokens != 77 ||
		!strings.HasSuffix(system(b), "\n\nYou review "+dir+".") {
		t.Errorf("asked %+v", b)
	}
	b = resume("--model", "n", "--temperature", "0", "--max-tokens", "9", "--system", "New.", "--cwd", other)
	if b.Model != "n" || *b.Temperature != 0 || *b.TopP != 0.9 || b.MaxTokens != 9 || !strings.HasSuffix(system(b), "\n\nNew.") {
		t.Errorf("asked %+v", b)
	}
	b = resume()
	if b.Model != "n" || !strings.HasSuffix(system(b), "\n\nNew.") {
		t.Errorf("what was said last stands: %+v", b)
	}
	if headers := h.headers(); len(headers) != 1 || headers[0].CWD != dir {
		t.Errorf("the log moved: %+v", headers)
	}

	// The default persona is filled in anew.
	id = string(h.first("--cwd", dir, "hello"))
	if b := resume("--cwd", other); !strings.Contains(system(b), "the directory "+other+" for") || strings.Contains(system(b), dir) {
		t.Errorf("system %s", system(b))
	}
}

// Tools work in the session's directory, not in the current one.
func TestResumeWorksInTheSessionsDirectory(t *testing.T) {
	dir := project(t)
	h := newHouse(t, llmtest.Text("fine"),
		llmtest.ToolCalls(dsh.ToolCall{ID: "c", Name: "read_file", Arguments: `{"path":"a.txt"}`}), llmtest.Text("two lines"))
	id := h.first("--cwd", dir, "hello")
	h.want(exitOK, "run", "--resume", string(id), "read a.txt")
	if said := h.asked(2).said(); !strings.Contains(said, "tool:") || !strings.Contains(said, "two") {
		t.Errorf("said:\n%s", said)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	s := h.want(exitUsage, "run", "--resume", string(id), "hi")
	s.says(&s.err, "the directory of session "+string(id)+", "+dir+", is gone; name another one with --cwd")
	h.srv.Add(llmtest.Text("fine"))
	h.want(exitOK, "run", "--resume", string(id), "--cwd", project(t), "hi")
}

// A tool that is not there any more answers with an error.
func TestResumeWithoutTheTools(t *testing.T) {
	call := llmtest.ToolCalls(dsh.ToolCall{ID: "c1", Name: "read_file", Arguments: `{"path":"a.txt"}`})
	again := llmtest.ToolCalls(dsh.ToolCall{ID: "c2", Name: "read_file", Arguments: `{"path":"a.txt"}`})
	h := newHouse(t, call, llmtest.Text("two lines"), again, llmtest.Text("I cannot"))
	id := h.first("--cwd", project(t), "how long is a.txt?")
	s := h.want(exitOK, "run", "--resume", string(id), "--tools", "none", "look again")
	s.says(&s.out, "I cannot")
	s.says(&s.err, "✗ read_file")
	b := h.asked(3)
	last := b.Messages[len(b.Messages)-1]
	if last.Role != "tool" || !strings.Contains(last.Content, "read_file") || strings.Contains(last.Content, "two") {
		t.Errorf("the call is answered: %+v", last)
	}
}

// A provider that is not configured is named, and so is the way out.
func TestResumeWithoutTheProvider(t *testing.T) {
	h := newHouse(t, llmtest.Text("fine"), llmtest.Text("fine"))
	config := filepath.Join(h.home, "config.yaml")
	if err := os.WriteFile(config, []byte("providers: {local: {base_url: 'http://127.0.0.1:1/v1', default_model: m}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := resultOf(t, h.want(exitOK, "run", "--provider", "local", "-o", "json", "hi")).Session
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	s := h.want(exitUsage, "run", "--resume", string(id), "hi")
	s.says(&s.err, `session `+string(id)+` last asked provider "local", which is not configured; name one with --provider: demo, openai, deepseek`)
	h.want(exitOK, "run", "--resume", string(id), "--provider", "openai", "--model", "other", "hi")
	if b := h.asked(1); b.Model != "other" {
		t.Errorf("asked %s", b.Model)
	}
}

// Without a model the demo goes on, and says that it does.
func TestResumeDemo(t *testing.T) {
	h := newHouse(t)
	id := resultOf(t, h.want(exitOK, "run", "--provider", "demo", "--tools", "none", "-o", "json", "hi")).Session
	s := h.want(exitOK, "run", "--resume", string(id), "--tools", "none", "hi again")
	s.says(&s.err, "the scripted demo answers, as it did before in this session; name another provider with --provider")
}

// --continue means the session of the directory that was written last, not the
// youngest, and none of a sub-agent.
func TestContinue(t *testing.T) {
	here, there := project(t), project(t)
	h := newHouse(t)
	h.srv.Respond(func(llmtest.Request) llmtest.Response { return llmtest.Text("fine") })
	written := func(id dsh.SessionID, ago time.Duration) {
		t.Helper()
		at := time.Now().Add(-ago)
		if err := os.Chtimes(h.log(id), at, at); err != nil {
			t.Fatal(err)
		}
	}
	first := h.first("--cwd", here, "the first here")
	second := h.first("--cwd", here, "the second here")
	elsewhere := h.first("--cwd", there, "there")
	written(first, time.Minute)
	written(second, time.Hour)
	goOn := func(dir string, want dsh.SessionID) {
		t.Helper()
		s := h.want(exitOK, "run", "-c", "--cwd", dir, "-o", "json", "go on")
		if got := resultOf(t, s); got.Session != want || !got.Resumed {
			t.Errorf("in %s: %+v, want session %s", dir, got, want)
		}
	}
	goOn(here, first)
	goOn(there, elsewhere)
	written(first, 2*time.Hour)
	goOn(here, second)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(there, link); err != nil {
		t.Fatal(err)
	}
	goOn(link, elsewhere)

	family := resultOf(t, h.want(exitOK, "run", "--provider", "demo", "--cwd", there, "-o", "json", "List the files with two helpers"))
	for _, child := range family.Children {
		written(child.Session, -time.Hour)
	}
	goOn(there, family.Session)

	s := h.want(exitUsage, "run", "--continue", "--cwd", project(t), "go on")
	s.says(&s.err, "there is no session of ", "to continue", "sessions list")
}

// In the current directory no flag says where.
func TestContinueHere(t *testing.T) {
	h := newHouse(t, llmtest.Text("one"), llmtest.Text("two"))
	t.Chdir(project(t))
	id := h.first("hello")
	if got := resultOf(t, h.want(exitOK, "run", "--continue", "-o", "json", "again")); got.Session != id || got.Turn != 2 {
		t.Errorf("result %+v", got)
	}
}

// A turn that a crash left open is closed: the model is told what became of its
// calls, the stream shows how, and the run's figures do not count it.
func TestResumeAfterACrash(t *testing.T) {
	h := newHouse(t, llmtest.ToolCalls(
		dsh.ToolCall{ID: "c1", Name: "read_file", Arguments: `{"path":"a.txt"}`},
		dsh.ToolCall{ID: "c2", Name: "read_file", Arguments: `{"path":"b.md"}`},
	), llmtest.Text("done"), llmtest.Text("again"))
	id := h.first("--cwd", project(t), "--max-parallel-tools", "1", "hi")
	var started dsh.Seq
	for _, ev := range h.events(id) {
		if ev.Type() == dsh.TypeToolStarted {
			started = ev.Seq
			break
		}
	}
	h.cutAt(id, started+1)
	s := h.want(exitOK, "run", "--resume", string(id), "-o", "stream-json", "go on")
	events, last := streamFrom(t, started+1, s.out.String())
	var types []string
	for _, ev := range events[:5] {
		types = append(types, ev.Type())
	}
	if got := strings.Join(types, " "); got != "tool/result tool/result step/end turn/end session/end-seed" {
		t.Errorf("the stream begins with %s", got)
	}
	if last.Turn != 2 || last.Steps != 1 || last.ToolCalls != 0 || last.Requests != 1 || !last.OK {
		t.Errorf("result %+v", last)
	}
	s.says(&s.err, "turn 1 was interrupted before its end; it is closed, with an error as the result of 2 calls\n")
	if strings.Contains(s.err.String(), "✗") {
		t.Errorf("stderr: %s", s.err.String())
	}
	said := h.asked(2).said()
	if !strings.Contains(said, "tool: "+dsh.TextOutcomeUnknown) || !strings.Contains(said, "tool: "+dsh.TextNotStarted) || !strings.HasSuffix(said, "\nuser: go on") {
		t.Errorf("said:\n%s", said)
	}
}

// A session has the tools that it had, as long as they are ours.
func TestResumeHasTheToolsThatItHad(t *testing.T) {
	h := newHouse(t)
	h.srv.Respond(func(llmtest.Request) llmtest.Response { return llmtest.Text("fine") })
	tools := func(n int) (names []string) {
		var b struct {
			Tools []struct{ Function struct{ Name string } }
		}
		h.srv.Requests()[n].Decode(t, &b)
		for _, tool := range b.Tools {
			names = append(names, tool.Function.Name)
		}
		return names
	}
	for i, tt := range []struct {
		first, then []string
		want        []string
		says        string
	}{
		{[]string{"--tools", "search,read_file,subagent"}, nil, []string{"read_file", "search", "subagent"}, "tools as before: read_file, search, subagent; --tools names others\n"},
		{[]string{"--tools", "search,subagent"}, []string{"--max-depth", "0"}, []string{"search"}, "tools as before: search, subagent"},
		{[]string{"--tools", "none"}, nil, nil, "tools as before: none; --tools names others\n"},
		{[]string{"--tools", "search"}, []string{"--tools", "todo"}, []string{"todo"}, ""},
		{nil, nil, slices.Sorted(slices.Values(toolNames)), ""},
	} {
		id := h.first(append(tt.first, "hi")...)
		s := h.want(exitOK, append([]string{"run", "--resume", string(id), "hi again"}, tt.then...)...)
		if got := tools(2*i + 1); !slices.Equal(got, tt.want) {
			t.Errorf("%q and %q: tools %q, want %q", tt.first, tt.then, got, tt.want)
		}
		if says := s.err.String(); !strings.Contains(says, tt.says) || tt.says == "" && strings.Contains(says, "as before") {
			t.Errorf("%q and %q: stderr lacks %q:\n%s", tt.first, tt.then, tt.says, says)
		}
	}
	header := &dsh.Header{Tools: []dsh.ToolSchema{{Name: "search"}, {Name: "Bash"}}}
	if got := toolsOf(header); got != nil {
		t.Errorf("somebody else's tools: %q", got)
	}
}
