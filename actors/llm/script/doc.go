// Package script is an [llm.Provider] that plays responses written in
// advance. It stands in for a model in tests, benchmarks and the conformance
// runner.
//
// A [Response] is a list of steps: emit a chunk, wait for a gate, hang until
// the request is aborted, run a function from inside the stream, let time
// pass, fail. [Text], [Calls], [Reasoning], [MaxTokens] and [Error] write the
// common ones, [Answer] the rest. Each request takes the next response,
// whichever agent makes it; once none is left requests fail with
// [ErrExhausted].
//
//	gates := new(script.Gates)
//	p := script.New(script.Options{Gates: gates},
//		script.Calls(dsh.ToolCall{ID: "c1", Name: "clock", Arguments: "{}"}),
//		append(script.Response{script.Wait{Gate: "noon"}}, script.Text("It is noon.", 3)...),
//	)
//
// A Provider is safe for concurrent use, holds no goroutine, and emits chunks
// without allocating. It waits on channels only, so its waits are durably
// blocking in a testing/synctest bubble. It does not check that a response is
// a well-formed stream: what a model could get wrong can be scripted.
package script
