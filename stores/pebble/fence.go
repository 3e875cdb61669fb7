package pebble

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fence is the file system that one engine sees.
//
// The engine ends the process when it cannot write, so it never learns that it
// cannot. The fence notes the first failure and from then on takes whatever is
// written without writing it: what is on disk stays as it was at that moment.
// Whoever uses the engine asks failure before believing it.
type fence struct {
	vfs.FS
	// broken is called once, on a goroutine of its own, when something failed.
	broken func()

	mu     sync.Mutex
	failed error
}

// failure returns why nothing is written any more, or nil.
func (f *fence) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// fail notes that something cannot be written.
func (f *fence) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
		go f.broken()
	}
}

// try does what writes. It returns whether it was done.
func (f *fence) try(do func() error) bool {
	if f.failure() != nil {
		return false
	}
	err := do()
	if err != nil {
		f.fail(err)
	}
	return err == nil
}

// file returns a file for writing.
func (f *fence) file(open func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	ok := f.try(func() (err error) {
		file, err = open()
		return err
	})
	if !ok {
		return void{}, nil
	}
	return &fenced{File: file, fence: f}, nil
}

// Create makes a file.
func (f *fence) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file(func() (vfs.File, error) { return f.FS.Create(name, c) })
}

// OpenReadWrite opens a file for writing.
func (f *fence) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.file(func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, opts...) })
}

// ReuseForWrite makes a file out of an old one.
func (f *fence) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file(func() (vfs.File, error) { return f.FS.ReuseForWrite(from, to, c) })
}

// OpenDir opens a directory, to sync it.
func (f *fence) OpenDir(name string) (vfs.File, error) {
	return f.file(func() (vfs.File, error) { return f.FS.OpenDir(name) })
}

// Link makes a second name.
func (f *fence) Link(from, to string) error {
	f.try(func() error { return f.FS.Link(from, to) })
	return nil
}

// Rename renames a file.
func (f *fence) Rename(from, to string) error {
	f.try(func() error { return f.FS.Rename(from, to) })
	return nil
}

// Remove removes a file. One that is not there is nothing to worry about.
func (f *fence) Remove(name string) error {
	return f.remove(func() error { return f.FS.Remove(name) })
}

// RemoveAll removes a directory.
func (f *fence) RemoveAll(name string) error {
	return f.remove(func() error { return f.FS.RemoveAll(name) })
}

func (f *fence) remove(do func() error) (missing error) {
	f.try(func() error {
		err := do()
		if errors.Is(err, fs.ErrNotExist) {
			missing, err = err, nil
		}
		return err
	})
	return missing
}

// MkdirAll makes a directory.
func (f *fence) MkdirAll(dir string, perm os.FileMode) error {
	f.try(func() error { return f.FS.MkdirAll(dir, perm) })
	return nil
}

// Lock does nothing: the directory is locked already, for longer than one
// engine lives.
func (f *fence) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Unwrap returns the file system behind the fence.
func (f *fence) Unwrap() vfs.FS { return f.FS }

// fenced is a file behind a fence.
type fenced struct {
	vfs.File
	fence *fence
}

// Write writes.
func (f *fenced) Write(p []byte) (int, error) {
	f.fence.try(func() error {
		_, err := f.File.Write(p)
		return err
	})
	return len(p), nil
}

// WriteAt writes at an offset.
func (f *fenced) WriteAt(p []byte, at int64) (int, error) {
	f.fence.try(func() error {
		_, err := f.File.WriteAt(p, at)
		return err
	})
	return len(p), nil
}

// Preallocate is advice: writing tells whether there is room.
func (f *fenced) Preallocate(at, length int64) error {
	if f.fence.failure() == nil {
		_ = f.File.Preallocate(at, length)
	}
	return nil
}

// Sync makes the file durable.
func (f *fenced) Sync() error {
	f.fence.try(f.File.Sync)
	return nil
}

// SyncData makes what the file holds durable.
func (f *fenced) SyncData() error {
	f.fence.try(f.File.SyncData)
	return nil
}

// SyncTo begins to make a part of the file durable.
func (f *fenced) SyncTo(length int64) (full bool, err error) {
	f.fence.try(func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, nil
}

// Stat describes the file.
func (f *fenced) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	if err != nil {
		f.fence.fail(err)
		return voidInfo{}, nil
	}
	return info, nil
}

// Close closes the file, also behind a fence that failed: the descriptor goes.
func (f *fenced) Close() error {
	if err := f.File.Close(); err != nil {
		f.fence.fail(err)
	}
	return nil
}

// void is a file that takes everything and keeps nothing.
type void struct{}

var errVoid = errors.New("the file was never written")

func (void) Read([]byte) (int, error)               { return 0, errVoid }
func (void) ReadAt([]byte, int64) (int, error)      { return 0, errVoid }
func (void) Write(p []byte) (int, error)            { return len(p), nil }
func (void) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (void) Preallocate(int64, int64) error         { return nil }
func (void) Stat() (vfs.FileInfo, error)            { return voidInfo{}, nil }
func (void) Sync() error                            { return nil }
func (void) SyncTo(int64) (bool, error)             { return true, nil }
func (void) SyncData() error                        { return nil }
func (void) Prefetch(int64, int64) error            { return nil }
func (void) Fd() uintptr                            { return vfs.InvalidFd }
func (void) Close() error                           { return nil }

// voidInfo describes a void.
type voidInfo struct{}

func (voidInfo) Name() string           { return "" }
func (voidInfo) Size() int64            { return 0 }
func (voidInfo) Mode() fs.FileMode      { return 0 }
func (voidInfo) ModTime() time.Time     { return time.Time{} }
func (voidInfo) IsDir() bool            { return false }
func (voidInfo) Sys() any               { return nil }
func (voidInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }

var (
	_ vfs.FS   = (*fence)(nil)
	_ vfs.File = (*fenced)(nil)
	_ vfs.File = void{}
)
