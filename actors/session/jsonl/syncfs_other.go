//go:build !linux

package jsonl

import (
	"errors"
	"io/fs"
	"os"
)

func syncFileSystem(*os.File) error { return errors.ErrUnsupported }

func sameFileSystem(fs.FileInfo, fs.FileInfo) bool { return false }
