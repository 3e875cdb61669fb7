// Package subagent gives a model the tools to split its work over children:
//
//   - subagent gives a task to a child: in the foreground the result is the
//     child's last message, in the background its ID comes back at once;
//   - send_message, interrupt_agent and list_agents are for background children;
//   - report lets a background child tell its parent something before it ends;
//   - structured_output, which a child has only if it was asked for an output of
//     a given shape, checks and keeps that output.
//
// A [Set] is installed into a runtime by its tools and hooks:
//
//	set, err := subagent.New(subagent.Options{})
//	rt, err := runtime.New(runtime.Options{Tools: set.Tools(), Hooks: set.Hooks()})
//
// The tools find the agent they run for in their context (see package
// delegation) and work wherever an agent is one.
package subagent
