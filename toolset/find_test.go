package toolset

import (
	"fmt"
	"strings"
	"testing"
)

func TestListFiles(t *testing.T) {
	k := newKit(t, Options{MaxEntries: 5})
	for _, name := range []string{"b.go", "a.go", "sub/c.go", "sub/deep/d.go", "sub/e.txt", ".git/config", "sub/.git", ".hidden"} {
		k.write(name, "x")
	}
	for _, c := range []struct {
		args args
		want string
	}{
		{args{}, ".hidden\na.go\nb.go\nsub/\n"},
		{args{"include_git": true}, ".git/\n.hidden\na.go\nb.go\nsub/\n"},
		{args{"path": "sub"}, "sub/deep/\nsub/e.txt\nsub/c.go\n"},
		{args{"pattern": "*.go"}, "a.go\nb.go\nsub/c.go\nsub/deep/d.go\n"},
		{args{"pattern": "*/*.go"}, "sub/c.go\n"},
		{args{"pattern": "./*.go"}, "a.go\nb.go\n"},
		{args{"pattern": "**/*.{txt,go}", "path": "sub"}, "sub/c.go\nsub/deep/d.go\nsub/e.txt\n"},
		{args{"pattern": "**/deep"}, "sub/deep/\n"},
		{args{"pattern": "*.rs"}, "Nothing in . fits *.rs.\n"},
		{args{"pattern": "config", "include_git": true}, ".git/config\n"},
	} {
		got := k.want(ListFiles, c.args)
		if sorted(got) != sorted(c.want) || got != sorted(got) && !strings.Contains(got, "Nothing") {
			t.Errorf("%v: %q", c.args, got)
		}
	}
	k.write("one-more", "")
	k.write("two-more", "")
	if got := k.want(ListFiles, args{}); got != ".hidden\na.go\nb.go\none-more\nsub/\n[There are more; 5 entries shown. Narrow the path or the pattern.]\n" {
		t.Errorf("%q", got)
	}
}

func sorted(text string) string {
	lines := strings.SplitAfter(text, "\n")
	lines = lines[:len(lines)-1]
	for i := range lines {
		for j := i; j > 0 && lines[j] < lines[j-1]; j-- {
			lines[j], lines[j-1] = lines[j-1], lines[j]
		}
	}
	return strings.Join(lines, "")
}

func TestListFilesRefuses(t *testing.T) {
	k := newKit(t, Options{MaxOutput: 100})
	k.write("file.txt", "x")
	k.refuse(CodeNoDirectory, ListFiles, args{"path": "file.txt"}, "read_file")
	k.refuse(CodeNotFound, ListFiles, args{"path": "fiel.txt"}, "Near it: file.txt")
	k.refuse("INVALID_ARGS", ListFiles, args{"pattern": "[a"}, "not a valid glob")
	for i := range 50 {
		k.write(fmt.Sprintf("file%02d", i), "")
	}
	if got := k.want(ListFiles, args{}); len(got) > 250 || !strings.Contains(got, "There are more") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	empty := newKit(t, Options{})
	if got := empty.want(ListFiles, args{}); got != ". has no entries.\n" {
		t.Error(got)
	}
}

func TestSearch(t *testing.T) {
	k := newKit(t, Options{MaxMatches: 4, MaxFile: 10_000})
	k.write("a.go", "package a\n\nfunc One() {}\nfunc Two() {}\n// end\n")
	k.write("sub/b.txt", "func in text\r\nlast")
	k.write(".git/c", "func in git\n")
	k.write("bin", "func\x00\n")
	k.write("big", strings.Repeat("func\n", 3000))
	const large = "[Passed over 1 file too large to search.]\n"
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"pattern": "^func"}, "a.go:3: func One() {}\na.go:4: func Two() {}\nsub/b.txt:1: func in text\n" + large},
		{args{"pattern": "^func", "glob": "*.go"}, "a.go:3: func One() {}\na.go:4: func Two() {}\n"},
		{args{"pattern": "text$", "glob": "sub/*"}, "sub/b.txt:1: func in text\n"},
		{args{"pattern": "FUNC t", "ignore_case": true, "path": "a.go"}, "a.go:4: func Two() {}\n"},
		{args{"pattern": "One|end", "path": "a.go", "context": 1}, "a.go-2- \na.go:3: func One() {}\na.go-4- func Two() {}\na.go:5: // end\n"},
		{args{"pattern": "package|end", "path": "a.go", "context": 1}, "a.go:1: package a\na.go-2- \n--\na.go-4- func Two() {}\na.go:5: // end\n"},
		{args{"pattern": "last|end", "context": 1, "glob": "*.{go,txt}"}, "a.go-4- func Two() {}\na.go:5: // end\n--\nsub/b.txt-1- func in text\nsub/b.txt:2: last\n"},
		{args{"pattern": "nowhere", "path": "sub"}, "No line matches nowhere in 1 file.\n"},
	} {
		if got := k.want(Search, c.args); got != c.want {
			t.Errorf("%v:\n%s\nwant\n%s", c.args, got, c.want)
		}
	}
	k.write("sub/many", strings.Repeat("many "+strings.Repeat("x", 500)+"\n", 10))
	got := k.want(Search, args{"pattern": "^many"})
	if strings.Count(got, "\n") != 6 || !strings.Contains(got, "[There are more; 4 matches shown.") || len(got) > 1500 {
		t.Errorf("%s", got)
	}
	res, err := k.call(t.Context(), Search, args{"pattern": "^func", "glob": "*.go"})
	if err != nil || string(res.Meta) != `{"matches":2,"files":1}` {
		t.Errorf("meta %s %v", res.Meta, err)
	}
}

func TestSearchRefuses(t *testing.T) {
	k := newKit(t, Options{MaxFile: 10})
	k.write("bin", "a\x00")
	k.write("big", "12345678901")
	k.refuse("INVALID_ARGS", Search, args{"pattern": "("}, "RE2")
	k.refuse("INVALID_ARGS", Search, args{"pattern": "x", "glob": "{a"}, "glob")
	k.refuse("INVALID_ARGS", Search, args{"pattern": "x", "context": 11}, "0 to 10")
	k.refuse(CodeBinary, Search, args{"pattern": "x", "path": "bin"})
	k.refuse(CodeTooLarge, Search, args{"pattern": "x", "path": "big"})
	k.refuse(CodeNotFound, Search, args{"pattern": "x", "path": "none"})
}
