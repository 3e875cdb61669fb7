// Package torture kills processes and breaks disks under running agents and
// looks at what is left. It is tests only.
//
// Processes are killed with SIGKILL. A kill keeps what was written and not
// synced; half of the stores therefore lose that as well, or keep a torn part
// of it, as after a power failure.
//
// What holds after any crash, and is checked after each:
//
//   - Every session opens, or has left no log and nothing that needed one.
//     What an earlier look found in a log is still there; numbers have no gaps.
//   - A tool body ran at most once for a call, and never without its tool/call
//     in the log. A result that says the call never ran tells the truth, and so
//     does one without an error.
//   - A model was asked only what the log yields: the header and the messages
//     of each request are the fold of the log up to its answer, and pass
//     dsh.CheckRequest.
//   - Closers are idempotent, and a resumed session takes the next prompt.
//   - All this holds for the sessions of sub-agents, in the foreground and in
//     the background, too. A resumed parent finds all of them. Nobody is told
//     twice how a background child settled, and everybody once when all is
//     resumed and closed; nobody believes that a child works which has no task.
//
// What an acknowledged message is promised: Start, Followup and Do return nil
// when the message is durable. It is then in the log exactly once, whatever
// crashes afterwards; one that was sent and not acknowledged is there once or not
// at all.
package torture
