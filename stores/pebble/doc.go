// Package pebble keeps the session logs of one process in a pebble database
// (github.com/cockroachdb/pebble), whose write-ahead log all sessions share: a
// durability barrier of any number of sessions is one sync of one file. It is a
// module of its own, so that nobody builds a database who does not ask for one.
//
//	store, err := pebble.Open(dir)
//	// ...
//	defer store.Close()
//
// What it promises:
//
//   - An append is in the database as a whole or not at all, and one that was
//     refused may be repeated.
//   - After Sync nothing appended before is lost, whatever stops.
//   - A failure of the disk never ends the process, as the engine by itself
//     would: the database is closed where it stands, opened again with the next
//     call, and what was not durable is written again.
//   - Damage is an error (jsonl.ErrCorrupt), never other events.
//   - The lines kept are those of a session file, so that nothing is lost or
//     translated on the way from one store to the other.
//
// What it does not give, compared with the files of package jsonl:
//
//   - A database belongs to one process. Another one is refused
//     ([session.ErrInUse]), also to read or list: no tool looks at a session
//     while its agent runs.
//   - Nobody reads it but this package: not dsh, not a text editor.
//   - What was appended and not synced is in the memory of the process, and
//     goes with it if it is killed; files keep it as long as the machine runs.
//     Close syncs for that reason.
//   - While the disk takes no writes nothing can be read either, since opening
//     the database writes.
//
// The turn that a crash left open is closed by whoever continues the log (see
// dsh.Closers).
package pebble
