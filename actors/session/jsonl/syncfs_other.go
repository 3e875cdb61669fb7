//go:build !linux

package jsonl

import (
	"errors"
	"io/fs"
	"os"
)

func syncFileSystem(*os.File) error { return errors.ErrUnsupported }

func sameFileSystem(fs.FileInfo, fs.FileInfo) bool { return false }

// renameToFree would rename a file to a name that must be free.
func renameToFree(string, string) error { return errors.ErrUnsupported }
