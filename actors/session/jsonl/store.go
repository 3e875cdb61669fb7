package jsonl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Options of a store. The zero value is what dsh uses.
type Options struct {
	// Encoding defaults to Zstd.
	Encoding Encoding
	// SyncEach makes every file durable by itself. By default files that are
	// to be durable at the same time are made so together where the system
	// can (Linux 5.8 and later): the whole file system is synced, once. That
	// is by far faster with many sessions, unless other programs write a lot
	// to the same file system, whose data is then waited for, too.
	SyncEach bool
	// Repaired is told of each log that was repaired when it was opened. It
	// defaults to nothing.
	Repaired func(Repair)
}

// Repair is what was done to a log that a crash had left with a torn end.
type Repair struct {
	ID   dsh.SessionID
	Path string
	// Dropped is how many bytes were cut off, Recovered how many events were
	// read of them and appended again.
	Dropped   int64
	Recovered int
	// Line is where the damage begins, Reason what it is.
	Line   int
	Reason error
}

// Store is a [session.Store] in a directory. It is safe for concurrent use, and
// so are several stores, of several processes, in one directory. From its first
// log on it keeps a descriptor of the directory, which goes with the store.
type Store struct {
	root    string
	opts    Options
	box     box
	disk    disk
	syncer  syncer
	lineage lineage
	// projects is the names in the root, for find.
	projects names

	mu      sync.Mutex
	created map[dsh.SessionID]*log // those without a file
	device  fs.FileInfo            // of syncer.root
	// settled is the projects whose directories have durable names, as far as is
	// known, aboveRoot the directories that hold names above which the store
	// made, that of the root included.
	settled   map[string]bool
	aboveRoot []string
}

var _ session.Store = (*Store)(nil)

// Open returns the store in dir. The directory is made with the first log.
func Open(dir string, opts Options) (*Store, error) { return open(dir, opts, osDisk{}) }

func open(dir string, opts Options, disk disk) (*Store, error) {
	root, err := filepath.Abs(dir)
	if err == nil && opts.Encoding != Zstd && opts.Encoding != Raw {
		err = fmt.Errorf("encoding %d is unknown", opts.Encoding)
	}
	if info, serr := os.Stat(root); err == nil && serr == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", root)
	}
	if err != nil {
		return nil, fmt.Errorf("jsonl: open: %w", err)
	}
	return &Store{
		root: root, opts: opts, box: boxOf(opts.Encoding), disk: disk,
		syncer:  syncer{disk: disk},
		created: map[dsh.SessionID]*log{}, settled: map[string]bool{},
	}, nil
}

// Volatile returns false.
func (*Store) Volatile() bool { return false }

// Create makes a log without events. It has a file from the first append on;
// one that is closed before leaves no trace.
func (s *Store) Create(_ context.Context, h dsh.SessionHeader) (session.Log, error) {
	l, err := s.create(h)
	if err != nil {
		return nil, fmt.Errorf("jsonl: create %s: %w", h.ID, err)
	}
	return l, nil
}

func (s *Store) create(h dsh.SessionHeader) (*log, error) {
	if h.Version != dsh.FormatVersion {
		return nil, fmt.Errorf("%w: version %d", dsh.ErrVersion, h.Version)
	}
	dir, err := s.dirOf(&h)
	if err != nil {
		return nil, err
	}
	path, err := s.find(h.ID)
	if err != nil {
		return nil, err
	}
	if path != "" && stillborn(path, s.box) {
		path = "" // it makes room
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.created[h.ID]; ok || path != "" {
		return nil, session.ErrExists
	}
	l := s.newLog(filepath.Join(dir, s.box.name()), h, &decoder{id: h.ID})
	l.created = ourselves()
	l.epoch = nextEpoch(0)
	s.created[h.ID] = l
	return l, nil
}

func (s *Store) newLog(path string, h dsh.SessionHeader, d *decoder) *log {
	l := &log{store: s}
	l.path, l.header, l.box, l.decoder = path, h, s.box, d
	l.open = func() (readFile, error) { return os.Open(path) }
	return l
}

// forget drops a log that has a file now, or never will.
func (s *Store) forget(l *log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.created[l.header.ID] == l {
		delete(s.created, l.header.ID)
	}
}

// Open opens a log to be continued. What a crash left of its last write is cut
// off, what was read of it appended again (see [Options.Repaired]).
func (s *Store) Open(_ context.Context, id dsh.SessionID) (session.Log, error) {
	l, err := s.openLog(id)
	if err != nil {
		return nil, fmt.Errorf("jsonl: open %s: %w", id, err)
	}
	return l, nil
}

// pathOf returns the path of a log that has a file.
func (s *Store) pathOf(id dsh.SessionID) (string, error) {
	s.mu.Lock()
	l, ok := s.created[id]
	s.mu.Unlock()
	if ok {
		return "", &InUseError{ID: id, Holder: l.created}
	}
	path, err := s.find(id)
	if err == nil && path == "" {
		err = session.ErrNotFound
	}
	return path, err
}

func (s *Store) openLog(id dsh.SessionID) (_ *log, err error) {
	path, err := s.pathOf(id)
	if err != nil {
		return nil, err
	}
	held, err := acquire(filepath.Dir(path), id, 0)
	if err != nil {
		return nil, err
	}
	var f file
	since := s.syncer.failures.Load()
	defer func() {
		if err == nil {
			return
		}
		if f != nil {
			_ = f.Close()
		}
		err = errors.Join(err, held.release())
	}()
	if f, err = s.disk.open(path); err != nil {
		return nil, err
	}
	data, err := contents(f)
	if err != nil {
		return nil, err
	}
	h, scan, err := load(path, s.box, data)
	switch {
	case err == nil:
		err = s.checkPlace(path, &h)
	case isStillborn(s.box, data):
		err = missing(path)
	}
	if err != nil {
		return nil, err
	}
	s.sweep(path)
	l := s.newLog(path, h, scan.decoder)
	l.file, l.held, l.epoch, l.together = f, held, held.epoch, s.reaches(f.Stat())
	l.index, l.end, l.next, l.synced = scan.index, scan.end, scan.endNext, scan.end
	l.unsure, l.since = true, since
	l.loaded = scan.out.all()
	return l, l.repair(scan, data)
}

// contents reads a whole file.
func contents(f file) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, info.Size())
	_, err = f.ReadAt(data, 0)
	return data, err
}

// repair cuts off what lies behind the last whole unit of data, the file, and
// appends what was read of it, as a batch of its own.
func (l *log) repair(scan *scanner, data []byte) error {
	torn := data[scan.end:]
	if len(torn) == 0 {
		return nil
	}
	if err := l.file.Truncate(scan.end); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	loaded := l.loaded
	if recovered := suffix(loaded, scan.endNext); len(recovered) > 0 {
		err := l.append(recovered)
		if err == nil {
			err = l.sync()
		}
		if err != nil {
			if l.file.Truncate(scan.end) == nil { // for the next attempt, if the disk lets it
				_ = writeAt(l.file, torn, scan.end)
			}
			return err
		}
	}
	l.loaded = loaded
	if told := l.store.opts.Repaired; told != nil {
		told(Repair{
			ID: l.header.ID, Path: l.path, Dropped: int64(len(torn)), Recovered: int(scan.next - scan.endNext),
			Line: scan.problemLine, Reason: scan.problem,
		})
	}
	return nil
}

// reaches reports whether a sync of the root's file system reaches a file of
// which info is told.
func (s *Store) reaches(info fs.FileInfo, err error) bool {
	if err != nil || s.opts.SyncEach {
		return false
	}
	s.openRoot()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.device != nil && sameFileSystem(s.device, info)
}

// openRoot opens the root, if there is one, before anything is written, so that
// no failure escapes a sync of its file system.
func (s *Store) openRoot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.syncer.root != nil || s.opts.SyncEach {
		return
	}
	if root, err := os.Open(s.root); err == nil {
		s.syncer.root = root
		s.device, _ = root.Stat() // else it is on no known device
	}
}

// List yields the headers of all logs, oldest first, and then what is wrong
// with others. Only headers are read; a file without one is passed over, as it
// is in dsh (opening it is an error). The header that comes with an error has
// an ID where the place tells one.
func (s *Store) List(ctx context.Context) iter.Seq2[dsh.SessionHeader, error] {
	return func(yield func(dsh.SessionHeader, error) bool) {
		headers, bad := s.list(ctx)
		for _, h := range headers {
			if !yield(h, nil) {
				return
			}
		}
		for _, b := range bad {
			if !yield(dsh.SessionHeader{ID: b.id}, fmt.Errorf("jsonl: list: %w", b.err)) {
				return
			}
		}
	}
}

// badLog is a log that is not listed.
type badLog struct {
	id  dsh.SessionID
	err error
}

func (s *Store) list(ctx context.Context) (headers []dsh.SessionHeader, bad []badLog) {
	projects, err := os.ReadDir(s.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		bad = append(bad, badLog{err: err})
	}
	seen := map[dsh.SessionID]string{}
	for _, p := range projects {
		sessions, err := os.ReadDir(filepath.Join(s.root, p.Name()))
		if err != nil {
			if isDir(filepath.Join(s.root, p.Name())) {
				bad = append(bad, badLog{err: err})
			}
			continue
		}
		for _, e := range sessions {
			if err := ctx.Err(); err != nil {
				return headers, append(bad, badLog{err: err})
			}
			path := filepath.Join(s.root, p.Name(), e.Name())
			h, ok, err := s.listed(path)
			if err == nil && ok && seen[h.ID] != "" {
				err = fmt.Errorf("%w: %s and %s are the same session", ErrCorrupt, seen[h.ID], path)
			}
			if err != nil {
				name, _, _ := strings.Cut(e.Name(), ".jsonl") // of a file that should be a directory
				bad = append(bad, badLog{decodeSegment(name), err})
			} else if ok {
				seen[h.ID] = path
				headers = append(headers, h)
			}
		}
	}
	slices.SortStableFunc(headers, func(a, b dsh.SessionHeader) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return headers, bad
}
