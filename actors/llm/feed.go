package llm

import (
	"context"
	"sync"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// feedRoom is for how many chunks a feed has room at once.
const feedRoom = 32

// rooms are where feeds begin. A feed gives its room back with its end.
var rooms = sync.Pool{New: func() any { return new([feedRoom]dsh.Chunk) }}

// feedLimit is how many chunks a provider may be ahead of its agent.
const feedLimit = 1024

// A Feed is what a stream has yielded and its agent has not taken yet. It is
// the one thing that two actors share: a mailbox for one sender whose
// messages melt into one while the receiver is busy.
type Feed struct {
	mu     sync.Mutex
	chunks []dsh.Chunk
	begin  *[feedRoom]dsh.Chunk // where chunks is as long as they fit; nil before the first and behind the end
	told   bool                 // the agent was told and has not taken since
	ended  bool
	err    error
	room   chan struct{} // closed when the agent takes from a full feed
}

// Take returns the chunks that came since the last call, and whether the
// stream has ended and how. The caller owns the slice.
func (f *Feed) Take() (chunks []dsh.Chunk, ended bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.chunks) > 0 {
		chunks = append(chunks, f.chunks...) // no more room than needed: the log keeps it
		clear(f.chunks)
	}
	f.chunks, f.told = f.chunks[:0], false
	if f.ended && f.begin != nil {
		clear(f.begin[:]) // those that outgrew it were copied
		rooms.Put(f.begin)
		f.begin, f.chunks = nil, nil
	}
	if f.room != nil {
		close(f.room)
		f.room = nil
	}
	return chunks, f.ended, f.err
}

// put adds a chunk, waiting for room first, and reports whether the agent
// needs to be told. It fails when ctx ends the wait.
func (f *Feed) put(ctx context.Context, c dsh.Chunk) (tell bool, err error) {
	f.mu.Lock()
	for len(f.chunks) >= feedLimit {
		if f.room == nil {
			f.room = make(chan struct{})
		}
		room := f.room
		f.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		f.mu.Lock()
	}
	defer f.mu.Unlock()
	if f.chunks == nil {
		f.begin = rooms.Get().(*[feedRoom]dsh.Chunk)
		f.chunks = f.begin[:0]
	}
	f.chunks = append(f.chunks, c)
	tell, f.told = !f.told, true
	return tell, nil
}

// end marks the feed's end; only the first call counts.
func (f *Feed) end(err error) (tell bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return false
	}
	f.ended, f.err = true, err
	tell, f.told = !f.told, true
	return tell
}
