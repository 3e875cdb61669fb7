package toolset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/tool"
	"github.com/dsh-actor/dsh-actor/toolset"
)

func ExampleNew() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	_ = os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("one\ntwo\nthree\n"), 0o644)

	tools, err := toolset.New(toolset.Options{Root: dir, Names: []string{"read_file", "edit_file", "search"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	registry := tool.NewRegistry(nil)
	if err := registry.Register(tools...); err != nil {
		fmt.Println(err)
		return
	}
	call := func(name, args string) {
		entry, _ := registry.Snapshot().Lookup(name)
		res, err := entry.Run(context.Background(), tool.Call{Name: name, Args: json.RawMessage(args)})
		if err != nil {
			fmt.Println("error:", err)
			return
		}
		fmt.Println(dsh.TextOf(res.Content))
	}
	call("search", `{"pattern":"^t"}`)
	call("edit_file", `{"path":"notes.txt","old_string":"two","new_string":"2"}`)
	call("read_file", `{"path":"notes.txt","offset":2}`)
	call("read_file", `{"path":"../secrets"}`)
	// Output:
	// notes.txt:2: two
	// notes.txt:3: three
	//
	// Replaced 1 occurrence in notes.txt, the first in line 2.
	//      2	2
	//      3	three
	//
	// error: ../secrets is outside the working directory, which this tool may not leave. Use a path inside it; relative paths start there.
}
