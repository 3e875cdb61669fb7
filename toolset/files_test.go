package toolset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestReadFile(t *testing.T) {
	k := newKit(t, Options{MaxLines: 3})
	k.write("a.txt", "one\ntwo\nthree\nfour\nfive")
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"path": "a.txt"}, "     1\tone\n     2\ttwo\n     3\tthree\n[The file goes on; continue with offset 4.]\n"},
		{args{"path": "a.txt", "offset": 4}, "     4\tfour\n     5\tfive\n"},
		{args{"path": "a.txt", "offset": 2, "limit": 1}, "     2\ttwo\n[The file goes on; continue with offset 3.]\n"},
		{args{"path": k.path("a.txt"), "offset": 5, "limit": 100}, "     5\tfive\n"},
		{args{"path": "./x/../a.txt", "offset": 3, "limit": 3}, "     3\tthree\n     4\tfour\n     5\tfive\n"},
	} {
		if got := k.want(ReadFile, c.args); got != c.want {
			t.Errorf("%v: %q", c.args, got)
		}
	}
	res, err := k.call(t.Context(), ReadFile, args{"path": "a.txt"})
	if err != nil || string(res.Meta) != `{"path":"a.txt","firstLine":1,"lastLine":3,"more":true}` {
		t.Errorf("meta %s %v", res.Meta, err)
	}
}

func TestReadFileOddContent(t *testing.T) {
	k := newKit(t, Options{MaxOutput: 5000})
	k.write("empty", "")
	k.write("crlf", "a\r\nb\r\n")
	k.write("long", strings.Repeat("x", 200_000)+"\nend\n")
	k.write("invalid", "caf\xe9\n")
	k.write("many", strings.Repeat("0123456789\n", 1000))
	k.write("no-end", "x\n\ny")
	k.write("binary", "MZ\x00\x01")
	for name, want := range map[string]string{
		"empty":   "empty is empty.",
		"crlf":    "     1\ta\n     2\tb\n[Lines end with CR LF.]\n",
		"long":    "     1\t" + strings.Repeat("x", 2000) + " [… 198000 more bytes in this line]\n     2\tend\n",
		"invalid": "     1\tcaf\uFFFD\n",
		"no-end":  "     1\tx\n     2\t\n     3\ty\n",
	} {
		if got := k.want(ReadFile, args{"path": name}); got != want {
			t.Errorf("%s: %.100q", name, got)
		}
	}
	if got := k.want(ReadFile, args{"path": "many"}); len(got) > 5200 || !strings.Contains(got, "continue with offset 279.") {
		t.Errorf("%d bytes, ends %q", len(got), got[len(got)-60:])
	}
	k.refuse(CodeBinary, ReadFile, args{"path": "binary"}, "binary")
}

func TestReadFileRefuses(t *testing.T) {
	k := newKit(t, Options{})
	k.write("dir/readme.md", "one\n")
	k.refuse(CodeNotFound, ReadFile, args{"path": "dir/raedme.md"}, "dir/raedme.md", "Near it: readme.md.")
	k.refuse(CodeNotFound, ReadFile, args{"path": "no/such/file"}, "no/such/file")
	k.refuse(CodeIsDirectory, ReadFile, args{"path": "dir"}, "list_files")
	k.refuse(CodeNoDirectory, ReadFile, args{"path": "dir/readme.md/x"})
	k.refuse(CodeOutOfRange, ReadFile, args{"path": "dir/readme.md", "offset": 2}, "has 1 line", "offset 2")
	k.refuse("INVALID_ARGS", ReadFile, args{"path": "dir/readme.md", "offset": -1})
	k.refuse("INVALID_ARGS", ReadFile, args{})
	k.refuse("INVALID_ARGS", ReadFile, args{"path": "x", "file": "y"}, "file: unknown argument")
	if os.Getuid() != 0 {
		k.write("locked", "x")
		if err := os.Chmod(k.path("locked"), 0); err != nil {
			t.Fatal(err)
		}
		k.refuse(CodePermission, ReadFile, args{"path": "locked"})
	}
}

func TestReadFileStopsWithTheTurn(t *testing.T) {
	k := newKit(t, Options{})
	k.write("a", strings.Repeat("x\n", 10_000))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, a := range map[string]args{
		ReadFile: {"path": "a", "offset": 9000}, Search: {"pattern": "x"}, ListFiles: {},
	} {
		if _, err := k.call(ctx, name, a); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWriteFile(t *testing.T) {
	k := newKit(t, Options{MaxFile: 100})
	if got := k.want(WriteFile, args{"path": "new/deep/a.txt", "content": "one\ntwo"}); got != "Created new/deep/a.txt: 2 lines, 7 bytes." {
		t.Error(got)
	}
	if err := os.Chmod(k.path("new/deep/a.txt"), 0o750); err != nil {
		t.Fatal(err)
	}
	if got := k.want(WriteFile, args{"path": "new/deep/a.txt", "content": ""}); got != "Replaced new/deep/a.txt: 0 lines, 0 bytes." {
		t.Error(got)
	}
	info, err := os.Stat(k.path("new/deep/a.txt"))
	if err != nil || info.Mode().Perm() != 0o750 || info.Size() != 0 {
		t.Errorf("%v %v", info, err)
	}
	k.refuse(CodeIsDirectory, WriteFile, args{"path": "new", "content": ""})
	k.refuse(CodeIsDirectory, WriteFile, args{"path": ".", "content": ""})
	k.refuse(CodeNoDirectory, WriteFile, args{"path": "new/deep/a.txt/b", "content": ""})
	k.refuse(CodeTooLarge, WriteFile, args{"path": "b", "content": strings.Repeat("x", 101)}, "at most 100")
	if left, _ := filepath.Glob(k.path("new/deep/.*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestEditFile(t *testing.T) {
	k := newKit(t, Options{})
	k.write("a.go", "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n")
	if err := os.Chmod(k.path("a.go"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := k.want(EditFile, args{"path": "a.go", "old_string": "b() {\n\treturn 1", "new_string": "b() {\n\treturn 2"}); got != "Replaced 1 occurrence in a.go, the first in line 5." {
		t.Error(got)
	}
	k.want(EditFile, args{"path": "a.go", "old_string": "func", "new_string": "fn", "replace_all": true})
	k.want(EditFile, args{"path": "a.go", "old_string": "fn a() {\n\treturn 1\n}\n\n", "new_string": ""})
	if got := k.content("a.go"); got != "fn b() {\n\treturn 2\n}\n" {
		t.Errorf("%q", got)
	}
	if info, _ := os.Stat(k.path("a.go")); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestEditFileRefuses(t *testing.T) {
	k := newKit(t, Options{MaxFile: 1000})
	k.write("a.go", "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n")
	k.write("dos", "one\r\ntwo\r\n")
	k.write("big", strings.Repeat("x", 1001))
	k.write("bin", "a\x00b")
	edit := func(path, from, to string) args {
		return args{"path": path, "old_string": from, "new_string": to}
	}
	k.refuse(CodeAmbiguous, EditFile, edit("a.go", "return 1", "return 2"), "2 times", "replace_all", "     2\t\treturn 1", "     6\t\treturn 1")
	k.refuse(CodeNoMatch, EditFile, edit("a.go", "func b() {\n    return 1\n}", "x"), "white space only", "     5\tfunc b() {\n     6\t\treturn 1\n     7\t}")
	k.refuse(CodeNoMatch, EditFile, edit("a.go", "func bb() {", "x"), "Most like it is:", "\tfunc b() {")
	k.refuse(CodeNoMatch, EditFile, edit("a.go", "something else entirely", "x"), "Read the file again")
	k.refuse(CodeNoMatch, EditFile, edit("dos", "one\ntwo", "x"), "CR LF")
	k.refuse(CodeNoChange, EditFile, edit("a.go", "func", "func"))
	k.refuse("INVALID_ARGS", EditFile, edit("a.go", "", "x"), "write_file")
	k.refuse(CodeNotFound, EditFile, edit("b.go", "a", "b"), "Near it: a.go")
	k.refuse(CodeIsDirectory, EditFile, edit(".", "a", "b"))
	k.refuse(CodeTooLarge, EditFile, edit("big", "x", "y"), "1001 bytes")
	k.refuse(CodeTooLarge, EditFile, edit("dos", "one", strings.Repeat("y", 1000)), "would have")
	k.refuse(CodeBinary, EditFile, edit("bin", "a", "b"))
	if got := k.content("dos"); got != "one\r\ntwo\r\n" {
		t.Errorf("changed: %q", got)
	}
}

// Edits of one file from several toolsets at once all take effect.
func TestConcurrentEdits(t *testing.T) {
	const n = 24
	one := newKit(t, Options{})
	other := newKit(t, Options{Root: one.dir})
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "line %02d: old\n", i)
	}
	one.write("a.txt", text.String())
	var wg sync.WaitGroup
	for i := range n {
		k := []*kit{one, other}[i%2]
		wg.Go(func() {
			_, err := k.call(t.Context(), EditFile, args{"path": "a.txt", "old_string": fmt.Sprintf("%02d: old", i), "new_string": fmt.Sprintf("%02d: new", i)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := one.content("a.txt"); got != strings.ReplaceAll(text.String(), "old", "new") {
		t.Errorf("lost edits:\n%s", got)
	}
	changing.mu.Lock()
	defer changing.mu.Unlock()
	if len(changing.turns) != 0 {
		t.Errorf("%d locks are left", len(changing.turns))
	}
}

// Who waits for a file gives up with the turn.
func TestEditWaitsNoLongerThanTheTurn(t *testing.T) {
	k := newKit(t, Options{})
	k.write("a", "x")
	key, err := filepath.EvalSymlinks(k.path("a"))
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := changing.lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.call(ctx, EditFile, args{"path": "a", "old_string": "x", "new_string": "y"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
