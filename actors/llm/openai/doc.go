// Package openai is the adapter for every endpoint that speaks OpenAI's
// streaming chat completions: DeepSeek, OpenAI, OpenRouter, vLLM, SGLang,
// llama.cpp, Ollama and the proxies in front of them. It is the only package
// that imports go-openai.
//
//	provider, err := openai.New(openai.Options{
//		BaseURL: "https://api.deepseek.com",
//		APIKey:  os.Getenv("DEEPSEEK_API_KEY"),
//		Models:  map[string]llm.Model{"deepseek-v4-pro": {ContextWindow: 1_000_000}},
//	})
//
// # What it promises
//
// One call of [Provider.Stream] is one HTTP request; nothing is retried here.
// The same request gives the same bytes, and a request whose history extends
// another's has that one's messages as a prefix, so the server's cache holds.
//
// A stream that ends well yields, per block in the order in which the blocks
// appeared, a start, deltas and an end; then the usage, if any was told; then
// the finish. A stream that ends in any other way yields an error: ctx's own
// if it was cancelled, otherwise a [dsh.Failure] whose text holds no secret.
// Half an answer is never a success: the end of the connection is not the end
// of the answer (see [TruncatedPolicy]).
//
// # Failures
//
// classify.go holds the table of what a server's words and status mean. What
// the adapter finds out by itself is:
//
//   - TIMEOUT wrapping [ErrStalled]: a watchdog fired;
//   - TRANSPORT wrapping [ErrTruncated]: the stream stopped before its end; it
//     wraps [dsh.ErrStreamClosed] too where the server ended it in order;
//   - TRANSPORT wrapping [ErrMalformed]: the answer is not a stream of JSON
//     chunks, such as a proxy's HTML page;
//   - TRANSPORT wrapping [ErrLeakedMarkup]: the model's tool call arrived as
//     text. Asking again usually helps, so the code is one that is retried;
//   - EMPTY_RESPONSE: no body, or an end without any block;
//   - CONTENT_FILTER and SERVER: the finish reason said so.
//
// # What it leaves to others
//
// Retries and their delays (policy/retry), concurrency and rates (package
// admission), repair of histories (the log is already in order), and the
// check of tool arguments: those reach the log as the model wrote them. Only
// on the wire are arguments that are no JSON object replaced by {}, because
// servers refuse a whole history for them.
//
// # How it is built
//
// go-openai builds the request and reads lines; between it and the network
// stands an HTTP client of ours (doer.go). On the way out it puts in the body
// that encode.go wrote, since go-openai's structs cannot say an empty content
// or a temperature of zero, and refuse models by name. On the way in it reads
// the events by the book (sse.go, body.go) and hands go-openai one clean line
// for each. chunk.go decodes them, answer.go and calls.go fold them.
package openai
