package jsonl

import (
	"fmt"
	"io"
	"sort"
	"sync"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// indexGap is how many bytes of a log share an entry of its index: what a read
// decodes in vain at most, and what keeps the index small however long a log
// gets (16 bytes for each 64 KiB).
const indexGap = 64 << 10

// index says where in a log events are, roughly.
type index []entry

// entry says that the unit at offset at begins with event first.
type entry struct {
	first dsh.Seq
	at    int64
}

// add notes a unit behind all that were added before.
func (x *index) add(first dsh.Seq, at int64) {
	if n := len(*x); n == 0 || at-(*x)[n-1].at >= indexGap {
		*x = append(*x, entry{first, at})
	}
}

// find returns the entry that covers seq, which must not lie before the first.
func (x index) find(seq dsh.Seq) int {
	return sort.Search(len(x), func(i int) bool { return x[i].first > seq }) - 1
}

// view is the readable part of a log: what is before end. It is safe for
// concurrent use; whoever writes the file tells it with grow.
type view struct {
	path    string
	header  dsh.SessionHeader
	box     box
	decoder *decoder
	// open opens the file for one read. Reads are rare next to writes, so
	// that no descriptor is kept for them.
	open func() (readFile, error)

	mu    sync.RWMutex
	index index
	end   int64
	next  dsh.Seq
}

type readFile interface {
	io.ReaderAt
	io.Closer
}

// Header returns the first line of the log.
func (v *view) Header() dsh.SessionHeader { return v.header }

// grow makes a unit of n bytes readable that holds the events up to next.
func (v *view) grow(n int, next dsh.Seq) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.index.add(v.next, v.end)
	v.end += int64(n)
	v.next = next
}

// read returns events as session.Log's Read does.
func (v *view) read(from dsh.Seq, limit int) ([]dsh.Event, error) {
	v.mu.RLock()
	index, end, next := v.index, v.end, v.next
	v.mu.RUnlock()
	if from = max(from, 0); from >= next {
		return nil, nil
	}
	f, err := v.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was read only
	through := next
	if limit > 0 {
		through = min(next, from+dsh.Seq(limit))
	}
	var out gatherer
	seq := next // of the next event to be read
	for i := index.find(from); i < len(index) && (i == index.find(from) || seq < through); i++ {
		stop := end
		if i+1 < len(index) {
			stop = index[i+1].at
		}
		part := make([]byte, stop-index[i].at)
		if err := v.readPart(f, part, index[i].at); err != nil {
			return nil, err
		}
		err := v.units(part, func(ev dsh.Event) {
			if seq = ev.Seq + 1; ev.Seq >= from && ev.Seq < through {
				out.add(ev)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out.all(), nil
}

// readPart fills part from offset at. While the owner mends its file it waits.
func (v *view) readPart(f io.ReaderAt, part []byte, at int64) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if _, err := f.ReadAt(part, at); err != nil {
		return &LogError{Path: v.path, Err: fmt.Errorf("at byte %d: %w", at, err)}
	}
	return nil
}

// units decodes what was found to be right before.
func (v *view) units(part []byte, emit func(dsh.Event)) error {
	for len(part) > 0 {
		lines, n, err := v.box.unwrap(part)
		if err != nil {
			return damage(v.path, 0, err)
		}
		for part = part[n:]; len(lines) > 0; {
			var line []byte
			line, lines = cutLine(lines)
			if err := v.decoder.line(line, emit); err != nil {
				return damage(v.path, 0, err)
			}
		}
	}
	return nil
}
