package dsh

import "context"

// Initiator says on whose behalf code runs. Hooks, tools, providers and their
// transports find it in their context.
type Initiator struct {
	Agent   AgentID
	Session SessionID
	// Parent is the agent that asked for this one; empty for a top-level one.
	Parent AgentID
	// Root is the top-level agent of the tree; Agent itself when Depth is 0.
	Root  AgentID
	Depth int
}

type initiatorKey struct{}

// WithInitiator returns ctx naming i as the initiator.
func WithInitiator(ctx context.Context, i Initiator) context.Context {
	return context.WithValue(ctx, initiatorKey{}, i)
}

// Outside returns ctx naming no initiator, for work on nobody's behalf.
func Outside(ctx context.Context) context.Context {
	return context.WithValue(ctx, initiatorKey{}, nil)
}

// InitiatorFrom returns the initiator that ctx names; ok is false outside any
// agent.
func InitiatorFrom(ctx context.Context) (i Initiator, ok bool) {
	i, ok = ctx.Value(initiatorKey{}).(Initiator)
	return i, ok
}
