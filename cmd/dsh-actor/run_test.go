package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/cmd/dsh-actor/config"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Without a key the demo answers with real tools, and says so.
func TestDemo(t *testing.T) {
	dir := project(t)
	s := newShot(t).want(exitOK, "run", "--cwd", dir, "list the files, read a.txt and write \"hi\" to c.txt")
	golden(t, "demo.stdout", s.out.String(), dir)
	golden(t, "demo.stderr", s.err.String(), dir)
	if text, err := os.ReadFile(filepath.Join(dir, "c.txt")); string(text) != "hi\n" {
		t.Errorf("c.txt holds %q: %v", text, err)
	}
}

func TestDemoNamed(t *testing.T) {
	s := newShot(t)
	s.env[envDeepSeekKey] = "sk-never-used"
	s.want(exitOK, "run", "--provider", "demo", "--tools", "none", "hello")
	s.says(&s.out, "scripted demo", "There is more that I can do")
	if strings.Contains(s.err.String(), "no API key") || strings.Contains(s.out.String()+s.err.String(), "sk-never-used") {
		t.Errorf("stderr: %s", s.err.String())
	}
}

func TestOutputJSON(t *testing.T) {
	dir := project(t)
	s := newShot(t).want(exitOK, "run", "--cwd", dir, "-o", "json", "list the files <here> & now")
	golden(t, "demo.json", s.out.String(), dir)
}

func TestOutputStreamJSON(t *testing.T) {
	dir := project(t)
	s := newShot(t).want(exitOK, "run", "--cwd", dir, "--tools", "read_file", "--system", "Be brief in {{cwd}}.", "--output=stream-json", "read a.txt")
	golden(t, "demo.stream.json", s.out.String(), dir)
	events, last := stream(t, s.out.String())
	if events[len(events)-1].Type() != dsh.TypeTurnEnd || !last.OK || last.ToolCalls != 1 {
		t.Errorf("last event %s, result %+v", events[len(events)-1].Type(), last)
	}
}

// The prompt has one source.
func TestPromptSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "task.md")
	if err := os.WriteFile(file, []byte("read from.file\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		args  []string
		stdin string
		want  string
	}{
		{"argument", []string{"read an.arg"}, "read from.stdin", "an.arg"},
		{"stdin", nil, "read from.stdin\n", "from.stdin"},
		{"dash", []string{"-"}, "read from.stdin\n", "from.stdin"},
		{"file", []string{"-f", file}, "read from.stdin", "from.file"},
		{"behind a double dash", []string{"--", "-- read an.arg"}, "", "an.arg"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShot(t)
			s.stdin = strings.NewReader(tt.stdin)
			s.want(exitOK, append([]string{"run", "--tools", "none"}, tt.args...)...)
			s.says(&s.out, "I could not read "+tt.want)
		})
	}
}

// terminal is a stdin that looks like one.
type terminal struct{ strings.Reader }

func (*terminal) Stat() (os.FileInfo, error) { return device{}, nil }

type device struct{ os.FileInfo }

func (device) Mode() os.FileMode { return os.ModeCharDevice | os.ModeDevice }

func TestUsage(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		env  map[string]string
		want string
	}{
		{args: []string{"rnu"}, want: `unknown command "rnu"; did you mean run?`},
		{args: []string{"help", "rnu"}, want: `unknown command "rnu"; did you mean run?`},
		{args: []string{"completion", "zhs"}, want: `unknown command "zhs"; did you mean zsh`},
		{args: []string{"--model", "x"}, want: "unknown flag: --model; it is a flag of 'dsh-actor run'"},
		{args: []string{"run", "--modle", "x", "hi"}, want: "unknown flag: --modle; did you mean --model?"},
		{args: []string{"run", "--api-key", "x", "hi"}, want: "unknown flag: --api-key"},
		{args: []string{"run", "-x", "hi"}, want: "unknown shorthand flag: 'x'"},
		{args: []string{"run", "hi", "there"}, want: "one prompt, not 2 arguments; put it in quotes"},
		{args: []string{"run"}, want: "a prompt is needed"},
		{args: []string{"run", " "}, want: "the prompt is empty"},
		{args: []string{"run", "-"}, want: "the prompt is empty on stdin"},
		{args: []string{"run", "-f", empty}, want: "the prompt is empty in " + empty},
		{args: []string{"run", "-f", empty, "hi"}, want: "not from both"},
		{args: []string{"run", "-f", "/not/here"}, want: "no such file"},
		{args: []string{"run", "--provider", "deepsek", "hi"}, want: `--provider "deepsek" is not one of demo, openai, deepseek; did you mean deepseek?`},
		{args: []string{"run", "hi"}, env: map[string]string{envProvider: "x"}, want: `DSH_ACTOR_PROVIDER "x" is not one of`},
		{args: []string{"run", "--provider", "openai", "hi"}, env: map[string]string{envOpenAIKey: "k"}, want: "needs a model: name one with --model or DSH_ACTOR_MODEL"},
		{args: []string{"run", "hi"}, env: map[string]string{envOpenAIKey: "k"}, want: "needs a model"},
		{args: []string{"run", "--provider", "openai", "--model", "m", "hi"}, want: "needs a key: set OPENAI_API_KEY or DSH_ACTOR_API_KEY"},
		{args: []string{"run", "--provider", "deepseek", "hi"}, want: "needs a key: set DEEPSEEK_API_KEY"},
		{args: []string{"run", "--model", "m", "hi"}, want: "--model needs a provider: set DEEPSEEK_API_KEY"},
		{args: []string{"run", "--provider", "demo", "--base-url", "http://x", "hi"}, want: "--base-url does not go with --provider demo"},
		{args: []string{"run", "--base-url", "ftp://x", "--model", "m", "hi"}, want: "is not http or https"},
		{args: []string{"run", "--tools", "read_fil", "hi"}, want: `--tools "read_fil" is not one of`},
		{args: []string{"run", "--tools", "read_fil", "hi"}, want: "did you mean read_file"},
		{args: []string{"run", "--tools", "none,shell", "hi"}, want: "cannot be combined"},
		{args: []string{"run", "--tools", "", "hi"}, want: "--tools is empty"},
		{args: []string{"run", "--tools", "shell,shell", "hi"}, want: "named twice"},
		{args: []string{"run", "--max-tokens", "0", "hi"}, want: "--max-tokens is 0; it must be at least 1"},
		{args: []string{"run", "--max-tokens", "many", "hi"}, want: `--max-tokens: "many" is no whole number`},
		{args: []string{"run", "--max-parallel-tools", "-1", "hi"}, want: "--max-parallel-tools is -1"},
		{args: []string{"run", "--timeout", "-1s", "hi"}, want: "--timeout is -1s"},
		{args: []string{"run", "--timeout", "5", "hi"}, want: "is no time such as 90s or 5m"},
		{args: []string{"run", "--output", "yaml", "hi"}, want: `--output "yaml" is not one of text, json, stream-json`},
		{args: []string{"run", "--cwd", "/not/here", "hi"}, want: "--cwd: there is no directory /not/here"},
		{args: []string{"run", "--cwd", empty, "hi"}, want: "is not a directory"},
		{args: []string{"run", "--system", "You are {{name}}.", "hi"}, want: "{{name}} has no value"},
		{args: []string{"run", "--resume", "a", "--continue", "hi"}, want: "--resume and --continue exclude each other"},
		{args: []string{"run", "-c", "--fork", "a", "--resume", "a", "hi"}, want: "--resume and --continue and --fork exclude each other"},
		{args: []string{"run", "--resume", "", "hi"}, want: "the ID of a session is empty"},
		{args: []string{"run", "--resume", "nobody", "hi"}, want: "there is no session nobody; 'dsh-actor sessions list --all' shows what there is"},
		{args: []string{"run", "--fork", "nobody", "hi"}, want: "there is no session nobody"},
		{args: []string{"run", "--fork", "a@1@x", "hi"}, want: `not "x"`},
		{args: []string{"run", "--store", "memory", "--resume", "a", "hi"}, want: "--store memory keeps nothing that --resume could find"},
		{args: []string{"run", "--store", "memory", "-c"}, want: "--store memory keeps nothing that --continue could find"},
		{args: []string{"run", "--store", "memory", "--sessions-dir", "x", "hi"}, want: "--sessions-dir does not go with --store memory"},
		{args: []string{"run", "--store", "memroy", "hi"}, want: `--store "memroy" is not one of jsonl, memory; did you mean memory?`},
		{args: []string{"run", "hi"}, env: map[string]string{"DSH_ACTOR_STORE": "disk"}, want: `DSH_ACTOR_STORE "disk" is not one of`},
		{args: []string{"version", "now"}, want: "takes no argument"},
		{args: []string{"tools", "now"}, want: "takes no argument"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			s := newShot(t)
			s.stdin = &terminal{}
			for k, v := range tt.env {
				s.env[k] = v
			}
			s.want(exitUsage, tt.args...)
			s.says(&s.err, tt.want, "--help' for usage.")
			if s.out.String() != "" {
				t.Errorf("stdout: %s", s.out.String())
			}
		})
	}
}

// Several problems are told at once.
func TestUsageTellsEverything(t *testing.T) {
	s := newShot(t).want(exitUsage, "run", "--output", "x", "--timeout", "-1s", "--cwd", "/not/here", "--provider", "y", "hi")
	s.says(&s.err, "--output", "--timeout", "--cwd", "--provider")
}

// What is asked of the model is what the flags say.
func TestRequest(t *testing.T) {
	dir := project(t)
	s := newShot(t)
	srv := llmtest.NewServer(t, llmtest.Text("fine"))
	s.env[envOpenAIKey] = "sk-test-key"
	s.want(exitOK, remote(srv, "--cwd", dir, "--system", "In {{cwd}} with {{model}}.", "--max-tokens", "77",
		"--tools", "search,todo", "-v", "hello")...)
	req := srv.Requests()[0]
	if got := req.Header.Get("Authorization"); got != "Bearer sk-test-key" {
		t.Errorf("Authorization %q", got)
	}
	var body struct {
		Model     string
		MaxTokens int `json:"max_tokens"`
		Messages  []struct{ Role, Content string }
		Tools     []struct{ Function struct{ Name string } }
	}
	req.Decode(t, &body)
	if body.Model != "m" || body.MaxTokens != 77 || len(body.Tools) != 2 || body.Tools[0].Function.Name != "search" ||
		!strings.HasSuffix(body.Messages[0].Content, "In "+dir+" with m.") || body.Messages[len(body.Messages)-1].Content != "hello" {
		t.Errorf("request: %s", req.Body)
	}
	s.says(&s.out, "fine\n")
	if strings.Contains(s.err.String()+s.out.String(), "sk-test-key") {
		t.Error("the key was printed")
	}
}

// Providers, models and keys come from the environment where no flag says
// otherwise.
func TestEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name             string
		env              map[string]string
		args             []string
		key, model, from string
	}{
		{"base URL alone", map[string]string{envModel: "m1"}, nil, "", "m1", providerOpenAI},
		{"deepseek key", map[string]string{envDeepSeekKey: "k1"}, nil, "Bearer k1", config.DeepSeekModel, providerDeepSeek},
		{"own key", map[string]string{envDeepSeekKey: "k1", envKey: "k2"}, nil, "Bearer k2", config.DeepSeekModel, providerDeepSeek},
		{"openai key", map[string]string{envOpenAIKey: "k3", envModel: "m1"}, nil, "Bearer k3", "m1", providerOpenAI},
		{"flags first", map[string]string{envProvider: "demo", envModel: "m1", envOpenAIKey: "k3"},
			[]string{"--provider", "openai", "--model", "m2"}, "Bearer k3", "m2", providerOpenAI},
		{"provider", map[string]string{envProvider: "deepseek", envOpenAIKey: "k3", envModel: "m1"}, nil, "", "m1", providerDeepSeek},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShot(t)
			srv := llmtest.NewServer(t, llmtest.Text("fine"))
			maps.Copy(s.env, tt.env)
			s.env[envBaseURL] = srv.URL
			s.want(exitOK, append(append([]string{"run", "-o", "json"}, tt.args...), "hi")...)
			var body struct{ Model string }
			srv.Requests()[0].Decode(t, &body)
			var r result
			if err := json.Unmarshal([]byte(s.out.String()), &r); err != nil {
				t.Fatal(err)
			}
			if got := srv.Requests()[0].Header.Get("Authorization"); got != tt.key || body.Model != tt.model || r.Provider != tt.from || r.Model != tt.model {
				t.Errorf("key %q, model %q, result %+v", got, body.Model, r)
			}
		})
	}
}

// Files outside --cwd need --allow-outside.
func TestAllowOutside(t *testing.T) {
	dir, other := project(t), filepath.Join(project(t), "a.txt")
	s := newShot(t).want(exitOK, "run", "--cwd", dir, "read "+other)
	s.says(&s.out, "read_file failed", "outside the working directory")
	s = newShot(t).want(exitOK, "run", "--cwd", dir, "--allow-outside", "read "+other)
	s.says(&s.out, "a.txt has 2 lines")
}

func TestMaxParallelTools(t *testing.T) {
	s := newShot(t).want(exitOK, "run", "--cwd", project(t), "--max-parallel-tools", "1", "read a.txt and b.md")
	s.says(&s.out, "a.txt has 2 lines", "b.md has 3 lines")
}

func TestMaxTokens(t *testing.T) {
	s := newShot(t).want(exitLimit, "run", "--max-tokens", "5", "-o", "json", "list files")
	s.says(&s.out, `"ending":"max-tokens","ok":false,"exit_code":3`, `"error":{"code":"MAX_TOKENS"`)
}

func TestTimeout(t *testing.T) {
	s := newShot(t)
	srv := llmtest.NewServer(t, llmtest.Text("a", "b").StallAfter(2))
	s.want(exitLimit, remote(srv, "--timeout", "1s", "-o", "stream-json", "hi")...)
	events, last := stream(t, s.out.String())
	end, ok := events[len(events)-1].Data.(dsh.TurnEnd)
	if !ok || end.Reason.Kind != dsh.EndAborted || end.Reason.Cause.Reason != "--timeout 1s is over" ||
		last.Error == nil || last.Error.Code != "TIME_LIMIT" || last.Text != "a" {
		t.Errorf("end %+v, result %+v", end, last)
	}
}

// A silence is told of, with what is waited for.
func TestQuiet(t *testing.T) {
	s := newShot(t)
	srv := llmtest.NewServer(t, llmtest.Text("fine").Delay(400*time.Millisecond))
	s.quiet = 50 * time.Millisecond
	s.want(exitOK, remote(srv, "hi")...)
	if n := strings.Count(s.err.String(), "ms, waiting for the model\n"); n < 2 || n > 6 {
		t.Errorf("%d notices:\n%s", n, s.err.String())
	}
}

func TestColours(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want bool
	}{{nil, true}, {map[string]string{"NO_COLOR": "1"}, false}, {map[string]string{"TERM": "dumb"}, false}} {
		var w tty
		a := newApp(strings.NewReader(""), &w, &w, func(name string) string { return tt.env[name] })
		a.pace = 0
		if code := a.execute(t.Context(), []string{"run", "--store", "memory", "--tools", "none", "hi"}, nil); code != exitOK {
			t.Fatalf("exit code %d: %s", code, w.String())
		}
		if got := strings.Contains(w.String(), "\x1b["); got != tt.want {
			t.Errorf("with %v: colours %v, want %v", tt.env, got, tt.want)
		}
	}
}

type tty struct{ buffer }

func (*tty) Stat() (os.FileInfo, error) { return device{}, nil }
