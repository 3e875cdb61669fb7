package jsonl

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// disk is the file operations that a log's safety depends on, apart so that
// tests can make each of them fail.
type disk interface {
	// mkdir makes one directory that must not be there.
	mkdir(dir string) error
	// create makes a file that must not be there.
	create(name string) (file, error)
	open(name string) (file, error)
	// claim gives a file another name, which must be free. If it fails, the
	// file has the first one.
	claim(name, other string) error
	remove(name string) error
	// rename gives a file or a directory another name, whose file it replaces.
	rename(name, other string) error
	// syncDir makes the names in a directory durable.
	syncDir(dir string) error
	// syncAll makes everything on the file system of root durable, or says
	// that it cannot with errors.ErrUnsupported.
	syncAll(root *os.File) error
}

// file is an open log.
type file interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
	Stat() (fs.FileInfo, error)
}

// osDisk is the disk.
type osDisk struct{}

func (osDisk) mkdir(dir string) error { return os.Mkdir(dir, 0o700) }

func (osDisk) create(name string) (file, error) {
	return asFile(os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600))
}

func (osDisk) open(name string) (file, error) {
	return asFile(os.OpenFile(name, os.O_RDWR, 0))
}

// asFile keeps a nil file from becoming a value that is not nil.
func asFile(f *os.File, err error) (file, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osDisk) claim(name, other string) error {
	err := renameToFree(name, other)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := os.Link(name, other); err != nil {
		return err
	}
	_ = os.Remove(name) // it is swept by who opens the log next
	return nil
}

func (osDisk) rename(name, other string) error { return os.Rename(name, other) }

func (osDisk) remove(name string) error { return os.Remove(name) }

func (osDisk) syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be synced there, and need not be
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func (osDisk) syncAll(root *os.File) error { return syncFileSystem(root) }
