// Package runtime is what a Go program embeds to run agents.
//
// A [Runtime] holds any number of agents in one process: it composes the
// actors behind each, gives them providers, tools, hooks and a session store,
// and closes them all. An [Agent] takes prompts ([Agent.Run],
// [Agent.Followup], [Agent.Steer], [Agent.Inject]), can be cancelled, waited
// for, inspected, followed ([Agent.Follow]) and disposed.
//
// Everything is safe for concurrent use. Calls take a context first; one that
// ends stops the waiting, not the agent, except where a method says
// otherwise. Errors can be told apart with errors.Is.
package runtime
