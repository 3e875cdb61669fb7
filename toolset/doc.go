// Package toolset is the tools that ship: shell, read_file, write_file,
// edit_file, list_files, search and todo.
//
//	tools, err := toolset.New(toolset.Options{Root: dir, Names: []string{"read_file", "search"}})
//	if err != nil { … }
//	err = registry.Register(tools...)
//
// The file tools stay inside Options.Root: a path that leads outside, also by
// way of a symbolic link, is refused unless Options.AllowOutside. Files are
// replaced as a whole, so a reader sees the old or the new one, and changes of
// one file wait for each other within the process.
//
// The shell tool is not confined. It starts in Root and can read and write
// whatever the process can, so leave it out of Options.Names, or put a guard
// (hook.Guard) or a sandbox around it, where that matters. Variables that look
// like secrets are kept from it; that is a precaution, not a protection.
//
// Tools that only read are parallel, the others exclusive. Whatever a tool
// hands back is bounded, and says so where something was left out. Errors have
// a code (see the constants) and a text that a model can act on.
//
// The package leaves to others which calls are allowed (package hook) and when
// they run.
package toolset
