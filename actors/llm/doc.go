// Package llm serves model requests: the [Provider] interface that adapters
// implement and the actor that runs one stream.
package llm
