// Package toolpool is the actor that bounds how many tool bodies a process
// runs at once.
//
// Each body runs on a goroutine of its own. When the pool is full, calls wait
// in the order in which they came, one queue per agent, and the agents take
// turns, so that one with many calls does not starve the others. A panic in a
// body is a result.
package toolpool
