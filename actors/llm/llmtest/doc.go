// Package llmtest is a scripted model server for tests: it speaks OpenAI's
// streaming chat completions over loopback HTTP, answers each request with the
// next response of its script, and does to the wire what real servers do to
// it.
//
//	srv := llmtest.NewServer(t,
//		llmtest.ToolCalls(dsh.ToolCall{ID: "c0", Name: "read", Arguments: `{"p":"a"}`}).Reasoning("look"),
//		llmtest.Text("half an ans").CutAfter(2),
//		llmtest.RateLimited("2"),
//		llmtest.Text("done"),
//	)
//	provider, err := openai.New(openai.Options{BaseURL: srv.URL})
//
// The server checks every request's history as strictly as the strictest
// servers do (see [CheckHistory]): a bad one is answered with DeepSeek's 400
// and fails the test, unless [Server.AllowBadHistory] was called.
//
// It keeps what it was asked ([Server.Requests]), and never a goroutine:
// [Server.Close], which runs at the end of the test by itself, ends handlers
// that stall.
package llmtest
