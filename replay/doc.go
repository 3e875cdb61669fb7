// Package replay derives from a session's log every request that was made to a
// model and compares what the log says with what it yields. It asks no model and
// runs no tool: "the model sees the log" as a check of a log that exists.
//
// [Run] folds a log once. It yields a [Request] for each attempt that left a
// trace, with the messages, the system prompt, the tools and the configuration
// that the model saw, and a [Finding] for each place where the log disagrees
// with itself or with the derivation. A log that a sound runtime wrote has none.
//
// A log that was written by an audited agent (package policy/audit) also holds
// digests of what adapters were really handed; those requests are compared with
// them. Without digests a request that a hook changed behind the derivation
// cannot be told from one that it did not.
//
//	report := replay.Run(header, events)
//	for _, f := range report.Findings {
//		fmt.Println(f)
//	}
package replay
