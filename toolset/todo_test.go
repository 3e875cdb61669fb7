package toolset

import (
	"context"
	"errors"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// logger is an agent that keeps the facts it was given.
type logger struct {
	hook.Agent
	facts []dsh.Fact
	err   error
}

func (l *logger) Append(_ context.Context, fact dsh.Fact, op dsh.SurfaceOp, sources *dsh.Sources) (dsh.Seq, error) {
	if op != (dsh.SurfaceOp{}) || sources != nil {
		return 0, errors.New("a todo is no surface event")
	}
	l.facts = append(l.facts, fact)
	return 0, l.err
}

func TestTodo(t *testing.T) {
	k := newKit(t, Options{})
	list := args{"todos": []args{
		{"content": "read", "status": "completed"},
		{"content": "write", "status": "in_progress", "activeForm": "writing"},
		{"content": "test", "status": "pending"},
	}}
	const want = "1. [x] read\n2. [>] write\n3. [ ] test\n1 of 3 completed."
	if got := k.want(Todo, list); got != want {
		t.Errorf("without an agent: %q", got)
	}
	var l logger
	ctx := hook.WithAgent(t.Context(), &l)
	res, err := k.call(ctx, Todo, list)
	if err != nil || dsh.TextOf(res.Content) != want {
		t.Errorf("%v %v", res, err)
	}
	if _, err := k.call(ctx, Todo, args{"todos": []args{}}); err != nil {
		t.Error(err)
	}
	if len(l.facts) != 2 {
		t.Fatalf("logged %v", l.facts)
	}
	first, last := l.facts[0].(dsh.Opaque), l.facts[1].(dsh.Opaque)
	if first.Name != "todo/write" || string(first.Raw) != `{"todos":[{"content":"read","status":"completed"},`+
		`{"activeForm":"writing","content":"write","status":"in_progress"},{"content":"test","status":"pending"}]}` {
		t.Errorf("logged %s", first.Raw)
	}
	if string(last.Raw) != `{"todos":[]}` {
		t.Errorf("logged %s", last.Raw)
	}
	l.err = errors.New("the agent is gone")
	if _, err := k.call(ctx, Todo, list); !errors.Is(err, l.err) {
		t.Errorf("got %v", err)
	}
}

func TestTodoRefuses(t *testing.T) {
	k := newKit(t, Options{})
	k.refuse("INVALID_ARGS", Todo, args{}, "todos: missing")
	k.refuse("INVALID_ARGS", Todo, args{"todos": nil}, "todos: expected array, got null")
	k.refuse("INVALID_ARGS", Todo, args{"todos": []args{{"content": "x", "status": "done"}}}, `todos[0].status: expected one of "pending","in_progress","completed", got string "done"`)
	k.refuse("INVALID_ARGS", Todo, args{"todos": []args{{"content": "", "status": "pending"}}}, "todos[0].content: expected at least 1 characters")
	k.refuse("INVALID_ARGS", Todo, args{"todos": make([]args, 201)}, "at most 200 items")
}
