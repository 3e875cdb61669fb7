package demo

import (
	"encoding/json"
	"strings"
)

// lastFile returns the file that the last call which named one named.
func lastFile(calls []call) string {
	for i := len(calls) - 1; i >= 0; i-- {
		if able[read].named(calls[i].Name) || able[write].named(calls[i].Name) {
			if path := argument(calls[i].Arguments, able[read].path); path != "" {
				return path
			}
		}
	}
	return ""
}

// nthFile returns a file of the last listing by its place in it.
func nthFile(calls []call, place string) string {
	for i := len(calls) - 1; i >= 0; i-- {
		c := calls[i]
		if !able[list].named(c.Name) || c.failed {
			continue
		}
		_, files := entries(c.result)
		n, ok := map[string]int{"first": 0, "second": 1, "third": 2, "last": len(files) - 1}[place]
		if !ok || n < 0 || n >= len(files) {
			return ""
		}
		return join(argument(c.Arguments, able[list].path), files[n])
	}
	return ""
}

// join returns the path of a listed name. Some tools list whole paths.
func join(dir, name string) string {
	dir = strings.TrimSuffix(dir, "/")
	if dir == "" || dir == "." || strings.HasPrefix(name, dir+"/") {
		return name
	}
	return dir + "/" + name
}

// argument returns the first of these members that the arguments have as a
// text.
func argument(arguments string, names []string) string {
	var members map[string]any
	if json.Unmarshal([]byte(arguments), &members) != nil {
		return ""
	}
	for _, name := range names {
		if s, ok := members[name].(string); ok {
			return s
		}
	}
	return ""
}
