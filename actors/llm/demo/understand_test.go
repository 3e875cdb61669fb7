package demo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Wishes are found in everyday sentences, and none in what only resembles one.
func TestUnderstand(t *testing.T) {
	for prompt, want := range map[string]string{
		"show me the files in src/":              "list the files in src/",
		"find files *.go":                        "list the files like *.go",
		"read `my file.txt`":                     "",
		"read README and LICENSE":                "read README; read LICENSE",
		"How many lines are in a/b.c, and d.go?": "read a/b.c; read d.go",
		"count the lines of x.txt":               "read x.txt",
		"look for panics in internal/":           "search for panics in internal/",
		"please search \"foo bar\" and list .":   "search for foo bar; list the files",
		"run the tests":                          "",
		"run `go test ./...`":                    "run `go test ./...`",
		"write a poem":                           "",
		"read a.go then write \"x\" to b.txt":    "read a.go; write b.txt",
		"save a summary of a.md to b.md":         "read a.md; write b.md",
		"version 1.2 is out, e.g. today":         "",
		"see https://example.org/a.html":         "",
		"search for TODO":                        "search for TODO",
		"it's the plan.md that I mean":           "read plan.md",
		"":                                       "",
		"``` \"\" ' ` ,.":                        "",
	} {
		var got []string
		for _, w := range understand(&talk{prompts: []string{prompt}}) {
			got = append(got, w.String())
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%q: %q, want %q", prompt, strings.Join(got, "; "), want)
		}
	}
}

// A message that is steered into an exchange adds to it; one behind an abort
// begins another, which "go on" leads back to the old one.
func TestListen(t *testing.T) {
	call := &dsh.Message{Role: dsh.RoleAssistant, Content: []dsh.Block{dsh.ToolCall{ID: "demo-1-1-w0", Name: "list_files", Arguments: "{}"}}}
	result := func(text string, failed bool) *dsh.Message {
		return &dsh.Message{Role: dsh.RoleUser, Content: []dsh.Block{dsh.ToolResult{
			CallID: "demo-1-1-w0", Content: []dsh.Block{dsh.Text{Text: text}}, IsError: failed,
		}}}
	}
	for _, tt := range []struct {
		name     string
		messages []*dsh.Message
		want     string
	}{
		{"steered", []*dsh.Message{dsh.UserText("list files"), call, result("a\n", false), dsh.UserText("read x.go")}, "[list files read x.go] 1"},
		{"aborted", []*dsh.Message{dsh.UserText("list files"), call, result(dsh.TextAborted, true), dsh.UserText("go on")}, "[go on] 0"},
		{"plugin", []*dsh.Message{dsh.UserText("list files"), dsh.PluginText("runtime-context", "cwd is x")}, "[list files] 0"},
	} {
		l := listen(tt.messages)
		if got := fmt.Sprint(l.prompts, " ", len(l.calls)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if w := understand(l); len(w) == 0 || w[0].kind != list {
			t.Errorf("%s: wishes %v", tt.name, w)
		}
	}
}

func FuzzReply(f *testing.F) {
	for _, seed := range []string{"list files", "read `x`", "write it to a.b", "“ \" ' `", "summarise ... and / .. ."} {
		f.Add(seed, "     1\tx\n")
	}
	tools := []dsh.ToolSchema{
		{Name: "list_files", Parameters: []byte(`{"properties":{"path":{},"pattern":{}}}`)},
		{Name: "read_file", Parameters: []byte(`{"properties":{"path":{}},"required":["path"]}`)},
		{Name: "todo", Parameters: []byte(`{"properties":{"todos":{}}}`)},
	}
	f.Fuzz(func(t *testing.T, prompt, result string) {
		req := &dsh.Request{Header: &dsh.Header{Tools: tools}, Messages: []*dsh.Message{dsh.UserText(prompt)}}
		for step := 1; ; step++ {
			req.Pos = dsh.Pos{Turn: 1, Step: step}
			a := reply(req)
			if len(a.calls) == 0 {
				return
			}
			if step > 8 {
				t.Fatalf("%q does not end", prompt)
			}
			content := []dsh.Block{dsh.Text{Text: a.text}}
			for _, c := range a.calls {
				content = append(content, c)
			}
			req.Messages = append(req.Messages, &dsh.Message{Role: dsh.RoleAssistant, Content: content})
			for _, c := range a.calls {
				req.Messages = append(req.Messages, &dsh.Message{Role: dsh.RoleUser, Content: []dsh.Block{
					dsh.ToolResult{CallID: c.ID, Content: []dsh.Block{dsh.Text{Text: result}}},
				}})
			}
		}
	})
}
