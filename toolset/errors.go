package toolset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/tool"
)

// Codes of the errors that the tools return as a [*tool.Error]. A command that
// fails is none: its exit status is part of the result.
const (
	CodeNotFound    = "ENOENT"
	CodePermission  = "EACCES"
	CodeIsDirectory = "EISDIR"
	CodeNoDirectory = "ENOTDIR"
	CodeIO          = "EIO"
	CodeOutside     = "OUTSIDE_ROOT"
	CodeNotAFile    = "NOT_A_FILE"
	CodeBinary      = "BINARY"
	CodeTooLarge    = "TOO_LARGE"
	CodeOutOfRange  = "OUT_OF_RANGE"
	CodeNoMatch     = "NO_MATCH"
	CodeAmbiguous   = "AMBIGUOUS_MATCH"
	CodeNoChange    = "NO_CHANGE"
	CodeTimeout     = "TIMEOUT"
	CodeAborted     = "ABORTED"
)

// fileError makes what the system said about a file an error with a code. An
// error that has one already, or that says that ctx ended, stays as it is.
func fileError(shown string, err error) error {
	if own := new(tool.Error); errors.As(err, &own) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	code, text := CodeIO, err.Error()
	switch {
	case strings.Contains(text, "path escapes from parent"): // os.Root has no value for it
		return outside(shown)
	case errors.Is(err, fs.ErrNotExist):
		code, text = CodeNotFound, "no such file or directory"
	case errors.Is(err, fs.ErrPermission):
		code, text = CodePermission, "permission denied"
	case errors.Is(err, syscall.EISDIR):
		code, text = CodeIsDirectory, "it is a directory"
	case errors.Is(err, syscall.ENOTDIR):
		code, text = CodeNoDirectory, "a part of the path is not a directory"
	}
	return &tool.Error{Code: code, Message: fmt.Sprintf("%s: %s.", shown, text), Cause: err}
}

func outside(path string) error {
	return tool.Errorf(CodeOutside, "%s is outside the working directory, which this tool may not leave. "+
		"Use a path inside it; relative paths start there.", path)
}

// badArgs is the error of an argument that the schema cannot judge.
func badArgs(format string, args ...any) error {
	return &tool.Error{Name: dsh.ToolInvalidArgs.Name, Code: dsh.ToolInvalidArgs.Code, Message: fmt.Sprintf(format, args...)}
}
