package session

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Write-behind is bounded in time and size: what nobody asks to be durable is
// written after WriteDelay or when WriteBatch events or about WriteBytes have
// gathered.
const (
	WriteDelay = 200 * time.Millisecond
	WriteBatch = 512
	WriteBytes = 1 << 20
)

// noContext is for calls that must not be cut short: a half-made append helps
// nobody.
var noContext = context.Background()

// writer is the part of a session that has to do with a store that takes
// time. One goroutine writes at a time, and only while there is something to
// write.
type writer struct {
	tail    []dsh.Event // what it does not have yet, packed
	bytes   int         // in tail, about, since the last write began
	asked   []question
	closing []chan<- error
	busy    bool
	closed  bool
	isDue   bool
	synced  dsh.Seq // durable before
	timer   *time.Timer
	// failures is how many writes failed in a row.
	failures int
}

// writing returns the writer, which exists from the first use on.
func (s *session) writing() *writer {
	if s.writer == nil {
		s.writer = &writer{}
	}
	return s.writer
}

// question is an unanswered Flush, Derive or Sync.
type question struct {
	pos     dsh.Pos
	through dsh.Seq
	replyTo *actor.PID
	reply   chan<- Synced // of a Sync, instead of replyTo
	derive  bool
	// messages is what the history was when Derive came: mailbox order is
	// log order, so that is the history through its event.
	messages []*dsh.Message
}

// Messages of the session to itself.
type (
	wrote struct {
		next   dsh.Seq
		n      int
		synced bool
		err    error
	}
	due struct{}
)

// barrier answers q once the log is durable through its event.
func (s *session) barrier(c actor.Context, q question) {
	if s.cfg.Volatile || q.through < s.writing().synced {
		q.answer(c, nil)
		return
	}
	s.writer.asked = append(s.writer.asked, q)
	s.write(c)
}

func (q question) answer(c actor.Context, err error) {
	switch {
	case q.reply != nil:
		q.reply <- Synced{Next: q.through + 1, Err: err}
	case !q.derive:
		c.Send(q.replyTo, Flushed{Pos: q.pos, Err: err})
	case err != nil:
		c.Send(q.replyTo, Derived{Pos: q.pos, Err: err})
	default:
		c.Send(q.replyTo, Derived{Pos: q.pos, Messages: q.messages})
	}
}

// queue keeps events until they are written.
func (s *session) queue(c actor.Context, events []dsh.Event) {
	w := s.writing()
	w.tail = append(w.tail, events...)
	for i := range events {
		w.bytes += weight(&events[i])
	}
	// A store that fails is asked again in time, not with every event.
	if w.failures == 0 && (len(w.tail) >= WriteBatch || w.bytes >= WriteBytes) {
		w.isDue = true
		s.write(c)
		return
	}
	s.writeLater(c)
}

// writeLater sees to it that what nobody asks to be durable is written, however
// quiet the session is from now on. A store that fails is tried less and less
// often.
func (s *session) writeLater(c actor.Context) {
	w := s.writer
	if w.timer != nil || w.busy || w.closed || len(w.tail) == 0 {
		return
	}
	root, self := c.ActorSystem().Root, c.Self()
	w.timer = time.AfterFunc(WriteDelay<<min(w.failures, 6), func() { root.Send(self, due{}) })
}

// write starts the goroutine that writes, if there is a reason to and none is
// writing. With nothing left to write it answers who waits for that.
func (s *session) write(c actor.Context) {
	w := s.writing()
	if w.busy {
		return
	}
	sync := len(w.asked) > 0 || len(w.closing) > 0
	if !sync && (!w.isDue || len(w.tail) == 0) {
		return
	}
	if s.cfg.Volatile || len(w.tail) == 0 && w.synced >= s.next {
		s.settle(c, nil)
		return
	}
	w.busy, w.isDue, w.bytes = true, false, 0
	batch, next := w.tail[:len(w.tail):len(w.tail)], s.next
	log, root, self := s.cfg.Log, c.ActorSystem().Root, c.Self()
	fence := Fence{Epoch: s.epoch, Next: s.stored}
	s.cfg.Run(func() {
		done := wrote{next: next, n: len(batch), synced: sync}
		defer func() {
			if v := recover(); v != nil {
				done.err = fmt.Errorf("session: store panicked: %v", v)
			}
			root.Send(self, done)
		}()
		if done.err = log.Append(noContext, fence, batch); done.err != nil {
			done.n = 0
			return
		}
		if sync {
			done.err = log.Sync(noContext)
		}
	})
}

// wrote takes note of what the goroutine did and goes on with what came since.
func (s *session) wrote(c actor.Context, done wrote) {
	w := s.writing()
	w.busy = false
	if done.n > 0 {
		w.tail = append([]dsh.Event(nil), w.tail[done.n:]...)
		s.stored = done.next
	}
	if done.err != nil {
		err := fmt.Errorf("session: write: %w", done.err)
		if Lost(err) && len(w.closing) == 0 {
			s.fail(c, err) // trying again would never help
			return
		}
		if w.failures++; len(w.asked)+len(w.closing) == 0 && w.failures == 1 {
			s.cfg.Logger.Warn("session is behind", zap.String("session", string(s.cfg.Log.Header().ID)), zap.Error(err))
		}
		s.settle(c, err)
		s.writeLater(c)
		return
	}
	w.failures = 0
	if done.synced {
		w.synced = done.next
	}
	s.settle(c, nil)
	s.write(c)
	s.writeLater(c)
}

// settle answers the questions that are decided: all of them after an error,
// else those about what is durable by now.
func (s *session) settle(c actor.Context, err error) {
	w := s.writing()
	open := w.asked[:0]
	for _, q := range w.asked {
		if err == nil && !s.cfg.Volatile && q.through >= w.synced {
			open = append(open, q)
			continue
		}
		q.answer(c, err)
	}
	w.asked = open
	if len(w.closing) == 0 || err == nil && !s.cfg.Volatile && (w.synced < s.next || len(w.tail) > 0) {
		return
	}
	w.closed = true
	if cerr := s.cfg.Log.Close(); err == nil {
		err = cerr
	}
	for _, reply := range w.closing {
		reply <- err
	}
	w.closing = nil
	c.Stop(c.Self())
}

// from returns the unstored events that cover seq and what follows.
func (w *writer) from(seq dsh.Seq) []dsh.Event {
	for i := range w.tail {
		if w.tail[i].Last() >= seq {
			return w.tail[i:len(w.tail):len(w.tail)]
		}
	}
	return nil
}

// fail answers everyone who waits for the store.
func (w *writer) fail(c actor.Context, err error) {
	for _, q := range w.asked {
		q.answer(c, err)
	}
	for _, reply := range w.closing {
		reply <- err
	}
	w.asked, w.closing = nil, nil
}

func (w *writer) stop() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}
