package session

import (
	"fmt"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Config is what a session needs. Log is required.
type Config struct {
	Log Log
	// Volatile says that the store is: events are handed to it at once.
	Volatile bool
	// Loaded is what the log holds already, to derive the history from. The
	// session does not keep it.
	Loaded []dsh.Event
	// Failed is called once if the session breaks, on its goroutine and before
	// it stops; nil is allowed.
	Failed func(err error)
	// Gone is closed when the session stopped, whatever the reason; nil is
	// allowed.
	Gone chan<- struct{}
	// Run runs what waits for the store; nil starts a goroutine each time.
	Run func(work func())
	// Logger defaults to none.
	Logger *zap.Logger
}

// session is the actor.
//
// Invariants: history is the fold of every event appended; tail is the events
// from stored on; stored <= next.
type session struct {
	cfg     Config
	history dsh.History
	next    dsh.Seq
	epoch   Epoch
	readers []reader
	stored  dsh.Seq // the store has everything before
	writer  *writer // nil as long as nothing had to be written
}

type reader struct {
	from  dsh.Seq
	reply chan<- Available
}

// Props returns how sessions are spawned, all of them.
func Props(opts ...actor.PropsOption) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &session{} }, opts...)
}

// Spawn starts a session with the props of all of them.
func Spawn(root *actor.RootContext, props *actor.Props, cfg Config) *actor.PID {
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.Run == nil {
		cfg.Run = func(work func()) { go work() }
	}
	pid := root.Spawn(props)
	root.Send(pid, begin{&cfg})
	return pid
}

// begin is the first message of a session.
type begin struct{ cfg *Config }

// Receive handles one message. It never waits.
func (s *session) Receive(c actor.Context) {
	defer s.rescue(c)
	switch msg := c.Message().(type) {
	case begin:
		s.load(msg.cfg)
	case Append:
		s.append(c, msg.Events)
	case Flush:
		s.barrier(c, question{pos: msg.Pos, through: msg.Through, replyTo: msg.ReplyTo})
	case Derive:
		s.barrier(c, question{
			pos: msg.Pos, through: msg.Through, replyTo: msg.ReplyTo,
			derive: true, messages: s.history.Messages(),
		})
	case Sync:
		s.barrier(c, question{through: s.next - 1, reply: msg.Reply})
	case Read:
		s.read(msg)
	case Unread:
		s.unread(msg.Reply)
	case Close:
		w := s.writing()
		w.closing = append(w.closing, msg.Reply)
		s.write(c)
	case wrote:
		s.wrote(c, msg)
	case due:
		s.writer.timer = nil
		s.writer.isDue = true
		s.write(c)
	case *actor.Stopped:
		s.end()
	}
}

func (s *session) load(cfg *Config) {
	s.cfg = *cfg
	s.cfg.Loaded = nil
	for i := range cfg.Loaded {
		s.fold(&cfg.Loaded[i])
	}
	s.stored, s.epoch = s.next, s.cfg.Log.Epoch()
}

// fold takes one event into the history. The loop has checked it; what does
// not fit is a bug.
func (s *session) fold(ev *dsh.Event) {
	if ev.Seq != s.next {
		panic(fmt.Sprintf("session: event %d appended behind %d", ev.Seq, s.next-1))
	}
	if err := s.history.Apply(ev); err != nil {
		panic(fmt.Sprintf("session: append %d: %v", ev.Seq, err))
	}
	s.next += ev.Span()
}

func (s *session) append(c actor.Context, events []dsh.Event) {
	for i := range events {
		s.fold(&events[i])
	}
	if s.cfg.Volatile {
		fence := Fence{Epoch: s.epoch, Next: s.stored}
		if err := s.cfg.Log.Append(noContext, fence, events); err != nil {
			panic(fmt.Errorf("append %d: %w", events[0].Seq, err))
		}
		s.stored = s.next
	} else {
		s.queue(c, events)
	}
	s.wake()
}

// read answers at once if there is anything or the reader will not wait, else
// when there is.
func (s *session) read(r Read) {
	if a, ok := s.available(r.From); ok || !r.Wait {
		r.Reply <- a
		return
	}
	s.readers = append(s.readers, reader{from: r.From, reply: r.Reply})
}

func (s *session) available(from dsh.Seq) (Available, bool) {
	switch {
	case from < s.stored:
		return Available{Stored: true, Through: s.stored - 1}, true
	case from < s.next:
		return Available{Through: s.next - 1, Events: s.writer.from(from)}, true
	}
	return Available{}, false
}

// wake answers the readers that waited for what there is now.
func (s *session) wake() {
	if len(s.readers) == 0 {
		return
	}
	waiting := s.readers[:0]
	for _, r := range s.readers {
		if a, ok := s.available(r.from); ok {
			r.reply <- a
			continue
		}
		waiting = append(waiting, r)
	}
	clear(s.readers[len(waiting):])
	if len(waiting) == 0 {
		waiting = nil // an idle session keeps no grown buffer
	}
	s.readers = waiting
}

func (s *session) unread(reply chan<- Available) {
	for i, r := range s.readers {
		if r.reply == reply {
			s.readers = append(s.readers[:i:i], s.readers[i+1:]...)
			return
		}
	}
}

// rescue stops a session that panicked: its agent is told and reopens it from
// the log.
func (s *session) rescue(c actor.Context) {
	v := recover()
	if v == nil {
		return
	}
	err, ok := v.(error)
	if !ok {
		err = fmt.Errorf("%v", v)
	}
	s.fail(c, fmt.Errorf("session: %w", err), zap.ByteString("stack", debug.Stack()))
}

// fail stops a session that cannot go on. Whoever waits is told, and its agent.
func (s *session) fail(c actor.Context, err error, more ...zap.Field) {
	s.cfg.Logger.Error("session failed", append(more,
		zap.String("session", string(s.cfg.Log.Header().ID)), zap.Error(err))...)
	if s.writer != nil {
		s.writer.fail(c, err)
	}
	if s.cfg.Failed != nil {
		s.cfg.Failed(err)
	}
	c.Stop(c.Self())
}

// end tells everyone who waits that nothing comes any more.
func (s *session) end() {
	for _, r := range s.readers {
		r.reply <- Available{Closed: true}
	}
	s.readers = nil
	log, closed, gone := s.cfg.Log, false, s.cfg.Gone
	if s.writer != nil {
		s.writer.stop()
		closed = s.writer.closed
	}
	go func() {
		if !closed {
			_ = log.Close() // the session failed; whoever opens it next sees why
		}
		if gone != nil {
			close(gone)
		}
	}()
}
