package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/cmd/dsh-actor/config"
	"github.com/dsh-actor/dsh-actor/tool"
	"github.com/dsh-actor/dsh-actor/toolset/subagent"
)

// delegationTool is the tool with which an agent of the command line gives
// tasks to sub-agents.
const delegationTool = "subagent"

// Limits of sub-agents unless flags say otherwise.
const (
	defaultMaxDepth    = 3
	defaultMaxChildren = 10
)

// envHome names the user's own directory.
const envHome = "DSH_ACTOR_HOME"

// homeDirectory is where the user's own files are.
func (a *app) homeDirectory() string { return config.Home(a.env) }

// kinds reads the kinds of sub-agents of a project and of the user. Those of
// the project come first.
func (a *app) kinds(cwd string) ([]subagent.Kind, error) {
	dirs := []string{filepath.Join(cwd, ".dsh-actor", subagent.AgentsDir)}
	if home := a.homeDirectory(); home != "" && filepath.Join(home, subagent.AgentsDir) != dirs[0] {
		dirs = append(dirs, filepath.Join(home, subagent.AgentsDir))
	}
	return subagent.LoadKinds(dirs...)
}

// delegating returns the tool for sub-agents. A run is over when its agent is
// done, so sub-agents work in the foreground only.
func delegating(kinds []subagent.Kind) ([]tool.Tool, error) {
	set, err := subagent.New(subagent.Options{
		Tools: []subagent.Tool{{Name: delegationTool, Background: subagent.Never, Structured: true}},
		Kinds: kinds, NoControl: true, NoList: true, NoReport: true,
	})
	if err != nil {
		return nil, err
	}
	return set.Tools(), nil
}

func (a *app) agentsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "Kinds of sub-agents",
		Long: "Kinds of sub-agents that an agent can give tasks to. A kind is a Markdown file in\n" +
			".dsh-actor/agents/ of the working directory or of the home directory\n" +
			"(DSH_ACTOR_HOME, or ~/.dsh-actor):\n\n" +
			"  ---\n  name: reviewer\n  description: Reads code and names its problems.\n" +
			"  tools: [read_file, search, list_files]\n  model: deepseek-chat\n  ---\n" +
			"  You review code. …\n\n" +
			"name defaults to the file's, tools to all and model to the parent's.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.agentsList())
	return cmd
}

func (a *app) agentsList() *cobra.Command {
	var asJSON bool
	var dir string
	cmd := &cobra.Command{
		Use:               "list",
		Short:             "List the kinds of sub-agents",
		Example:           "  dsh-actor agents list\n  dsh-actor agents list --json",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			cwd, err := workingDirectory(dir)
			if err != nil {
				return err
			}
			kinds, problem := a.kinds(cwd)
			return failed(errors.Join(a.listKinds(kinds, asJSON), problem))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	cmd.Flags().StringVar(&dir, "cwd", "", "working `DIR` (default: the current one)")
	return cmd
}

func (a *app) listKinds(kinds []subagent.Kind, asJSON bool) error {
	if asJSON {
		if kinds == nil {
			kinds = []subagent.Kind{}
		}
		return writeJSON(a.stdout, struct {
			Version int             `json:"version"`
			Agents  []subagent.Kind `json:"agents"`
		}{outputVersion, kinds})
	}
	var out strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&out, "%s\n%s", k.Name, wrap(k.Description, "    ", 88))
		if k.Tools != nil {
			fmt.Fprintf(&out, "    tools: %s\n", strings.Join(k.Tools, ", "))
		}
		if k.Model != "" {
			fmt.Fprintf(&out, "    model: %s\n", k.Model)
		}
		fmt.Fprintf(&out, "    %s\n", k.File)
	}
	if len(kinds) == 0 {
		out.WriteString("There are no kinds of sub-agents here; see 'dsh-actor agents --help'.\n")
	}
	_, err := a.stdout.WriteString(out.String())
	return err
}
