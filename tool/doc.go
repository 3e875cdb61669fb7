// Package tool is what an agent can do: the [Tool] interface, the scoped
// registry that agents find tools in, and the validation of arguments.
package tool
