package jsonl

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// badDisk is a disk whose operations fail from number from on, count of them.
// A write that fails writes half; a sync that fails loses what was not durable.
type badDisk struct {
	osDisk
	from, count int64
	err         error
	// together is whether the file system can be synced as a whole.
	together bool
	// powerless says that what fails does nothing: the power is gone.
	powerless bool

	done     atomic.Int64 // operations so far
	mu       sync.Mutex
	files    []*badFile
	unsynced map[string]bool // paths whose names are not durable
}

// synced returns why the name of a file and the path to it may be lost.
func (d *badDisk) synced(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for p := path; p != filepath.Dir(p); p = filepath.Dir(p) {
		if d.unsynced[p] {
			return fmt.Errorf("the name of %s is not durable", p)
		}
	}
	return nil
}

// note notes the result of giving something a name.
func (d *badDisk) note(path string, err error) error {
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unsynced == nil {
		d.unsynced = map[string]bool{}
	}
	d.unsynced[path] = true
	return nil
}

func (d *badDisk) fails() error {
	if n := d.done.Add(1) - 1; n >= d.from && n < d.from+d.count {
		return d.err
	}
	return nil
}

func (d *badDisk) mkdir(dir string) error {
	if err := d.fails(); err != nil {
		return err
	}
	return d.note(dir, d.osDisk.mkdir(dir))
}

func (d *badDisk) create(name string) (file, error) {
	if err := d.fails(); err != nil {
		return nil, err
	}
	f, err := d.osDisk.create(name)
	return d.opened(f, d.note(name, err))
}

func (d *badDisk) open(name string) (file, error) {
	if err := d.fails(); err != nil {
		return nil, err
	}
	return d.opened(d.osDisk.open(name))
}

func (d *badDisk) opened(f file, err error) (file, error) {
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	b := &badFile{file: f, disk: d, durable: info.Size()}
	d.mu.Lock()
	d.files = append(d.files, b)
	d.mu.Unlock()
	return b, err
}

func (d *badDisk) claim(name, other string) error {
	if err := d.fails(); err != nil {
		return err
	}
	return d.note(other, d.osDisk.claim(name, other))
}

func (d *badDisk) remove(name string) error {
	if err := d.fails(); err != nil {
		return err
	}
	return d.osDisk.remove(name)
}

func (d *badDisk) rename(name, other string) error {
	if err := d.fails(); err != nil {
		return err
	}
	return d.note(other, d.osDisk.rename(name, other))
}

func (d *badDisk) syncDir(dir string) error {
	if err := d.fails(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.unsynced, func(path string, _ bool) bool { return filepath.Dir(path) == dir })
	return nil
}

func (d *badDisk) syncAll(*os.File) error {
	if !d.together {
		return errors.ErrUnsupported
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.fails()
	for _, f := range d.files {
		f.synced(err)
	}
	if err == nil {
		clear(d.unsynced)
	}
	return err
}

type badFile struct {
	file
	disk    *badDisk
	durable int64
}

func (f *badFile) WriteAt(data []byte, at int64) (int, error) {
	if err := f.disk.fails(); err != nil && f.disk.powerless {
		return 0, err
	} else if err != nil {
		n, werr := f.file.WriteAt(data[:len(data)/2], at)
		return n, errors.Join(err, werr)
	}
	return f.file.WriteAt(data, at)
}

func (f *badFile) Truncate(size int64) error {
	if err := f.disk.fails(); err != nil {
		return err
	}
	f.durable = min(f.durable, size)
	return f.file.Truncate(size)
}

func (f *badFile) Sync() error {
	err := f.disk.fails()
	f.synced(err)
	return err
}

func (f *badFile) synced(err error) {
	info, serr := f.Stat()
	if serr != nil || err != nil && f.disk.powerless {
		return // it is closed, or as it was
	}
	if err == nil {
		f.durable = info.Size()
	} else if info.Size() > f.durable {
		_, _ = f.file.WriteAt(make([]byte, info.Size()-f.durable), f.durable)
	}
}

// Whatever operation fails, for once or for a while: what was refused is not
// stored and can be stored later; what was made durable is in the file when
// the process stops at the failure.
func TestFaults(t *testing.T) {
	for _, e := range []Encoding{Raw, Zstd} {
		for _, count := range []int64{1, 2, 5} {
			for _, together := range []bool{false, true} {
				name := fmt.Sprintf("%s/%d/%v", boxOf(e).name(), count, together)
				t.Run(name, func(t *testing.T) {
					for from := int64(0); ; from++ {
						disk := &badDisk{from: from, count: count, err: syscall.ENOSPC, together: together}
						storm(t, disk, Options{Encoding: e})
						if disk.done.Load() <= from {
							t.Logf("%d operations", from)
							break
						}
					}
				})
			}
		}
	}
}

// storm writes and reopens a log on a disk that fails at times.
func storm(t *testing.T, disk *badDisk, opts Options) {
	t.Helper()
	root := t.TempDir()
	defer os.RemoveAll(root)
	s, err := open(root, opts, disk)
	if err != nil {
		t.Fatal(err)
	}
	var log session.Log
	var stored []dsh.Event
	durable := 0
	// try repeats what fails and looks at the log each time.
	try := func(what string, do func() error) {
		t.Helper()
		for range disk.count + 1 {
			err := do()
			if err != nil && !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("failing from %d: %s: %v", disk.from, what, err)
			}
			crashed(t, root, opts, stored, durable, disk)
			if err == nil {
				return
			}
			if log == nil {
				continue
			}
			if got, rerr := log.Read(t.Context(), 0, 0); rerr == nil && !slices.Equal(jsonOf(got), jsonOf(stored)) {
				t.Fatalf("failing from %d: %s left %d events of %d", disk.from, what, len(got), len(stored))
			}
		}
		t.Fatalf("failing from %d: %s does not recover", disk.from, what)
	}
	try("create", func() (err error) { log, err = s.Create(t.Context(), header("a")); return err })
	all := turns(6, 50)
	for i := 0; i < len(all); i += 3 {
		batch := all[i : i+3 : i+3]
		try("append", func() error {
			if err := session.Extend(t.Context(), log, batch); err != nil {
				return err
			}
			stored = append(stored, batch...)
			return nil
		})
		if i%2 == 1 {
			try("sync", func() error {
				if err := log.Sync(t.Context()); err != nil {
					return err
				}
				durable = len(stored)
				return nil
			})
		}
	}
	try("sync", func() error { return log.Sync(t.Context()) })
	durable = len(stored)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "--srv-demo--", "a", s.box.name())
	tear(t, path)
	stored = stored[:len(stored)-1]
	durable = len(stored)
	if opts.Encoding == Zstd {
		// The frame is torn, but all of it can be read, unless the disk fails
		// again while it is repaired.
		stored, durable = all, len(all)-3
	}
	log = nil
	try("open", func() (err error) {
		opened, err := s.Open(t.Context(), "a")
		if err == nil {
			log = opened
		}
		return err
	})
	got, err := log.Read(t.Context(), 0, 0)
	if err != nil || len(got) < durable || !slices.Equal(jsonOf(got), jsonOf(stored[:len(got)])) {
		t.Fatalf("failing from %d: reopened with %d events of %d (%v)", disk.from, len(got), len(stored), err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// tear cuts the last bytes of a file off.
func tear(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, int64(len(fileOf(t, path))-3)); err != nil {
		t.Fatal(err)
	}
}

// crashed looks at what another process finds if this one stops now.
func crashed(t *testing.T, root string, opts Options, stored []dsh.Event, durable int, disk *badDisk) {
	t.Helper()
	box := boxOf(opts.Encoding)
	path := filepath.Join(root, "--srv-demo--", "a", box.name())
	if err := disk.synced(path); err != nil && durable > 0 {
		t.Fatalf("failing from %d: %d events are durable, and %v", disk.from, durable, err)
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && durable == 0 {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	_, scan, err := load(path, box, data)
	if err != nil {
		if durable == 0 && isStillborn(box, data) {
			return
		}
		if errors.Is(err, ErrCorrupt) && durable < len(stored) && durable > 0 {
			return // the disk lost what nobody was promised, and zeros are left
		}
		t.Fatalf("failing from %d: %v", disk.from, err)
	}
	got, want := jsonOf(scan.out.all()), jsonOf(stored)
	if len(got) < durable || !slices.Equal(got[:durable], want[:durable]) {
		t.Fatalf("failing from %d: %d events after a crash, %d were durable", disk.from, len(got), durable)
	}
}
