package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/tool"
	"github.com/dsh-actor/dsh-actor/toolset"
)

// noTools is the value of --tools that stands for none.
const noTools = "none"

// toolNames are the tools that ship, in the order in which they are listed.
var toolNames = []string{
	toolset.Shell, toolset.ReadFile, toolset.WriteFile, toolset.EditFile, toolset.ListFiles, toolset.Search, toolset.Todo,
	delegationTool,
}

// pickTools returns the tools that --tools names; changed tells a flag that
// was given from one that was not. A session that goes on has those it had.
func (a *app) pickTools(f *runFlags, changed bool, set *settings) ([]tool.Tool, error) {
	names := f.tools
	if !changed {
		names = toolNames
		if set.past != nil && set.past.tools != nil {
			names = set.past.tools
		}
		if f.maxDepth == 0 {
			names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == delegationTool })
		}
	}
	switch {
	case changed && len(names) == 0:
		return nil, fmt.Errorf("--tools is empty; use '--tools %s' for an agent without tools", noTools)
	case len(names) == 1 && names[0] == noTools:
		return nil, nil
	}
	seen := map[string]bool{}
	for _, name := range names {
		if name == noTools {
			return nil, fmt.Errorf("--tools: %q cannot be combined with other names", noTools)
		}
		if seen[name] {
			return nil, fmt.Errorf("--tools: %q is named twice", name)
		}
		seen[name] = true
		if err := oneOf("--tools", name, toolNames); err != nil {
			return nil, err
		}
	}
	own := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == delegationTool })
	var tools []tool.Tool
	var err error
	if len(own) > 0 {
		tools, err = toolset.New(toolset.Options{Root: set.cwd, AllowOutside: f.allowOutside, Names: own})
	}
	if err != nil || len(own) == len(names) {
		return tools, err
	}
	kinds, problems := a.kinds(set.cwd)
	set.problems = problems
	more, err := delegating(kinds)
	return append(tools, more...), err
}

// A listedTool is one tool as tools --json shows it.
type listedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Mode        string          `json:"mode"`
	Parameters  json.RawMessage `json:"parameters"`
}

func (a *app) toolsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools that an agent can have",
		Long: "List the tools that an agent can have, with what the model is told of them.\n\n" +
			"Tools that are parallel may run at the same time; the others run alone.",
		Example:           "  dsh-actor tools\n  dsh-actor tools --json",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			tools, err := toolset.New(toolset.Options{})
			if err != nil {
				return failed(err)
			}
			more, err := delegating(nil)
			if err != nil {
				return failed(err)
			}
			tools = append(tools, more...)
			return failed(a.listTools(tools, asJSON))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object, with the JSON Schema of the arguments")
	return cmd
}

func (a *app) listTools(tools []tool.Tool, asJSON bool) error {
	list := struct {
		Version int          `json:"version"`
		Tools   []listedTool `json:"tools"`
	}{Version: outputVersion}
	for _, t := range tools {
		s := t.Schema()
		mode := tool.Exclusive
		if m, ok := t.(tool.Moded); ok {
			mode = m.Mode()
		}
		list.Tools = append(list.Tools, listedTool{s.Name, s.Description, mode.String(), s.Parameters})
	}
	if asJSON {
		return writeJSON(a.stdout, list)
	}
	var out strings.Builder
	for i, t := range list.Tools {
		if i > 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(&out, "%s (%s)\n%s", t.Name, t.Mode, wrap(t.Description, "    ", 88))
	}
	_, err := a.stdout.WriteString(out.String())
	return err
}

// wrap breaks text into indented lines of at most width bytes.
func wrap(text, indent string, width int) string {
	var out strings.Builder
	line := indent
	for word := range strings.FieldsSeq(text) {
		if len(line) > len(indent) && len(line)+1+len(word) > width {
			out.WriteString(line + "\n")
			line = indent
		}
		if len(line) > len(indent) {
			line += " "
		}
		line += word
	}
	return out.String() + line + "\n"
}
