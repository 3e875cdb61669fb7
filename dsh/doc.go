// Package dsh is the vocabulary of the agent loop and its pure folds.
//
// It holds what the rest of the project speaks about: identifiers, content
// blocks, messages, stream chunks, requests, failures and session events, the
// JSON form of each as the DeepSeek Harness session log documents it, and the
// functions that derive one from another: chunks into a message ([Assembler]),
// events into the history that a model sees ([History]), events into what is
// pending ([Inbox]) and into the configuration last sent ([HeaderFold]).
//
// The package promises that nothing here blocks, starts a goroutine, reads a
// clock or draws a random number. Values are immutable once they are part of
// an event: slices and pointers reachable from an [Event] are shared between
// the log, the history and readers, so nobody may write to them.
//
// It imports the standard library only and leaves to others how events are
// ordered (internal/loop), kept (actors/session) and shown.
package dsh
