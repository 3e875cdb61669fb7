//go:build unix

package toolset

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

// No path and no link leads out of the root.
func TestConfinement(t *testing.T) {
	top := t.TempDir()
	secret := filepath.Join(top, "secret", "file")
	if err := os.MkdirAll(filepath.Dir(secret), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "root")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	k := newKit(t, Options{Root: dir})
	link(t, secret, k.path("abs-file"))
	link(t, "../secret/file", k.path("rel-file"))
	link(t, filepath.Dir(secret), k.path("dir"))
	link(t, "dir", k.path("twice"))
	link(t, "../secret/none", k.path("dangling"))
	link(t, "loop", k.path("loop"))

	for _, path := range []string{
		"../secret/file", secret, "/etc/passwd", "abs-file", "rel-file", "dir/file", "twice/file", "dir/none", "x/../../secret/file",
	} {
		k.refuse(CodeOutside, ReadFile, args{"path": path}, "Use a path inside it")
		k.refuse(CodeOutside, WriteFile, args{"path": path, "content": "x"})
		k.refuse(CodeOutside, EditFile, args{"path": path, "old_string": "secret", "new_string": "x"})
		k.refuse(CodeOutside, Search, args{"path": path, "pattern": "secret"})
	}
	for _, path := range []string{"..", "/", "dir", "twice"} {
		k.refuse(CodeOutside, ListFiles, args{"path": path})
	}
	k.refuse(CodeIO, ReadFile, args{"path": "loop"})

	// A dangling link is replaced by a file of its own, or refused.
	if _, err := k.call(t.Context(), WriteFile, args{"path": "dangling", "content": "x"}); err == nil {
		if info, err := os.Lstat(k.path("dangling")); err != nil || !info.Mode().IsRegular() {
			t.Errorf("dangling became %v %v", info, err)
		}
	}
	if _, err := os.Stat(filepath.Join(top, "secret", "none")); err == nil {
		t.Error("a file was made outside")
	}
	if got := k.want(Search, args{"pattern": "secret"}); !strings.HasPrefix(got, "No line matches") {
		t.Errorf("the search followed a link: %s", got)
	}
	if got := k.want(ListFiles, args{"pattern": "**"}); strings.Contains(got, "dir/file") {
		t.Errorf("the listing followed a link: %s", got)
	}
	if content, _ := os.ReadFile(secret); string(content) != "secret\n" {
		t.Errorf("the secret became %q", content)
	}
}

// A link swapped in after a path was resolved is refused by the root.
func TestConfinementAgainstRaces(t *testing.T) {
	top := t.TempDir()
	k := newKit(t, Options{})
	k.write("a/file", "inside")
	w := &workspace{dir: k.dir}
	p, err := w.locate("a/file")
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := os.RemoveAll(k.path("a")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "file"), []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	link(t, top, k.path("a"))
	if _, _, err := p.read(100); err == nil || !strings.Contains(err.Error(), "outside the working directory") {
		t.Errorf("read: %v", err)
	}
	if err := p.replace([]byte("x"), 0); err == nil {
		t.Error("replaced")
	}
}

// Links that stay inside work, whether relative or absolute.
func TestLinksInside(t *testing.T) {
	k := newKit(t, Options{})
	k.write("real/file", "one\n")
	link(t, k.path("real"), k.path("abs"))
	link(t, "real/file", k.path("rel"))
	for _, path := range []string{"abs/file", "rel", k.path("rel")} {
		if got := k.want(ReadFile, args{"path": path}); got != "     1\tone\n" {
			t.Errorf("%s: %q", path, got)
		}
	}
	k.want(WriteFile, args{"path": "rel", "content": "two\n"})
	if got := k.content("real/file"); got != "two\n" {
		t.Errorf("written elsewhere: %q", got)
	}
	if info, err := os.Lstat(k.path("rel")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link became %v %v", info, err)
	}
	if got := k.want(ListFiles, args{"path": "abs"}); got != "real/file\n" {
		t.Errorf("list %q", got)
	}
}

func TestAllowOutside(t *testing.T) {
	other := t.TempDir()
	if resolved, err := filepath.EvalSymlinks(other); err == nil {
		other = resolved
	}
	file := filepath.Join(other, "sub", "a.txt")
	k := newKit(t, Options{AllowOutside: true})
	if got := k.want(WriteFile, args{"path": file, "content": "one\n"}); got != "Created "+file+": 1 line, 4 bytes." {
		t.Error(got)
	}
	link(t, other, k.path("link"))
	for _, path := range []string{file, "link/sub/a.txt"} {
		if got := k.want(ReadFile, args{"path": path}); got != "     1\tone\n" {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got := k.want(ListFiles, args{"path": other, "pattern": "*.txt"}); got != file+"\n" {
		t.Errorf("list %q", got)
	}
	if got := k.want(Search, args{"path": other, "pattern": "one"}); got != file+":1: one\n" {
		t.Errorf("search %q", got)
	}
	k.write("in.txt", "x")
	if got := k.want(ListFiles, args{"pattern": "*.txt"}); got != "in.txt\n" {
		t.Errorf("list inside %q", got)
	}
}

// What is not a regular file could block for ever.
func TestSpecialFiles(t *testing.T) {
	k := newKit(t, Options{AllowOutside: true})
	if err := syscall.Mkfifo(k.path("pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	k.refuse(CodeNotAFile, ReadFile, args{"path": "pipe"}, "pipe")
	k.refuse(CodeNotAFile, ReadFile, args{"path": "/dev/zero"}, "device")
	k.refuse(CodeNotAFile, WriteFile, args{"path": "pipe", "content": "x"})
	k.refuse(CodeNotAFile, Search, args{"path": "pipe", "pattern": "x"})
	if got := k.want(Search, args{"pattern": "x"}); got != "No line matches x in 0 files.\n" {
		t.Error(got)
	}
}
