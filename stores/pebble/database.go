package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	kv "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Sizes of the engine.
const (
	// memTable is how much is gathered in memory before it is written into
	// tables. A thousand agents fill it in a few steps each.
	memTable = 16 << 20
	// blockCache is for reads, which are rare next to writes.
	blockCache = 8 << 20
	// lockName is the engine's own name for its lock.
	lockName = "LOCK"
)

// database is one directory, opened by this process. All stores of the process
// in that directory share it, because the engine allows one process only.
//
// Invariants: engine is what fence serves, and nil after something failed,
// until it is opened again; each opening has a generation of its own. Of what
// was written in an earlier generation only what was made durable can be relied
// on.
type database struct {
	dir  string
	info fs.FileInfo
	disk vfs.FS
	lock io.Closer
	refs int // guarded by databases.mu

	mu         sync.RWMutex // held for reading while the engine is used
	engine     *kv.DB
	fence      *fence
	generation int
	failed     error // why there is no engine
	closed     bool

	owners sync.Mutex
	owned  map[dsh.SessionID]*log
}

// databases are those of this process.
var databases struct {
	mu   sync.Mutex
	open []*database
}

// share returns the database in dir, which is made if it is not there.
func share(dir string, disk vfs.FS) (*database, error) {
	if err := makeDurably(disk, dir); err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	databases.mu.Lock()
	defer databases.mu.Unlock()
	for _, d := range databases.open {
		if os.SameFile(d.info, info) {
			d.refs++
			return d, nil
		}
	}
	if err := checkPlace(dir, disk); err != nil {
		return nil, err
	}
	lock, err := acquire(filepath.Join(dir, lockName), disk)
	if err != nil {
		return nil, err
	}
	d := &database{dir: dir, info: info, disk: disk, lock: lock, refs: 1, owned: map[dsh.SessionID]*log{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	databases.open = append(databases.open, d)
	return d, nil
}

// makeDurably makes a directory and those above it, durably.
func makeDurably(disk vfs.FS, dir string) error {
	if _, err := disk.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above := disk.PathDir(dir)
	if above != dir {
		if err := makeDurably(disk, above); err != nil {
			return err
		}
	}
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := disk.OpenDir(above)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// checkPlace returns why dir cannot become a database: it holds something else.
func checkPlace(dir string, disk vfs.FS) error {
	names, err := disk.List(dir)
	if err == nil && len(names) > 0 && !slices.Contains(names, lockName) {
		err = fmt.Errorf("the directory holds something else, such as %s; choose one that is empty or new", slices.Min(names))
	}
	return err
}

// acquire locks the directory for this process.
func acquire(path string, disk vfs.FS) (io.Closer, error) {
	lock, err := disk.Lock(path)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		err = fmt.Errorf("%w: another process has %s open, and a pebble store belongs to one at a time (%w)",
			session.ErrInUse, filepath.Dir(path), err)
	}
	return lock, err
}

// release gives up one share; with the last one the database is closed.
func (d *database) release() error {
	databases.mu.Lock()
	defer databases.mu.Unlock()
	if d.refs--; d.refs > 0 {
		return nil
	}
	for i, o := range databases.open {
		if o == d {
			databases.open = append(databases.open[:i:i], databases.open[i+1:]...)
			break
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return errors.Join(d.shut(), d.lock.Close())
}

// shut closes the engine and returns what failed. What was written and not
// synced is made durable, if it can be.
func (d *database) shut() error {
	if d.engine == nil {
		return nil
	}
	err := d.engine.Close()
	if failed := d.fence.failure(); failed != nil {
		err = failed // what the engine says of files that were never written is of no interest
	}
	d.engine = nil
	return err
}

// open opens the engine; the caller has the database to itself.
func (d *database) open() error {
	f := &fence{FS: d.disk}
	f.broken = func() { d.retire(f) }
	engine, err := kv.Open(d.dir, options(f))
	if failed := f.failure(); failed != nil {
		if engine != nil {
			_ = engine.Close()
		}
		err = failed
	}
	if err != nil {
		return err
	}
	d.engine, d.fence, d.failed = engine, f, nil
	d.generation++
	return nil
}

func options(f *fence) *kv.Options {
	return &kv.Options{
		FS:                 f,
		MemTableSize:       memTable,
		CacheSize:          blockCache,
		FormatMajorVersion: kv.FormatNewest,
		Logger:             logger{f},
		EventListener: &kv.EventListener{
			// The reader of what is damaged is told, which is enough.
			DataCorruption: func(kv.DataCorruptionInfo) {},
		},
	}
}

// logger takes the place of one that ends the process.
type logger struct{ fence *fence }

func (logger) Infof(string, ...any)  {}
func (logger) Errorf(string, ...any) {}
func (l logger) Fatalf(format string, args ...any) {
	l.fence.fail(fmt.Errorf(format, args...))
}

// retire closes an engine that can write no more.
func (d *database) retire(f *fence) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fence == f && d.engine != nil {
		d.failed = d.shut()
	}
}

// errStoreClosed refuses a log whose store was closed.
var errStoreClosed = fmt.Errorf("the store is closed: %w", session.ErrClosed)

// use calls do with the engine and its generation. After a failure the engine
// is opened again first. An error means that nothing that do wrote can be
// relied on.
func (d *database) use(do func(engine *kv.DB, generation int) error) error {
	d.mu.RLock()
	if d.engine == nil || d.fence.failure() != nil {
		d.mu.RUnlock()
		if err := d.reopen(); err != nil {
			return err
		}
		d.mu.RLock()
	}
	defer d.mu.RUnlock()
	switch {
	case d.closed:
		return errStoreClosed
	case d.engine == nil:
		return d.failed // again, in between
	}
	err := do(d.engine, d.generation)
	if failed := d.fence.failure(); failed != nil {
		return failed
	}
	if kv.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", jsonl.ErrCorrupt, err)
	}
	return err
}

// look is use for what only reads: if something failed meanwhile it is done
// again, once.
func (d *database) look(do func(engine *kv.DB) error) error {
	var last int
	looking := func(engine *kv.DB, generation int) error {
		last = generation
		return do(engine)
	}
	err := d.use(looking)
	if err != nil && last > 0 && d.outlived(last) {
		err = d.use(looking)
	}
	return err
}

// outlived reports whether a generation failed.
func (d *database) outlived(generation int) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return generation != d.generation || d.engine == nil || d.fence.failure() != nil
}

// reopen opens an engine in place of one that failed.
func (d *database) reopen() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errStoreClosed
	}
	if d.engine != nil {
		if d.fence.failure() == nil {
			return nil // somebody else did
		}
		d.failed = d.shut()
	}
	if err := d.open(); err != nil {
		d.failed = err
		return fmt.Errorf("the database cannot be opened again: %w", err)
	}
	return nil
}
