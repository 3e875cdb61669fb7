// Package tool is what an agent can do: the [Tool] interface, constructors for
// plain Go functions, the scoped [Registry] that agents find tools in, and the
// validation of arguments.
//
// A function with a struct of arguments is a tool; its JSON Schema is derived
// from the struct:
//
//	type weather struct {
//		City string `json:"city" jsonschema:"name of the city"`
//		Days int    `json:"days,omitempty" jsonschema:"how many days ahead"`
//	}
//
//	forecast := tool.Func("forecast", "Tells the weather to come.",
//		func(ctx context.Context, in weather) (string, error) { return ask(ctx, in.City, in.Days) },
//		tool.Parallel)
//
//	tools := tool.NewRegistry(nil)
//	if err := tools.Register(forecast); err != nil { … }
//
// [New] makes a tool from a schema written by hand, and any type with the
// methods of [Tool] is one.
//
// The package promises that Execute never sees arguments that do not fit the
// schema, that a panic in a tool is an error of its call, and that a model's
// mistake is answered with a text that the model can act on. It leaves to
// others when calls run (internal/loop), where (actors/toolpool) and whether
// they may (package hook).
package tool
