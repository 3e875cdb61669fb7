package dsh_test

import (
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

func TestCheckRequest(t *testing.T) {
	user := dsh.UserText("hello")
	answer := func(content ...dsh.Block) *dsh.Message {
		return &dsh.Message{Role: dsh.RoleAssistant, Content: content}
	}
	result := func(id dsh.CallID) *dsh.Message {
		return &dsh.Message{Role: dsh.RoleUser, Content: []dsh.Block{dsh.ToolResult{CallID: id}}}
	}
	a, b := dsh.ToolCall{ID: "a"}, dsh.ToolCall{ID: "b"}
	text := dsh.Text{Text: "text"}
	for _, tc := range []struct {
		name     string
		messages []*dsh.Message
		want     string
	}{
		{"nothing", nil, ""},
		{"talk", []*dsh.Message{user, answer(text), user}, ""},
		{"calls", []*dsh.Message{user, answer(text, a, b), result("a"), result("b"), answer(a), result("a"), user}, ""},
		{"a system message", []*dsh.Message{{Role: dsh.RoleSystem, Content: []dsh.Block{text}}, user}, ""},
		{"empty answer", []*dsh.Message{user, answer()}, "message 1: rule 1"},
		{"one ID twice", []*dsh.Message{answer(a, a), result("a"), result("a")}, "message 0: rule 2"},
		{"no result", []*dsh.Message{user, answer(a)}, `message 2: rule 3: the result for "a"`},
		{"one result missing", []*dsh.Message{answer(a, b), result("a"), answer(text)}, `message 2: rule 3: the result for "b"`},
		{"something between", []*dsh.Message{answer(a), user, result("a")}, "message 1: rule 3"},
		{"other order", []*dsh.Message{answer(a, b), result("b"), result("a")}, "message 1: rule 3"},
		{"orphan", []*dsh.Message{user, result("a")}, "message 1: rule 4"},
		{"a result too many", []*dsh.Message{answer(a), result("a"), result("a")}, "message 2: rule 4"},
		{"orphan of an old answer", []*dsh.Message{answer(a), result("a"), user, result("a")}, "message 3: rule 4"},
		{"result with text", []*dsh.Message{answer(a), {Role: dsh.RoleUser, Content: []dsh.Block{dsh.ToolResult{CallID: "a"}, text}}}, "message 1: rule 5"},
		{"result of an assistant", []*dsh.Message{answer(dsh.ToolResult{CallID: "a"})}, "message 0: rule 5"},
		{"call of a user", []*dsh.Message{{Role: dsh.RoleUser, Content: []dsh.Block{a}}}, "message 0: rule 5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := dsh.CheckRequest(tc.messages)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
