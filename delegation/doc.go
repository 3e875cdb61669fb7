// Package delegation is what an agent and its children say to each other: what
// a child is made of, how it ends, what is stored of it, and what code that
// runs for an agent may do with the agent's children.
//
// The runtime implements [Parent] and gives it to hooks and tools as the agent
// in their context; [From] finds it there. Tools that delegate need this
// package and no other:
//
//	parent, ok := delegation.From(ctx)
//	child, err := parent.Delegate(ctx, delegation.Spec{Label: "look around"})
//	outcome, err := child.RunMessage(ctx, dsh.UserText("please look"))
//
// A child is an agent like any other, with a log of its own. It has exactly one
// [Outcome] per life, which is read from its log and never from a text.
package delegation
