package jsonl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// syncReports tells whether the kernel's syncfs reports failed writes: since
// Linux 5.8.
var syncReports = sync.OnceValue(func() bool {
	var uname unix.Utsname
	if unix.Uname(&uname) != nil {
		return false
	}
	var major, minor int
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(uname.Release[:]), "%d.%d", &major, &minor); n < 2 {
		return false
	}
	return major > 5 || major == 5 && minor >= 8
})

// syncFileSystem syncs all that is on the file system of root. Failures since
// root was opened are reported.
func syncFileSystem(root *os.File) error {
	if !syncReports() {
		return errors.ErrUnsupported
	}
	if err := unix.Syncfs(int(root.Fd())); err != nil {
		return &fs.PathError{Op: "syncfs", Path: root.Name(), Err: err}
	}
	return nil
}

// sameFileSystem reports whether two files are known to be on one file system.
func sameFileSystem(a, b fs.FileInfo) bool {
	x, okX := a.Sys().(*syscall.Stat_t)
	y, okY := b.Sys().(*syscall.Stat_t)
	return okX && okY && x.Dev == y.Dev
}

// renameToFree renames a file to a name that must be free, or says that it
// cannot with errors.ErrUnsupported.
func renameToFree(name, other string) error {
	err := unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, other, unix.RENAME_NOREPLACE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP):
		return errors.ErrUnsupported // the file system's, or the kernel's
	}
	return &os.LinkError{Op: "rename", Old: name, New: other, Err: err}
}
