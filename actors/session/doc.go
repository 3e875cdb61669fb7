// Package session is the actor that owns one append-only session log.
//
// It accepts events in order from the one agent that writes them, derives the
// history that the model sees, makes the log durable when asked, and tells
// readers what there is. The log itself is in a [Store]; the actor keeps in
// memory what the model sees and the events that the store does not have yet,
// and nothing else.
//
// Nothing blocks its mailbox: a store that is not volatile is written from a
// goroutine that exists while there is something to write.
package session
