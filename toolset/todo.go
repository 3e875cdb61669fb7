package toolset

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/tool"
)

// TypeTodoWrite is the type of the event that the todo tool logs: the whole
// list as {"todos":[{"content","status",…}]}.
const TypeTodoWrite = "todo/write"

// Members of an item that the schema does not declare are kept in the log.
const todoSchema = `{"type":"object","properties":{` +
	`"todos":{"type":"array","description":"the whole list, in order; it replaces the last one","maxItems":200,"items":{"type":"object","properties":{` +
	`"content":{"type":"string","description":"what is to be done","minLength":1},` +
	`"status":{"type":"string","enum":["pending","in_progress","completed"]}},` +
	`"required":["content","status"]}}},"required":["todos"]}`

type todoArgs struct {
	Todos []json.RawMessage `json:"todos"`
}

func newTodo() tool.Tool {
	return tool.Func(Todo, "Writes down the plan of the work. Give the whole list every time; an empty one clears it. "+
		"Keep one item in_progress, and mark items completed as soon as they are.", writeTodos,
		tool.WithParameters(json.RawMessage(todoSchema)))
}

func writeTodos(ctx context.Context, in todoArgs) (string, error) {
	if in.Todos == nil {
		in.Todos = []json.RawMessage{}
	}
	var out strings.Builder
	done := 0
	for i, raw := range in.Todos {
		var item struct{ Content, Status string }
		if err := json.Unmarshal(raw, &item); err != nil {
			return "", badArgs("todos[%d]: %v.", i, err)
		}
		box := map[string]string{"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}[item.Status]
		if item.Status == "completed" {
			done++
		}
		fmt.Fprintf(&out, "%d. %s %s\n", i+1, box, item.Content)
	}
	if agent, ok := hook.AgentFrom(ctx); ok {
		fact := dsh.Opaque{Name: TypeTodoWrite, Raw: meta(in)}
		if _, err := agent.Append(ctx, fact, dsh.SurfaceOp{}, nil); err != nil {
			return "", fmt.Errorf("the list was not saved: %w", err)
		}
	}
	if len(in.Todos) == 0 {
		return "The list is empty now.", nil
	}
	fmt.Fprintf(&out, "%d of %d completed.", done, len(in.Todos))
	return out.String(), nil
}
