package toolset

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A kit is a directory and the tools that work in it.
type kit struct {
	t   *testing.T
	dir string
	set *tool.Set
}

func newKit(t *testing.T, o Options) *kit {
	t.Helper()
	if o.Root == "" {
		o.Root = t.TempDir()
	}
	tools, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := tool.NewRegistry(nil)
	if err := r.Register(tools...); err != nil {
		t.Fatal(err)
	}
	return &kit{t: t, dir: o.Root, set: r.Snapshot()}
}

func (k *kit) path(name string) string { return filepath.Join(k.dir, name) }

func (k *kit) write(name, content string) {
	k.t.Helper()
	if err := os.MkdirAll(filepath.Dir(k.path(name)), 0o777); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(k.path(name), []byte(content), 0o644); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) content(name string) string {
	k.t.Helper()
	content, err := os.ReadFile(k.path(name))
	if err != nil {
		k.t.Fatal(err)
	}
	return string(content)
}

// call runs a tool as an agent would.
func (k *kit) call(ctx context.Context, name string, args any) (tool.Result, error) {
	k.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		k.t.Fatal(err)
	}
	e, ok := k.set.Lookup(name)
	if !ok {
		k.t.Fatalf("no tool %s", name)
	}
	return e.Run(ctx, tool.Call{ID: "c1", Name: name, Args: raw})
}

type args = map[string]any

// want runs a tool that succeeds and returns its text.
func (k *kit) want(name string, a args) string {
	k.t.Helper()
	res, err := k.call(k.t.Context(), name, a)
	if err != nil {
		k.t.Fatalf("%s %v: %v", name, a, err)
	}
	return dsh.TextOf(res.Content)
}

// refuse runs a tool that fails with code and a text that holds each part.
func (k *kit) refuse(code, name string, a args, parts ...string) {
	k.t.Helper()
	_, err := k.call(k.t.Context(), name, a)
	var own *tool.Error
	if !errors.As(err, &own) || own.Code != code {
		k.t.Errorf("%s %v: got %v, want %s", name, a, err, code)
		return
	}
	for _, part := range parts {
		if !strings.Contains(own.Message, part) {
			k.t.Errorf("%s %v: the error lacks %q: %s", name, a, part, own.Message)
		}
	}
}
