package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dsh-actor/dsh-actor/tool"
)

const rootLong = `dsh-actor runs LLM agents that stream, call real tools and end in an orderly way.

Try it without a key (a scripted demo answers then and says so):

  dsh-actor run "List the files here and summarise README.md"

With a key in the environment a real model answers:

  export DEEPSEEK_API_KEY=…
  dsh-actor run "Find out why the tests fail"`

// root returns the whole command line.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "dsh-actor",
		Short: "Run LLM agents",
		Long:  rootLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:       readBuild().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetVersionTemplate("dsh-actor {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(a.runCommand(), a.providersCommand(), a.toolsCommand(), a.agentsCommand(), a.sessionsCommand(), a.versionCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Args, c.RunE = root.Args, root.RunE
		case "help":
			c.Args = knownCommand
		}
	}
	return root
}

// knownCommand refuses help for a command that is not there.
func knownCommand(help *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if found, _, err := help.Root().Find(args); err != nil || found == help.Root() {
		return unknownCommand(help.Root(), args[0])
	}
	return nil
}

func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("unknown command %q%s", name, suggestion(tool.Near(name, names), ""))
}

// flagError names the flags that resemble an unknown one.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if kind := kinds[invalid.GetFlag().Value.Type()]; kind != "" {
			return usagef("--%s: %q is no %s", invalid.GetFlag().Name, invalid.GetValue(), kind)
		}
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	name := unknown.GetSpecifiedName()
	if near := suggestion(nearFlags(cmd, name), "--"); near != "" {
		return fmt.Errorf("%w%s", err, near)
	}
	for _, c := range cmd.Commands() {
		if c.Flags().Lookup(name) != nil {
			return fmt.Errorf("%w; it is a flag of '%s'", err, c.CommandPath())
		}
	}
	return err
}

// kinds names what values of flags are.
var kinds = map[string]string{
	"int": "whole number", "int64": "whole number", "float64": "number", "duration": "time such as 90s or 5m",
	"bool": "true or false",
}

func nearFlags(cmd *cobra.Command, name string) []string {
	if len(name) < 2 {
		return nil
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return tool.Near(name, names)
}

// suggestion ends a sentence about an unknown name.
func suggestion(near []string, prefix string) string {
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + prefix + strings.Join(near, " or "+prefix) + "?"
}

// noArguments refuses arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("'%s' takes no argument, not %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// oneOf returns why value is none of these.
func oneOf(flag, value string, values []string) error {
	for _, v := range values {
		if v == value {
			return nil
		}
	}
	return fmt.Errorf("%s %q is not one of %s%s", flag, value, strings.Join(values, ", "), suggestion(tool.Near(value, values), ""))
}
