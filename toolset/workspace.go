package toolset

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsh-actor/dsh-actor/tool"
)

// A workspace is the directory that file tools work in. It holds no
// descriptor, so thousands of agents may have one each.
type workspace struct {
	dir     string // absolute, without symbolic links
	outside bool   // paths may lead elsewhere
}

// A place is a path that a model named, found within a root. Symbolic links
// were followed as they stood; the root refuses what they became since, if
// that leads out. Whoever locates a place closes it.
type place struct {
	root  *os.Root
	rel   string // within root
	key   string // absolute; the same for every name of the file
	shown string // for the model: relative to the workspace if inside
}

func (p *place) close() { _ = p.root.Close() }

// locate finds path, which need not exist.
func (w *workspace) locate(path string) (*place, error) {
	if path == "" {
		path = "."
	}
	abs := path
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(w.dir, path)
	}
	found, err := follow(filepath.Clean(abs))
	if err != nil {
		return nil, fileError(path, err)
	}
	top, shown := w.dir, found
	rel, err := filepath.Rel(w.dir, found)
	switch inside := err == nil && filepath.IsLocal(rel); {
	case inside:
		shown = rel
	case !w.outside:
		return nil, outside(path)
	default:
		top = filepath.VolumeName(found) + string(filepath.Separator)
		if rel, err = filepath.Rel(top, found); err != nil {
			return nil, fileError(path, err)
		}
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, fileError(top, err)
	}
	return &place{root: root, rel: rel, key: found, shown: filepath.ToSlash(shown)}, nil
}

// change locates a file that is to be changed and keeps other changes of it
// waiting until done is called.
func (w *workspace) change(ctx context.Context, path string) (p *place, done func(), err error) {
	if p, err = w.locate(path); err != nil {
		return nil, nil, err
	}
	unlock, err := changing.lock(ctx, p.key)
	if err != nil {
		p.close()
		return nil, nil, err
	}
	return p, func() { unlock(); p.close() }, nil
}

// follow follows the symbolic links of path as far as it exists.
func follow(path string) (string, error) {
	found, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path, nil
	}
	if dir, err = follow(dir); err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// open opens a regular file for reading. Anything else could block or never
// end.
func (p *place) open() (*os.File, fs.FileInfo, error) {
	info, err := p.root.Stat(p.rel)
	switch {
	case err != nil:
		return nil, nil, p.missing(err)
	case info.IsDir():
		return nil, nil, tool.Errorf(CodeIsDirectory, "%s is a directory. Use list_files to see what is in it.", p.shown)
	case !info.Mode().IsRegular():
		return nil, nil, tool.Errorf(CodeNotAFile, "%s is not a regular file but a %s.", p.shown, kind(info.Mode()))
	}
	f, err := p.root.Open(p.rel)
	if err != nil {
		return nil, nil, p.missing(err)
	}
	return f, info, nil
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// missing is fileError with the names that are near one that does not exist.
func (p *place) missing(err error) error {
	err = fileError(p.shown, err)
	own := new(tool.Error)
	if !errors.As(err, &own) || own.Code != CodeNotFound {
		return err
	}
	const looked = 2000
	dir, openErr := p.root.Open(filepath.Dir(p.rel))
	if openErr != nil {
		return err
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(looked)
	if near := tool.Near(filepath.Base(p.rel), names); len(near) > 0 {
		own.Message += " Near it: " + strings.Join(near, ", ") + "."
	}
	return err
}

// read returns the content of a text file of at most limit bytes.
func (p *place) read(limit int64) ([]byte, fs.FileInfo, error) {
	f, info, err := p.open()
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, nil, fileError(p.shown, err)
	case int64(len(content)) > limit:
		return nil, nil, tool.Errorf(CodeTooLarge, "%s has %d bytes; this tool takes at most %d.", p.shown, max(info.Size(), limit+1), limit)
	case isBinary(content[:min(len(content), binaryProbe)]):
		return nil, nil, binary(p.shown)
	}
	return content, info, nil
}

// binaryProbe is how much of a file is looked at to tell text from bytes.
const binaryProbe = 8000

func isBinary(probe []byte) bool { return bytes.IndexByte(probe, 0) >= 0 }

func binary(shown string) error {
	return tool.Errorf(CodeBinary, "%s is a binary file; it has no lines to show or edit.", shown)
}

// replace makes content the file's content: readers see the old file or the
// new one, never a part. mode is that of the old file, or 0 for a new one,
// which gets what the process's umask leaves.
func (p *place) replace(content []byte, mode fs.FileMode) (err error) {
	temp := filepath.Join(filepath.Dir(p.rel), ".dsh-"+rand.Text()+".tmp")
	perm := mode.Perm()
	if mode == 0 {
		perm = 0o666
	}
	f, err := p.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return fileError(p.shown, err)
	}
	defer func() {
		if err != nil {
			_ = p.root.Remove(temp)
			err = fileError(p.shown, err)
		}
	}()
	_, err = f.Write(content)
	if err == nil && mode != 0 {
		err = f.Chmod(perm)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return p.root.Rename(temp, p.rel)
}

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// maxVisited bounds how many entries one walk looks at.
const maxVisited = 200_000

// walk calls visit for everything below p, directory by directory in the order
// of names. Paths are p's and slash-separated. It does not follow symbolic
// links, passes over directories that it may not read, and over .git unless
// all. cut reports that it gave up; visit ends it with errEnough.
func (p *place) walk(ctx context.Context, all bool, visit func(path string, d fs.DirEntry) error) (cut bool, err error) {
	visited := 0
	start := filepath.ToSlash(p.rel)
	err = fs.WalkDir(p.root.FS(), start, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case path == start:
			return err
		case err != nil:
			return fs.SkipDir
		case !all && d.Name() == ".git":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if visited++; visited > maxVisited {
			return errEnough
		}
		return visit(path, d)
	})
	if errors.Is(err, errEnough) {
		return visited > maxVisited, nil
	}
	return false, err
}

// below returns a path of walk as the model should name it.
func (p *place) below(path string) string {
	start := filepath.ToSlash(p.rel)
	switch {
	case p.shown == start: // inside the workspace: one and the same
		return path
	case path == start:
		return p.shown
	case start == ".":
		return strings.TrimSuffix(p.shown, "/") + "/" + path
	}
	return p.shown + strings.TrimPrefix(path, start)
}

// lines counts the lines of a text; a last one without an end counts.
func lines(text []byte) int {
	n := bytes.Count(text, []byte{'\n'})
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "ch") {
		return fmt.Sprintf("%d %ses", n, one)
	}
	if stem, ok := strings.CutSuffix(one, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, one)
}
