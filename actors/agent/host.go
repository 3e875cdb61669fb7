package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/toolpool"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/internal/loop"
)

// host is the actor.
//
// Invariants: work is set while a message is handled and while a turn or
// maintenance is open.
type host struct {
	cfg    *Config
	m      *loop.Machine
	handle *Handle
	face   hook.Agent // what hooks and tools get
	self   *actor.PID
	prompt *rendered // the last plain one
	*work

	idle     []chan<- struct{}
	watched  []watch // not claimed yet
	subs     []chan<- hook.Notice
	notices  *notifier
	disposal []chan<- error
	retiring *Retire // nil until asked to
	over     bool    // disposed of: it is stopping and takes nothing any more
}

// work is what an agent needs while it has something to do.
//
// Invariants: known, front, unsent and replies are empty between messages; ctx
// is set only while a turn or maintenance is open.
type work struct {
	known   []loop.Input // answers known at once, behind the current message
	front   []loop.Input // what observers did, before anything else
	unsent  []dsh.Event  // logged and not yet with the session
	replies []func()     // and questions, due once the log is with the session

	named   context.Context //nolint:containedctx // names the initiator.
	ctx     context.Context //nolint:containedctx // of the open turn or task.
	cancel  context.CancelCauseFunc
	aborted error // set while what is open is being aborted
	stream  *actor.PID
	claimed []chan<- Outcome // of the open turn
	task    Maintain

	room struct { // where lists begin, so that a few entries take no allocation
		known   [2]loop.Input
		replies [2]func()
		claimed [1]chan<- Outcome
	}
}

func newWork() *work {
	w := &work{}
	w.known, w.replies, w.claimed = w.room.known[:0], w.room.replies[:0], w.room.claimed[:0]
	return w
}

// Receive handles one message. It never waits.
func (h *host) Receive(c actor.Context) {
	defer h.rescue(c)
	if h.work == nil {
		h.work = newWork()
	}
	if h.over {
		h.refuse(c)
		return
	}
	switch msg := c.Message().(type) {
	case *actor.Started:
		return
	case begin:
		h.begin(c, msg.handle)
	case *actor.Stopping:
		return // after a failure there is nothing to settle
	case *actor.Stopped:
		h.stopped()
		return
	case Do:
		h.do(c, msg)
	case answer:
		h.feed(c, msg.input)
	case llm.Fed:
		h.fed(c, msg)
	case session.Derived:
		h.feed(c, loop.Derived{Pos: msg.Pos, Messages: msg.Messages, Err: msg.Err})
	case session.Flushed:
		h.feed(c, loop.Synced{Pos: msg.Pos, Err: msg.Err})
	case session.Failed:
		h.fail(c, msg.Err)
		return
	case toolpool.Result:
		h.feed(c, loop.Ran{Pos: msg.Pos, Call: msg.Index, Outcome: h.outcome(msg)})
	case Maintain:
		h.maintain(c, msg)
	case maintained:
		h.endContext()
		h.feed(c, loop.Maintained{Pos: msg.pos})
		h.later(func() { msg.reply <- msg.err })
	case WaitIdle:
		h.idle = append(h.idle, msg.Reply)
	case Unwait:
		h.idle = without(h.idle, msg.Reply)
	case Inspect:
		msg.Reply <- h.inspect()
	case Subscribe:
		h.subs = append(h.subs, msg.Notices)
	case Unsubscribe:
		h.subs = without(h.subs, msg.Notices)
	case Retire:
		h.retiring = &msg
	case Nudge: // the look is in settle
	case Passivate:
		h.passivate(c, msg)
		return
	case Dispose:
		h.disposal = append(h.disposal, msg.Reply)
		h.feed(c, loop.Cancel{Cause: dsh.Cause{Kind: dsh.CauseDisposed}, KeepInbox: msg.KeepInbox})
	}
	h.settle(c)
}

// begin makes the actor the agent of a handle.
func (h *host) begin(c actor.Context, handle *Handle) {
	h.cfg, h.m, h.handle, h.face, h.self = handle.cfg, handle.cfg.Machine, handle, handle, c.Self()
	if h.cfg.Face != nil {
		h.face = h.cfg.Face(handle)
	}
	if h.cfg.Source != "" {
		h.feed(c, loop.Start{Source: h.cfg.Source})
	}
}

// settle applies the answers known at once and, when the message's work is
// done, hands the log on and tells those who wait for idle.
func (h *host) settle(c actor.Context) {
	for i := 0; i < len(h.known); i++ { // each may add more
		h.feed(c, h.known[i])
	}
	clear(h.known)
	h.known = h.known[:0]
	h.send(c)
	for _, reply := range h.replies {
		reply()
	}
	clear(h.replies)
	h.replies = h.replies[:0]
	if h.m.Idle() {
		h.rest(c)
	} else if h.handle.idle.Load() != 0 {
		h.handle.idle.Store(0)
	}
}

// do applies a batch of commands.
func (h *host) do(c actor.Context, msg Do) {
	done := Done{}
	for i, command := range msg.Commands {
		if d, ok := command.(loop.Deliver); ok && i == 0 && msg.Outcome != nil {
			h.watched = append(h.watched, watch{id: d.Message.ID, reply: msg.Outcome})
		}
		h.cascade(command)
		if err := h.take(c, command); err != nil {
			if done.Errs == nil {
				done.Errs = make([]error, len(msg.Commands))
			}
			done.Errs[i] = err
			if i == 0 && msg.Outcome != nil {
				h.watched = h.watched[:len(h.watched)-1] // refused: nothing follows
			}
		}
	}
	done.Next = h.m.Next()
	h.later(func() { msg.Reply <- done })
}

// take applies a command from outside. What only the loop itself may log is
// refused: it would make the log say what did not happen.
func (h *host) take(c actor.Context, command loop.Input) error {
	if a, ok := command.(loop.Append); ok && h.cfg.Observer == nil {
		if err := recordable(a.Fact); err != nil {
			return err
		}
	}
	return h.apply(c, command)
}

// ErrNotRecordable refuses a fact that only the loop may log.
var ErrNotRecordable = errors.New("only the agent itself records this")

func recordable(f dsh.Fact) error {
	switch f.Type() {
	case dsh.TypeTurnStart, dsh.TypeTurnEnd, dsh.TypeStepStart, dsh.TypeStepEnd, dsh.TypeAssistantChunk,
		dsh.TypeAssistantMessage, dsh.TypeToolStarted, dsh.TypeRequestHeader, dsh.TypeRequestContext,
		dsh.TypeInboxSpliced, dsh.TypeEndSeed:
		return fmt.Errorf("agent: append %s: %w", f.Type(), ErrNotRecordable)
	}
	return nil
}

// later keeps a reply, or a question to hooks, until what it tells of is in the
// log: whoever has it can read the events behind it.
func (h *host) later(reply func()) { h.replies = append(h.replies, reply) }

// feed gives the machine an input that it cannot refuse.
func (h *host) feed(c actor.Context, in loop.Input) { _ = h.apply(c, in) }

// apply gives the machine one input and everything that follows from it at
// once: what observers did, and borders without anything open. It returns why
// the input was refused.
func (h *host) apply(c actor.Context, in loop.Input) error {
	now := time.Now().UnixMilli()
	effects, refused := h.m.Step(now, in)
	h.perform(c, effects)
	for {
		switch {
		case len(h.front) > 0:
			in := h.front[0]
			h.front = h.front[1:]
			effects, _ = h.m.Step(now, in)
		case h.m.Between():
			effects, _ = h.m.Step(now, loop.Continue{})
		default:
			return refused
		}
		h.perform(c, effects)
	}
}

// perform carries out effects in order. The cases are the whole of the host:
// each is one message, one goroutine or one answer known at once.
func (h *host) perform(c actor.Context, effects []loop.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case *loop.Log:
			h.log(c, e.Events)
		case *loop.Notify:
			h.notify(e.Notice)
		case loop.Sync:
			h.send(c)
			c.Send(h.cfg.Session, session.Flush{Pos: e.Pos, Through: h.m.Next() - 1, ReplyTo: h.self})
		case loop.Admit:
			h.admit(c, e)
		case loop.Prepare:
			h.prepare(c, e)
		case loop.Derive:
			h.send(c)
			c.Send(h.cfg.Session, session.Derive{Pos: e.Pos, Through: e.Through, ReplyTo: h.self})
		case loop.OpenStream:
			h.openStream(c, e)
		case loop.Recover:
			h.recover(c, e)
		case loop.AskStopping:
			h.askStopping(c, e)
		case loop.AwaitChildren:
			h.awaitChildren(c, e)
		case loop.Classify:
			h.classify(c, e)
		case loop.Judge:
			h.judge(c, e)
		case loop.Run:
			h.run(c, e)
		case loop.Review:
			h.review(c, e)
		case loop.RunMaintenance:
			h.runMaintenance(c, e)
		case loop.Abort:
			h.abort(c, e)
		case loop.EndTurn:
			h.endTurn(e)
		}
	}
}

// log keeps events for the session. Slices that lie side by side become one
// message.
func (h *host) log(c actor.Context, events []dsh.Event) {
	n := len(h.unsent)
	if n > 0 && cap(h.unsent) > n && &h.unsent[:n+1][n] == &events[0] {
		h.unsent = h.unsent[:n+len(events)]
	} else {
		h.send(c)
		h.unsent = events
	}
	if h.cfg.Observer == nil {
		return
	}
	for ev := range dsh.Expand(events) {
		h.cfg.Observer.Logged(ev, h.act)
	}
}

// act queues what an observer does.
func (h *host) act(in loop.Input) { h.front = append(h.front, in) }

// send hands what was logged to the session.
func (h *host) send(c actor.Context) {
	if n := len(h.unsent); n > 0 {
		c.Send(h.cfg.Session, session.Append{Events: h.unsent[:n:n]})
		h.unsent = nil
	}
}

// openStream asks the model: an actor of its own serves the request.
func (h *host) openStream(c actor.Context, e loop.OpenStream) {
	name := e.Request.Header.Config.Provider
	provider, ok := h.cfg.Providers(name)
	if !ok {
		h.known = append(h.known, loop.StreamEnded{Pos: e.Pos, Err: &dsh.Failure{
			Code:    dsh.CodeNoAdapter,
			Message: fmt.Sprintf("no adapter serves provider %q: register one with the runtime", name),
		}})
		return
	}
	h.stream = c.ActorSystem().Root.Spawn(h.cfg.Streams)
	c.Send(h.stream, llm.Open{
		Initiator: &h.cfg.Initiator, Context: h.base(), Serve: h.cfg.Hooks.Streaming(provider.Stream), Request: e.Request, ReplyTo: h.self,
	})
}

// fed takes what a stream has gathered. A stream of a previous life is taken
// from too, so that it can end; the machine drops what it says.
func (h *host) fed(c actor.Context, msg llm.Fed) {
	chunks, ended, err := msg.Feed.Take()
	if h.cfg.Observer != nil {
		for i := range chunks {
			h.feed(c, loop.Streamed{Pos: msg.Pos, Chunks: chunks[i : i+1 : i+1]})
		}
	} else if len(chunks) > 0 {
		h.feed(c, loop.Streamed{Pos: msg.Pos, Chunks: chunks})
	}
	if ended {
		if msg.Pos == h.m.Pos() {
			h.stream = nil
		}
		h.feed(c, loop.StreamEnded{Pos: msg.Pos, Err: err})
	}
}

// base returns a context that names the initiator.
func (h *host) base() context.Context {
	if h.named == nil {
		h.named = hook.WithAgent(dsh.WithInitiator(context.Background(), h.cfg.Initiator), h.face)
	}
	return h.named
}

// turnContext returns the context of what is open, which names the initiator
// and is cancelled with it.
func (h *host) turnContext() context.Context {
	if h.ctx == nil {
		h.ctx, h.cancel = context.WithCancelCause(h.base())
		if h.aborted != nil {
			h.cancel(h.aborted)
		}
	}
	return h.ctx
}

func (h *host) endContext() {
	if h.cancel != nil {
		h.cancel(nil)
	}
	h.named, h.ctx, h.cancel, h.aborted = nil, nil, nil, nil
}

// abort passes an abort on to everything that is open.
func (h *host) abort(c actor.Context, e loop.Abort) {
	h.aborted = &AbortedError{Cause: e.Cause}
	if h.cancel != nil {
		h.cancel(h.aborted)
	}
	if h.stream != nil {
		c.Send(h.stream, llm.Abort{Pos: e.Pos, Cause: h.aborted})
	}
	h.abortChildren()
	c.Send(h.cfg.Pool, toolpool.Abort{Pos: e.Pos, ReplyTo: h.self})
}

// AbortedError is the cause of a context that was cancelled with its turn.
type AbortedError struct{ Cause dsh.Cause }

// Error says who cancelled.
func (e *AbortedError) Error() string {
	if e.Cause.Reason != "" {
		return fmt.Sprintf("cancelled by %s: %s", e.Cause.Kind, e.Cause.Reason)
	}
	return fmt.Sprintf("cancelled by %s", e.Cause.Kind)
}

// Unwrap returns context.Canceled.
func (e *AbortedError) Unwrap() error { return context.Canceled }

func (h *host) endTurn(e loop.EndTurn) {
	h.endContext()
	h.stream = nil
	for _, reply := range h.claimed {
		h.later(func() { reply <- Outcome{Turn: e.Turn, Ending: e.Ending, Usage: e.Usage, Answer: e.Answer} })
	}
	h.claimed = h.claimed[:0]
}

func (h *host) maintain(c actor.Context, msg Maintain) {
	h.task = msg
	if err := h.apply(c, loop.Maintain{}); err != nil {
		msg.Reply <- err
	}
	h.task = Maintain{}
}

func (h *host) runMaintenance(c actor.Context, e loop.RunMaintenance) {
	ctx, task := h.turnContext(), h.task
	root, self := c.ActorSystem().Root, h.self
	go func() {
		done := maintained{pos: e.Pos, reply: task.Reply, err: hook.ErrExited}
		defer func() { root.Send(self, done) }()
		defer hook.Catch("maintenance task", &done.err)
		done.err = task.Task(ctx)
	}()
}

func (h *host) inspect() State {
	history := h.m.History()
	return State{
		Status: h.m.Status(), LastTurn: h.m.LastTurn(), Next: h.m.Next(), Inbox: h.m.Inbox(),
		Surface: history.Surface(), Messages: history.Messages(),
	}
}

// rescue stops an agent that panicked. Whoever waits sees it go.
func (h *host) rescue(c actor.Context) {
	v := recover()
	if v == nil {
		return
	}
	err, ok := v.(error)
	if !ok {
		err = fmt.Errorf("%v", v)
	}
	h.fail(c, err, zap.ByteString("stack", debug.Stack()))
}

// fail stops an agent that cannot go on.
func (h *host) fail(c actor.Context, err error, more ...zap.Field) {
	err = fmt.Errorf("agent %s failed: %w", h.cfg.Initiator.Agent, err)
	h.cfg.Logger.Error("agent failed", append(more, zap.String("agent", string(h.cfg.Initiator.Agent)),
		zap.String("state", h.m.State()), zap.Stringer("pos", h.m.Pos()), zap.Error(err))...)
	h.unsent, h.known, h.front, h.replies = nil, nil, nil, nil // whoever waits sees the agent go
	h.handle.failure.Store(&err)
	c.Stop(c.Self())
}

// stopped releases what an agent that ended in the middle still holds.
func (h *host) stopped() {
	if h.cancel != nil {
		h.cancel(context.Canceled)
	}
	if h.stream != nil {
		h.handle.root.Send(h.stream, llm.Abort{Cause: h.handle.Err()})
	}
	if h.handle.Failure() != nil {
		h.handle.root.Send(h.cfg.Pool, toolpool.Abort{ReplyTo: h.self}) // what is queued must not begin
	}
	for _, reply := range h.disposal {
		reply <- ErrGone
	}
	close(h.handle.gone)
	if h.cfg.Stopped != nil {
		h.cfg.Stopped()
	}
}

func without[T comparable](list []T, gone T) []T {
	for i, x := range list {
		if x == gone {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}
