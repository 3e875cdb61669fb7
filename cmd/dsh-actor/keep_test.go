package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// A house is a home directory that several executions share, and who answers
// there.
type house struct {
	t    *testing.T
	home string
	srv  *llmtest.Server
}

func newHouse(t *testing.T, script ...llmtest.Response) *house {
	t.Helper()
	h := &house{t: t, home: newHome(t)}
	h.srv = llmtest.NewServer(t, script...)
	return h
}

// shot makes an execution there, at a terminal.
func (h *house) shot() *shot {
	h.t.Helper()
	s := shotIn(h.t, h.home)
	s.env[envBaseURL] = h.srv.URL
	s.stdin = &terminal{}
	return s
}

// want runs a command there and checks its exit code.
func (h *house) want(code int, args ...string) *shot {
	h.t.Helper()
	return h.shot().want(code, args...)
}

// first runs a prompt in a new session and returns that.
func (h *house) first(args ...string) dsh.SessionID {
	h.t.Helper()
	s := h.want(exitOK, append([]string{"run", "--provider", "openai", "--model", "m", "-o", "json"}, args...)...)
	return resultOf(h.t, s).Session
}

func (h *house) store() *jsonl.Store {
	h.t.Helper()
	dir := filepath.Join(h.home, sessionsName)
	store, err := jsonl.Open(dir, jsonl.Options{Encoding: jsonl.Detect(dir)})
	if err != nil {
		h.t.Fatal(err)
	}
	return store
}

func (h *house) headers() (headers []dsh.SessionHeader) {
	h.t.Helper()
	for header, err := range h.store().List(h.t.Context()) {
		if err != nil {
			h.t.Fatal(err)
		}
		headers = append(headers, header)
	}
	return headers
}

// log returns the path of a session's log.
func (h *house) log(id dsh.SessionID) string {
	h.t.Helper()
	r, err := h.store().OpenReader(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return r.Path()
}

// events returns what a session's log holds.
func (h *house) events(id dsh.SessionID) []dsh.Event {
	h.t.Helper()
	r, err := h.store().OpenReader(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	packed, err := r.Read(h.t.Context(), 0, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	return slices.Collect(dsh.Expand(packed))
}

func resultOf(t *testing.T, s *shot) (r result) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.out.String()), &r); err != nil {
		t.Fatalf("%v: %s", err, s.out.String())
	}
	return r
}

// A body is what a request asks.
type body struct {
	Model       string
	Temperature *float64
	TopP        *float64 `json:"top_p"`
	MaxTokens   int      `json:"max_tokens"`
	Seed        *int64
	Messages    []struct {
		Role    string
		Content string
	}
}

// said returns the messages behind the system prompt, one per line.
func (b body) said() string {
	var out []string
	for _, m := range b.Messages {
		if m.Role != "system" {
			out = append(out, m.Role+": "+m.Content)
		}
	}
	return strings.Join(out, "\n")
}

// asked returns the n-th request.
func (h *house) asked(n int) (b body) {
	h.t.Helper()
	all := h.srv.Requests()
	if n >= len(all) {
		h.t.Fatalf("there are %d requests", len(all))
	}
	all[n].Decode(h.t, &b)
	return b
}

// A run leaves one session, which says where it was.
func TestRunIsKept(t *testing.T) {
	dir := project(t)
	h := newHouse(t, llmtest.Text("fine"))
	s := h.want(exitOK, "run", "--provider", "openai", "--model", "m", "--cwd", dir, "hi")
	headers := h.headers()
	if len(headers) != 1 || headers[0].CWD != dir || headers[0].Origin != "" {
		t.Fatalf("headers %+v", headers)
	}
	s.says(&s.err, "session "+string(headers[0].ID)+"\n")
	if strings.Contains(s.err.String(), "to go on") || s.out.String() != "fine\n" {
		t.Errorf("stdout %q, stderr %q", s.out.String(), s.err.String())
	}
	events := h.events(headers[0].ID)
	if last := events[len(events)-1]; last.Type() != dsh.TypeTurnEnd {
		t.Errorf("the log ends with %s", last.Type())
	}
}

// People are told how to go on.
func TestHowToGoOn(t *testing.T) {
	for _, tt := range []struct{ args, want []string }{
		{nil, []string{"to go on: dsh-actor run --resume agent-"}},
		{[]string{"--sessions-dir", "DIR"}, []string{`to go on: dsh-actor run --sessions-dir "DIR" --resume agent-`}},
		{[]string{"--store", "memory"}, nil},
	} {
		var w tty
		dir := t.TempDir()
		env := map[string]string{envHome: dir, "NO_COLOR": "1"}
		a := newApp(strings.NewReader(""), &w, &w, func(name string) string { return env[name] })
		a.pace = 0
		args := []string{"run", "--tools", "none", "hi"}
		for _, arg := range tt.args {
			args = append(args, strings.ReplaceAll(arg, "DIR", dir))
		}
		if code := a.execute(t.Context(), args, nil); code != exitOK {
			t.Fatalf("exit code %d: %s", code, w.String())
		}
		got := strings.ReplaceAll(w.String(), dir, "DIR")
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%q: no %q in %s", tt.args, want, got)
			}
		}
		if tt.want == nil && (strings.Contains(got, "go on") || strings.Contains(got, "session ")) {
			t.Errorf("%q: %s", tt.args, got)
		}
	}
}

// With the memory store nothing is written, whoever says so.
func TestStoreMemory(t *testing.T) {
	for _, tt := range []struct {
		name, env, file string
		args            []string
	}{
		{"flag", "", "", []string{"--store", "memory"}},
		{"environment", "memory", "", nil},
		{"configuration", "", "store: memory\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShot(t)
			s.env["DSH_ACTOR_STORE"] = tt.env
			if tt.file != "" {
				if err := os.WriteFile(filepath.Join(s.env[envHome], "config.yaml"), []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s.want(exitOK, append([]string{"run", "--tools", "none", "-o", "json", "hi"}, tt.args...)...)
			if _, err := os.Stat(filepath.Join(s.env[envHome], sessionsName)); !os.IsNotExist(err) {
				t.Errorf("there are sessions: %v", err)
			}
			if r := resultOf(t, s); r.Store != "memory" || r.Session == "" {
				t.Errorf("result %+v", r)
			}
		})
	}
}

// Where sessions are: the flag, the environment, the user's file, the home.
func TestSessionsDir(t *testing.T) {
	dirs := map[string]string{}
	for _, name := range []string{"flag", "env", "file"} {
		dirs[name] = filepath.Join(t.TempDir(), name)
	}
	s := newShot(t)
	home := s.env[envHome]
	config := filepath.Join(home, "config.yaml")
	run := func(where string, args ...string) {
		t.Helper()
		env := s.env
		s = newShot(t)
		s.env = env
		s.want(exitOK, append([]string{"run", "--tools", "none", "hi"}, args...)...)
		found, err := os.ReadDir(where)
		if err != nil || len(found) != 1 {
			t.Errorf("%s holds %v, %v", where, found, err)
		}
	}
	run(filepath.Join(home, sessionsName))
	if err := os.WriteFile(config, fmt.Appendf(nil, "sessions: {dir: %q}\n", dirs["file"]), 0o600); err != nil {
		t.Fatal(err)
	}
	run(dirs["file"])
	s.env["DSH_ACTOR_SESSIONS_DIR"] = dirs["env"]
	run(dirs["env"])
	run(dirs["flag"], "--sessions-dir", dirs["flag"])
}

// A store that cannot be used is told of before anybody is asked anything.
func TestUnusableStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	locked := filepath.Join(t.TempDir(), "locked")
	if err := os.Mkdir(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t)
	for _, dir := range []string{file, filepath.Join(file, "below"), locked} {
		if dir == locked && os.Geteuid() == 0 {
			continue // nothing is locked for it
		}
		s := h.want(exitFailed, "run", "--provider", "openai", "--model", "m", "--sessions-dir", dir, "-o", "json", "hi")
		s.says(&s.err, "sessions cannot be kept in "+dir, "--sessions-dir", "--store memory")
		if r := resultOf(t, s); r.OK || r.ExitCode != exitFailed || r.Error == nil || r.Error.Code != "STORE_UNUSABLE" {
			t.Errorf("result %+v", r)
		}
		if n := len(h.srv.Requests()); n != 0 {
			t.Errorf("%d requests", n)
		}
	}
	// What shows only when something is written does not reach the model either.
	dir := project(t)
	blocked := filepath.Join(h.home, sessionsName, "--"+strings.ReplaceAll(dir[1:], "/", "-")+"--")
	if err := os.MkdirAll(filepath.Dir(blocked), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := h.want(exitFailed, "run", "--provider", "openai", "--model", "m", "--cwd", dir, "-o", "json", "hi")
	s.says(&s.err, "dsh-actor: sessions cannot be kept in "+filepath.Join(h.home, sessionsName)+": ", "not a directory", "--store memory")
	if r := resultOf(t, s); r.Error == nil || r.Error.Code != "STORE_UNUSABLE" || strings.Count(s.err.String(), "dsh-actor: ") != 1 {
		t.Errorf("result %+v, stderr %s", r, s.err.String())
	}
	if n := len(h.srv.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}

	s = shotIn(t, "")
	s.want(exitUsage, "run", "hi")
	s.says(&s.err, "no home directory", "DSH_ACTOR_HOME", "--store memory")
	s = shotIn(t, "")
	s.want(exitOK, "run", "--store", "memory", "--tools", "none", "hi")
}

// Sub-agents' sessions are kept, too, and say whose they are.
func TestHelpersAreKept(t *testing.T) {
	h := newHouse(t)
	top := resultOf(t, h.want(exitOK, "run", "--provider", "demo", "--cwd", project(t), "-o", "json", "List the files with two helpers"))
	headers := h.headers()
	if len(headers) != 3 || len(top.Children) != 2 {
		t.Fatalf("headers %+v, children %+v", headers, top.Children)
	}
	for _, header := range headers {
		switch {
		case header.ID == top.Session:
			if header.Origin != "" || header.ParentSession != "" {
				t.Errorf("top %+v", header)
			}
		case header.Origin != "subagent" || header.ParentSession != top.Session || header.DelegationDepth != 1 ||
			!slices.ContainsFunc(top.Children, func(c childResult) bool { return c.Session == header.ID }):
			t.Errorf("child %+v", header)
		}
	}
}

// The IDs of sessions are completed, the youngest first, whatever was typed
// before.
func TestCompleteSessions(t *testing.T) {
	h := newHouse(t, llmtest.Text("fine"), llmtest.Text("fine"))
	first := h.first("hi")
	second := h.first("hi")
	for _, flag := range []string{"--resume", "--fork"} {
		s := h.want(exitOK, "__complete", "run", "a prompt", flag, "agent-")
		var got []string
		for line := range strings.Lines(s.out.String()) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			got = append(got, name)
		}
		if want := []string{string(second), string(first), ":36"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", flag, got, want)
		}
	}
	// Without what most begin with, and without what was named already.
	dir := "\t" + h.headers()[0].CWD
	for _, tt := range []struct{ args, want []string }{
		{[]string{"show", string(first)[6:12]}, []string{string(first)[6:] + dir, ":36"}},
		{[]string{"show", string(first), ""}, []string{":4"}},
		{[]string{"delete", string(second), "agent-"}, []string{string(first) + dir, ":36"}},
	} {
		s := h.want(exitOK, append([]string{"__complete", "sessions"}, tt.args...)...)
		if got := strings.Split(strings.TrimSpace(s.out.String()), "\n"); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.args, got, tt.want)
		}
	}
}

// The directory of sessions has one name in all commands; the older one still
// works in those that had it, and is not documented.
func TestSessionsDirFlag(t *testing.T) {
	h := newHouse(t)
	dir := t.TempDir()
	h.want(exitOK, "run", "--provider", "demo", "--cwd", dir, "--sessions-dir", dir, "hi")
	for _, args := range [][]string{{"sessions", "list", "--sessions-dir", dir, "--all"}, {"sessions", "--dir", dir, "list", "--all"}} {
		s := h.want(exitOK, args...)
		s.says(&s.out, "completed")
	}
	s := h.want(exitOK, "sessions", "list", "--help")
	s.says(&s.out, "--sessions-dir DIR")
	if strings.Contains(s.out.String(), "--dir DIR") {
		t.Error(s.out.String())
	}
}
