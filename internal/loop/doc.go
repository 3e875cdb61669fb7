// Package loop is the turn and step machine of one agent.
//
// Inputs go in, effects come out. A [Machine] holds what the agent is waiting
// for as a state; [Machine.Step] applies one input, moves to the state that
// follows and returns the effects in the order in which the host must perform
// them. There is no goroutine, clock or random number in the package: time
// arrives with each input, identifiers derive from the session and the
// sequence number, so the same inputs give the same effects.
//
// The machine is the only writer of its session's log. It numbers the events,
// keeps the inbox and the order of tool results, and closes a turn only when
// every question it asked has been answered. How questions are answered (by
// hooks, by a model, by tools) is the host's business (actors/agent).
//
// The table of states and inputs is in docs/loop.md, printed from the tests.
package loop
