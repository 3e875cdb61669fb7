// Package agent is the actor that hosts one agent's loop.
//
// It translates and decides nothing: messages become inputs of the machine in
// internal/loop, effects become messages to the session, the model stream and
// the tool pool, or one goroutine each for hooks, and every answer comes back
// as a message. Answers that are known at once, because nobody hooked in, are
// queued as inputs behind what the current message brings, so that an agent
// without hooks starts no goroutine of its own.
//
// A panic in user code is an error of that code. A panic in the actor itself
// stops it: everyone who waits is told, and the runtime reopens the agent from
// its log.
package agent
