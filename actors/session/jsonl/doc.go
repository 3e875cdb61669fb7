// Package jsonl keeps session logs as files, in the format of the DeepSeek
// Harness (dsh), version 0: what it writes loads in dsh, and what dsh writes
// loads here.
//
// A log is one file in a directory of its own, a header line and then a line
// per event; runs of stream deltas share a line. By default each write is one
// zstd frame. No file exists before the first append, and a log that gets a name
// has its header and the first append in it.
//
// What it promises:
//
//   - An append is in the file as a whole or not at all; a failed one leaves
//     the log as it was and may be repeated when the disk is well again.
//   - After Sync nothing appended before is lost, whatever stops, nor the file's
//     name and the path to it. A failed Sync is not forgotten: the next one writes
//     again what the disk may have lost.
//   - Before the first Sync nothing is promised: a power failure may lose the
//     name, the content or both. A file that holds no whole header then is no
//     log: it is not listed, opening it is session.ErrNotFound, and Create with
//     the same ID takes its place. The end of a process loses none of this.
//   - A log has one owner, across processes: a lock beside the file says who
//     ([Store.Owner]). Others can read ([Store.OpenReader]) while it goes on, and
//     what there is of a damaged one ([Store.Look]).
//   - A tail that a crash left is cut off when the log is opened, and what can
//     be read of it is kept. Damage before the end of a turn is an error that
//     names file, line and reason ([ErrCorrupt]); nothing is guessed.
//   - A log of a newer format, or with events that this build does not know, is
//     refused and left alone.
//
// Beside what every store has there are three ways to look at logs and two to
// change them: [Store.List] and [Store.Look] are quick and take what is in its
// place, a [Reader] follows one log, [Store.Survey] and [Store.Check] look at
// everything and say what is the matter; [Store.Repair] mends a log and
// [Store.Delete] removes one, both of them under its lock.
//
// Syncs that come at the same time share their cost: see [Options.SyncEach].
// The turn that a crash left open is closed by whoever continues the log (see
// dsh.Closers); the store does not look into what events mean.
package jsonl
