// Package dispatch is where actors run: a mailbox and the workers that empty
// it, both behind extension points of the actor library.
//
// The library's own way, a new goroutine whenever a mailbox gets its first
// message, spends two fifths of a turn's time growing fresh stacks. Workers
// keep theirs. A mailbox takes no memory for messages while it has none.
//
// An actor whose handlers are short can do without a worker: see [Pool.Inline].
//
// Handlers must not wait (see docs/architecture.md), so a few workers serve
// any number of actors. If one waits all the same, because user code did where
// it must not, the workers that are missing are added.
package dispatch
