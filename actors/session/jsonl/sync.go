package jsonl

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
)

// Syncs of many logs are made in rounds, of new ones also. A sync of the file
// system is as good as one of every file and directory on it (sync(2)).
const (
	// syncTogether is how many files in a round are worth one sync of the
	// whole file system, which takes about as long as that of two files and
	// may have to wait for what other programs wrote.
	syncTogether = 4
	// syncParallel is how many files are synced at once where they are
	// synced one by one.
	syncParallel = 16
)

// syncer makes files durable in rounds: what comes while a round is under way
// waits for the next. One round is made at a time.
type syncer struct {
	disk disk
	// root is on the file system that syncAll syncs.
	root *os.File

	// failures is how many rounds failed for the whole file system. The system
	// tells of a failure once, whoever's writes it was that were lost.
	failures atomic.Int64

	mu      sync.Mutex
	waiting []syncing
	running bool
}

// errMissed says that an earlier round failed which may have lost what was
// written before. Who wrote it must write it again.
var errMissed = errors.New("an earlier sync of the file system failed, and what it lost is not known: try again")

// syncing is a file, with the directories on the path to it, that waits for a
// round.
type syncing struct {
	// alone syncs it by itself, which takes so many syncs of a file.
	alone func() error
	files int
	// together is whether a sync of the root's file system reaches it.
	together bool
	// since is how many rounds had failed before it was written.
	since int64
	done  chan<- error
}

// sync waits until a round has made it durable. Who finds nobody at work makes
// the first round by himself: a session that is alone waits for no goroutine.
func (s *syncer) sync(it syncing) error {
	done := make(chan error, 1)
	it.done = done
	s.mu.Lock()
	if s.running {
		s.waiting = append(s.waiting, it)
		s.mu.Unlock()
		return <-done
	}
	s.running = true
	s.mu.Unlock()
	func() {
		defer func() {
			if others := s.next(); others != nil {
				go s.run(others)
			}
		}()
		s.round([]syncing{it})
	}()
	return <-done
}

// next returns who waits for the next round; nobody is at work if there is none.
func (s *syncer) next() (round []syncing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	round, s.waiting = s.waiting, nil
	s.running = len(round) > 0
	return round
}

func (s *syncer) run(round []syncing) {
	for ; round != nil; round = s.next() {
		s.round(round)
	}
}

// round syncs files and answers who waits for them.
func (s *syncer) round(files []syncing) {
	n := 0
	for _, f := range files {
		if f.together {
			n += f.files
		}
	}
	if n < syncTogether {
		s.one(files)
		return
	}
	var together, alone []syncing
	for _, f := range files {
		if f.together {
			together = append(together, f)
		} else {
			alone = append(alone, f)
		}
	}
	if !s.all(together) {
		alone = files
	}
	s.one(alone)
}

// all syncs files with their file system. It returns false if that cannot be
// done.
func (s *syncer) all(files []syncing) bool {
	err := s.disk.syncAll(s.root)
	if errors.Is(err, errors.ErrUnsupported) {
		return false
	}
	if err != nil {
		s.failures.Add(1)
	}
	for _, f := range files {
		if err == nil && f.since < s.failures.Load() {
			f.done <- errMissed
			continue
		}
		f.done <- err
	}
	return true
}

// one syncs files one by one, several at once.
func (s *syncer) one(files []syncing) {
	if len(files) == 1 {
		files[0].done <- files[0].alone()
		return
	}
	var wg sync.WaitGroup
	todo := make(chan syncing)
	for range min(len(files), syncParallel) {
		wg.Go(func() {
			for f := range todo {
				f.done <- f.alone()
			}
		})
	}
	for _, f := range files {
		todo <- f
	}
	close(todo)
	wg.Wait()
}
