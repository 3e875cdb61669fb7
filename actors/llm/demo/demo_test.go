package demo_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/demo"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
	"github.com/dsh-actor/dsh-actor/tool"
	"github.com/dsh-actor/dsh-actor/toolset"
	"github.com/dsh-actor/dsh-actor/toolset/subagent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// project makes a directory with a few files.
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"README.md":   "# Title\n\nSome words.\n\n## Use\n\nTODO: more\n",
		"main.go":     "package main\n\nfunc main() {}\n\ntype thing struct{}\n",
		"docs/a.txt":  "one\ntwo TODO\nthree\n",
		"go.mod":      "module example.org/x\n",
		"docs/b.json": "{}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// agent runs the demo with the real tools of these names, nil for all.
func agent(t *testing.T, dir string, names []string) *runtime.Agent {
	t.Helper()
	var tools []tool.Tool
	if names == nil || len(names) > 0 {
		var err error
		if tools, err = toolset.New(toolset.Options{Root: dir, Names: names}); err != nil {
			t.Fatal(err)
		}
	}
	rt, err := runtime.New(runtime.Options{Providers: map[string]llm.Provider{"demo": demo.New(demo.Options{})}, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	a, err := rt.Create(t.Context(), runtime.Spec{Provider: "demo", Model: demo.Model, CWD: dir})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// ask runs a prompt and returns the final text and the calls of each step.
func ask(t *testing.T, a *runtime.Agent, prompt string) (text string, steps [][]string) {
	t.Helper()
	before, err := a.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, err := a.Run(t.Context(), prompt)
	if err != nil || !out.OK() {
		t.Fatalf("%q: %v, %v", prompt, err, out.Err())
	}
	for ev, err := range a.Events(t.Context(), before.Next) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := ev.Data.(dsh.AssistantMessage); ok {
			var calls []string
			for _, b := range m.Message.Content {
				if c, ok := b.(dsh.ToolCall); ok {
					calls = append(calls, c.Name+c.Arguments)
				}
			}
			if calls != nil {
				steps = append(steps, calls)
			}
		}
	}
	return out.Text(), steps
}

func TestPrompts(t *testing.T) {
	tests := []struct {
		prompt string
		steps  []string // calls of a step, joined by a space
		says   []string
	}{
		{
			prompt: "List the files here, please.",
			steps:  []string{`list_files{}`},
			says:   []string{"holds 3 files and 1 directory: README.md, go.mod, main.go, docs/"},
		},
		{
			prompt: "list files in docs, read main.go and search for TODO",
			steps:  []string{`list_files{"path":"docs"} read_file{"path":"main.go"} search{"pattern":"TODO"}`},
			says:   []string{"docs holds 2 files", "main.go has 5 lines and 8 words", "2 lines match TODO in 2 files; the first is line 7 of README.md: TODO: more"},
		},
		{
			prompt: "Summarise README.md and write it to notes/summary.md.",
			steps: []string{
				`read_file{"path":"README.md"}`,
				`write_file{"content":"Noted by the scripted demo of dsh-actor:\n\n- README.md has 7 lines and 8 words; its headings are Title and Use.\n","path":"notes/summary.md"}`,
			},
			says: []string{"Created notes/summary.md"},
		},
		{
			prompt: "run `printf 'a\\nb\\n'` and then \"exit 3\"",
			steps:  []string{`shell{"command":"printf 'a\\nb\\n'"} shell{"command":"exit 3"}`},
			says:   []string{"ended with exit status 0 and said 2 lines, the last: b", "`exit 3` ended with exit status 3 and said nothing."},
		},
		{
			prompt: `Write "hello world" to hello.txt`,
			steps:  []string{`write_file{"content":"hello world\n","path":"hello.txt"}`},
			says:   []string{"Created hello.txt: 1 line, 12 bytes."},
		},
		{
			prompt: "create a file named greet.txt containing good morning, all",
			steps:  []string{`write_file{"content":"good morning all\n","path":"greet.txt"}`},
		},
		{
			prompt: "Make a plan, then list the go files.",
			steps: []string{
				`todo{"todos":[{"content":"list the files like *.go","status":"in_progress"}]}`,
				`list_files{"pattern":"*.go"}`,
				`todo{"todos":[{"content":"list the files like *.go","status":"completed"}]}`,
			},
			says: []string{"The plan is written down: 1 of 1 completed.", "holds 1 file like *.go"},
		},
		{
			prompt: "Explain this project.",
			steps:  []string{`list_files{}`, `read_file{"path":"README.md"} read_file{"path":"go.mod"}`},
			says:   []string{"its headings are Title and Use", "it begins: module example.org/x"},
		},
		{
			prompt: "What is in main.go?",
			steps:  []string{`read_file{"path":"main.go"}`},
			says:   []string{"it declares func main and type thing"},
		},
		{
			prompt: "grep `func (` in *.go",
			steps:  []string{`search{"glob":"*.go","pattern":"func \\("}`},
			says:   []string{`Nothing matches func \(.`},
		},
		{
			prompt: "read nothere.go and list the files in docs",
			steps:  []string{`read_file{"path":"nothere.go"} list_files{"path":"docs"}`},
			says:   []string{"read_file failed: nothere.go: no such file", "docs holds 2 files"},
		},
		{
			prompt: "Hello!",
			steps:  []string{`list_files{}`},
			says:   []string{"holds 3 files", "Ask me to list files"},
		},
		{
			prompt: "Sing me a song.",
			steps:  []string{`list_files{}`},
			says:   []string{"There is more that I can do."},
		},
	}
	for _, tt := range tests {
		t.Run(tt.prompt, func(t *testing.T) {
			text, steps := ask(t, agent(t, project(t), nil), tt.prompt)
			var got []string
			for _, calls := range steps {
				got = append(got, strings.Join(calls, " "))
			}
			if strings.Join(got, "\n") != strings.Join(tt.steps, "\n") {
				t.Errorf("steps:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.steps, "\n"))
			}
			for _, want := range tt.says {
				if !strings.Contains(text, want) {
					t.Errorf("the answer does not say %q:\n%s", want, text)
				}
			}
		})
	}
}

// The first words of a session, and only those, say what the demo is.
func TestIntroduction(t *testing.T) {
	a := agent(t, project(t), nil)
	var said []string
	for range 2 {
		ask(t, a, "list the files")
	}
	for ev := range a.Events(t.Context(), 0) {
		if m, ok := ev.Data.(dsh.AssistantMessage); ok {
			said = append(said, dsh.TextOf(m.Message.Content))
		}
	}
	if !strings.HasPrefix(said[0], demo.Introduction) || strings.Count(strings.Join(said, "\n"), demo.Introduction) != 1 {
		t.Errorf("said: %q", said)
	}
	for _, word := range []string{"scripted demo", "without a language model", "DEEPSEEK_API_KEY", "OPENAI_API_KEY"} {
		if !strings.Contains(demo.Introduction, word) {
			t.Errorf("the introduction does not say %q", word)
		}
	}
}

func TestFollowups(t *testing.T) {
	a := agent(t, project(t), nil)
	for _, turn := range []struct{ prompt, calls string }{
		{"list files", `list_files{}`},
		{"read the first one", `read_file{"path":"README.md"}`},
		{"now summarise it", `read_file{"path":"README.md"}`},
		{"again", `read_file{"path":"README.md"}`},
		{"save it to out.txt", `write_file{"content":"Noted`},
	} {
		_, steps := ask(t, a, turn.prompt)
		if len(steps) != 1 || len(steps[0]) != 1 || !strings.HasPrefix(steps[0][0], turn.calls) {
			t.Errorf("%q: calls %q, want %q", turn.prompt, steps, turn.calls)
		}
	}
}

func TestNoTools(t *testing.T) {
	text, steps := ask(t, agent(t, project(t), []string{}), "list files and read go.mod")
	if steps != nil || !strings.Contains(text, "I could not list the files: this agent has no tool for it") {
		t.Errorf("steps %q, text %q", steps, text)
	}
	text, steps = ask(t, agent(t, project(t), []string{"shell"}), "read go.mod and run `true`")
	if len(steps) != 1 || !strings.Contains(text, "I could not read go.mod") {
		t.Errorf("steps %q, text %q", steps, text)
	}
}

// stream collects the chunks of a request.
func stream(ctx context.Context, p *demo.Provider, req *dsh.Request) (chunks []dsh.Chunk, err error) {
	for c, err := range p.Stream(ctx, req) {
		if err != nil {
			return chunks, err
		}
		chunks = append(chunks, c)
	}
	return chunks, nil
}

func request(prompt string) *dsh.Request {
	return &dsh.Request{Header: &dsh.Header{}, Messages: []*dsh.Message{dsh.UserText(prompt)}, Pos: dsh.Pos{Turn: 1, Step: 1}}
}

func TestMaxTokens(t *testing.T) {
	req := request("hi")
	req.Header.Config.MaxTokens = 10
	chunks, err := stream(t.Context(), demo.New(demo.Options{}), req)
	if err != nil {
		t.Fatal(err)
	}
	u := chunks[len(chunks)-2].(dsh.Usage)
	if f := chunks[len(chunks)-1].(dsh.Finish); f.Reason.Kind != dsh.FinishMaxTokens || u.OutputTokens > 10 || u.OutputTokens == 0 {
		t.Errorf("finish %v, usage %v", f, u)
	}
}

func TestPaceAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := demo.New(demo.Options{Pace: time.Second})
		start := time.Now()
		chunks, err := stream(t.Context(), p, request("hi"))
		if took := time.Since(start); err != nil || took < 10*time.Second || took > time.Duration(len(chunks))*time.Second {
			t.Errorf("%d chunks took %v: %v", len(chunks), took, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		start = time.Now()
		_, err = stream(ctx, p, request("hi"))
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 3500*time.Millisecond {
			t.Errorf("cancelled: %v after %v", err, took)
		}
	})
}

// The same request gets the same answer, and the deltas are the blocks.
func TestDeterministic(t *testing.T) {
	first, _ := stream(t.Context(), demo.New(demo.Options{}), request("list files"))
	second, _ := stream(t.Context(), demo.New(demo.Options{}), request("list files"))
	if len(first) != len(second) {
		t.Fatalf("%d and %d chunks", len(first), len(second))
	}
	text := ""
	for i := range first {
		if d, ok := first[i].(dsh.TextDelta); ok {
			text += d.Text
			if d != second[i] {
				t.Errorf("chunk %d differs", i)
			}
		}
		if e, ok := first[i].(dsh.BlockEnd); ok && e.Block != (dsh.Text{Text: text}) {
			t.Errorf("block %q, deltas %q", e.Block, text)
		}
	}
}

// Asked for helpers, the demo splits the work over sub-agents.
func TestHelpers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := subagent.New(subagent.Options{})
		if err != nil {
			t.Fatal(err)
		}
		dir := project(t)
		tools, err := toolset.New(toolset.Options{Root: dir})
		if err != nil {
			t.Fatal(err)
		}
		rt, err := runtime.New(runtime.Options{
			Providers: map[string]llm.Provider{"demo": demo.New(demo.Options{})}, Tools: append(tools, set.Tools()...),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close(context.Background())
		a, err := rt.Create(t.Context(), runtime.Spec{Provider: "demo", Model: demo.Model, CWD: dir})
		if err != nil {
			t.Fatal(err)
		}
		text, steps := ask(t, a, "List the files and read go.mod with three helpers")
		if len(steps) != 1 || len(steps[0]) != 3 || !strings.HasPrefix(steps[0][0], "subagent{") {
			t.Errorf("steps %q", steps)
		}
		for _, want := range []string{"asked to list the files. It said", "go.mod has 1 line", "search for TODO"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q lacks %q", text, want)
			}
		}
	})
}
