// Package demo is a provider without a language model: a script that drives
// real tools, so that the runtime can be tried offline and without a key.
//
//	rt, err := runtime.New(runtime.Options{
//		Providers: map[string]llm.Provider{"demo": demo.New(demo.Options{Pace: demo.DefaultPace})},
//		Tools:     tools,
//	})
//
// Its first words say what it is and how to get a real model. Then it looks
// for wishes that it knows in the prompt ("list the files", "read X",
// "summarise X", "search for Y", "run `cmd`", "write … to F", "plan …"),
// calls those of the request's tools that fulfil them, first all that only
// read, then commands, then writes, and answers with what the results really
// say. Without a wish that it knows it lists the directory and says what it can
// do.
//
// It keeps nothing between requests: the same request gets the same answer,
// and follow-ups ("read it", "again", "go on") are read from the history. The
// usage is counted from bytes. It does no I/O of its own.
package demo
