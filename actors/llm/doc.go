// Package llm serves model requests: the [Provider] interface that adapters
// implement, and the actor that runs one stream.
//
// A stream is spawned by the agent that asks, with its request, and is
// gone with its answer. The provider is iterated on the stream's own
// goroutine. What it yields gathers in a [Feed] that the agent takes from: a
// chunk that finds the agent waiting is handed over at once, chunks that come
// faster than the agent takes them travel together, and a provider that is
// far ahead is slowed down. However a stream ends (by itself, by an error, a
// panic or an abort), its feed ends exactly once.
package llm
