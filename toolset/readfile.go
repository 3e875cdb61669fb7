package toolset

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dsh-actor/dsh-actor/tool"
)

// maxLine is how much of one line is shown, in bytes.
const maxLine = 2000

type readFile struct {
	*workspace
	maxLines, maxOutput int
}

type readArgs struct {
	Path   string `json:"path" jsonschema:"the file to read"`
	Offset int    `json:"offset,omitempty" jsonschema:"number of the first line to show; 1 is the first of the file and the default"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines to show at most"`
}

func newReadFile(w *workspace, o Options) tool.Tool {
	r := readFile{workspace: w, maxLines: o.MaxLines, maxOutput: o.MaxOutput}
	return tool.FuncResult(ReadFile, fmt.Sprintf("Reads a text file. Each line is shown behind its number and a tab, which are not part of the file. "+
		"At most %d lines are shown at once; use offset to go on.", o.MaxLines), r.run, tool.Parallel)
}

func (r readFile) run(ctx context.Context, in readArgs) (tool.Result, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return tool.Result{}, badArgs("offset and limit count lines from 1; they cannot be negative.")
	}
	p, err := r.locate(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	defer p.close()
	f, _, err := p.open()
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()

	text := bufio.NewReaderSize(f, 64<<10)
	probe, err := text.Peek(binaryProbe)
	if err != nil && !errors.Is(err, io.EOF) {
		return tool.Result{}, fileError(p.shown, err)
	}
	if isBinary(probe) {
		return tool.Result{}, binary(p.shown)
	}
	v := view{first: max(in.Offset, 1), limit: r.maxLines, maxOutput: r.maxOutput}
	if in.Limit > 0 {
		v.limit = min(in.Limit, r.maxLines)
	}
	if err := v.fill(ctx, text); err != nil {
		return tool.Result{}, fileError(p.shown, err)
	}
	return v.result(p.shown)
}

// A view is the part of a file that one call shows.
type view struct {
	first, limit, maxOutput int

	out   strings.Builder
	last  int  // number of the last line read
	shown int  // number of the last line in out
	more  bool // the file goes on behind it
	crlf  bool
}

// fill reads up to the end of the view and one byte further, to know whether
// the file goes on.
func (v *view) fill(ctx context.Context, text *bufio.Reader) error {
	for {
		if v.last%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		full := v.last+1 >= v.first+v.limit || v.out.Len() >= v.maxOutput
		if full {
			_, err := text.Peek(1)
			v.more = err == nil
			return nil
		}
		line, dropped, err := readLine(text)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		v.last++
		if v.last < v.first {
			continue
		}
		v.add(line, dropped)
	}
}

func (v *view) add(line []byte, dropped int) {
	if bytes.HasSuffix(line, []byte("\r")) {
		v.crlf = true
		line = line[:len(line)-1]
	}
	fmt.Fprintf(&v.out, "%6d\t%s", v.last, strings.ToValidUTF8(string(line), "\uFFFD"))
	if dropped > 0 {
		fmt.Fprintf(&v.out, " [… %d more bytes in this line]", dropped)
	}
	v.out.WriteByte('\n')
	v.shown = v.last
}

// readLine returns the next line without its end, cut to maxLine. The slice is
// the caller's. io.EOF means that there is none.
func readLine(text *bufio.Reader) (line []byte, dropped int, err error) {
	some := false
	for {
		part, err := text.ReadSlice('\n')
		some = some || len(part) > 0
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		keep := min(len(part), maxLine-len(line))
		line = append(line, part[:keep]...)
		dropped += len(part) - keep
		switch {
		case ended, errors.Is(err, io.EOF) && some:
			return line, dropped, nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return nil, 0, err
		}
	}
}

func (v *view) result(shown string) (tool.Result, error) {
	switch {
	case v.last == 0:
		return tool.Textf("%s is empty.", shown), nil
	case v.shown == 0:
		return tool.Result{}, tool.Errorf(CodeOutOfRange, "%s has %s; offset %d is behind its end.", shown, plural(v.last, "line"), v.first)
	}
	if v.crlf {
		v.out.WriteString("[Lines end with CR LF.]\n")
	}
	if v.more {
		fmt.Fprintf(&v.out, "[The file goes on; continue with offset %d.]\n", v.shown+1)
	}
	res := tool.Text(v.out.String())
	res.Meta = meta(readMeta{Path: shown, First: v.first, Last: v.shown, More: v.more})
	return res, nil
}

type readMeta struct {
	Path  string `json:"path"`
	First int    `json:"firstLine"`
	Last  int    `json:"lastLine"`
	More  bool   `json:"more,omitempty"`
}
