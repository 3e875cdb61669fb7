package llm

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/dsh-actor/dsh-actor/hook"
)

// stream is the actor of one model request.
type stream struct {
	cancel context.CancelCauseFunc
	open   Open
	feed   *Feed
}

// finished is what the reader tells its actor at its end.
type finished struct{}

// Props returns how to spawn streams; the first message of each is [Open].
func Props(opts ...actor.PropsOption) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &stream{} }, opts...)
}

// Receive handles one message. It never waits.
func (s *stream) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case Open:
		ctx, cancel := context.WithCancelCause(msg.Context)
		s.cancel, s.open, s.feed = cancel, msg, &Feed{}
		go s.read(ctx, c.ActorSystem().Root, c.Self())
	case Abort:
		if s.cancel != nil {
			s.cancel(msg.Cause)
		}
	case finished:
		c.Stop(c.Self())
	case *actor.Stopped:
		*s = stream{} // whoever still has the address does not keep the request
	}
}

// read iterates the provider. It is the only goroutine of the stream and ends
// with the feed.
func (s *stream) read(ctx context.Context, root *actor.RootContext, self *actor.PID) {
	err := hook.ErrExited
	defer func() {
		if s.feed.end(err) {
			s.tell(root)
		}
		s.cancel(nil)
		root.Send(self, finished{})
	}()
	err = s.serve(ctx, root)
}

func (s *stream) serve(ctx context.Context, root *actor.RootContext) (err error) {
	defer hook.Catch("model stream", &err)
	for chunk, err := range s.open.Serve(ctx, s.open.Request) {
		if err != nil {
			return err
		}
		tell, err := s.feed.put(ctx, chunk)
		if err != nil {
			return err
		}
		if tell {
			s.tell(root)
		}
	}
	return nil
}

func (s *stream) tell(root *actor.RootContext) {
	root.Send(s.open.ReplyTo, Fed{Pos: s.open.Request.Pos, Feed: s.feed})
}
