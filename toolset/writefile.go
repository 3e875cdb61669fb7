package toolset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/dsh-actor/dsh-actor/tool"
)

type writeFile struct {
	*workspace
	maxFile int64
}

type writeArgs struct {
	Path    string `json:"path" jsonschema:"the file to write"`
	Content string `json:"content" jsonschema:"the whole content of the file"`
}

func newWriteFile(w *workspace, o Options) tool.Tool {
	t := writeFile{workspace: w, maxFile: o.MaxFile}
	return tool.FuncResult(WriteFile, "Creates a file or replaces all of its content. Directories on the way are created. "+
		"To change a part of a file use edit_file.", t.run)
}

func (t writeFile) run(ctx context.Context, in writeArgs) (tool.Result, error) {
	if int64(len(in.Content)) > t.maxFile {
		return tool.Result{}, tool.Errorf(CodeTooLarge, "The content has %d bytes; this tool takes at most %d. Write it in parts, or with a command.", len(in.Content), t.maxFile)
	}
	p, done, err := t.change(ctx, in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	defer done()

	var mode fs.FileMode
	did := "Created"
	switch info, err := p.root.Stat(p.rel); {
	case errors.Is(err, fs.ErrNotExist):
		if err := p.root.MkdirAll(filepath.Dir(p.rel), 0o777); err != nil {
			return tool.Result{}, fileError(p.shown, err)
		}
	case err != nil:
		return tool.Result{}, fileError(p.shown, err)
	case info.IsDir():
		return tool.Result{}, tool.Errorf(CodeIsDirectory, "%s is a directory; name a file in it.", p.shown)
	case !info.Mode().IsRegular():
		return tool.Result{}, tool.Errorf(CodeNotAFile, "%s is not a regular file but a %s; it is left alone.", p.shown, kind(info.Mode()))
	default:
		mode, did = info.Mode(), "Replaced"
	}
	if err := p.replace([]byte(in.Content), mode); err != nil {
		return tool.Result{}, err
	}
	res := tool.Textf("%s %s: %s, %s.", did, p.shown, plural(lines([]byte(in.Content)), "line"), plural(len(in.Content), "byte"))
	res.Meta = meta(fileMeta{Path: p.shown, Bytes: len(in.Content), Created: mode == 0})
	return res, nil
}

type fileMeta struct {
	Path         string `json:"path"`
	Bytes        int    `json:"bytes"`
	Created      bool   `json:"created,omitempty"`
	Replacements int    `json:"replacements,omitempty"`
}

// meta is the JSON of one of the meta structs, which always have one.
func meta(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("toolset: meta %T: %v", v, err))
	}
	return raw
}
