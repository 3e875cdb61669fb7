package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/cmd/dsh-actor/config"
)

const runLong = `Run one prompt to its end: the model streams its answer to stdout, its tools
work in the current directory, and progress goes to stderr.

The prompt is the argument, a file (-f) or, without either, what is piped in; '-'
reads stdin also from a terminal.

The session is kept in ~/.dsh-actor/sessions, unless --store memory says that it
is not, and can go on: --resume names it, --continue means the last one of the
working directory, --fork begins a copy. It goes on in its own directory, with the
model, the persona, the tools and the sampling of its last request; flags come
before those. Messages that are still pending come first, and need no prompt.

The provider is the first that is named by --provider, DSH_ACTOR_PROVIDER or a
key in the environment. Without any of them a scripted demo answers, which needs
no network and no model.

Defaults come from .dsh-actor/config.yaml of the working directory, before it from
~/.dsh-actor/config.yaml (or DSH_ACTOR_HOME/config.yaml): providers, models, limits,
prices, retries, audits. Flags come before the environment, that before the files. Keys
are never read from a file.

Environment:
  DEEPSEEK_API_KEY    key for --provider deepseek
  OPENAI_API_KEY      key for --provider openai
  DSH_ACTOR_API_KEY   key for either; it comes before the two above
  DSH_ACTOR_PROVIDER  default of --provider
  DSH_ACTOR_MODEL     default of --model
  DSH_ACTOR_BASE_URL  default of --base-url
  DSH_ACTOR_HOME      where config.yaml, agents/ and sessions/ are (~/.dsh-actor)
  DSH_ACTOR_STORE     default of --store
  DSH_ACTOR_SESSIONS_DIR
                      default of --sessions-dir
  DSH_ACTOR_AUDIT     true: --audit
  NO_COLOR            anything: no colours

Exit status:
  0    the turn completed
  1    the turn failed or was blocked, or the output was closed
  2    the command line is wrong
  3    a limit cut the turn: --max-tokens, the model's own, or --timeout
  130  interrupted by Ctrl-C: once ends the turn in order, twice quits at once
  143  ended by SIGTERM (129 by SIGHUP), in order

Output formats of --output, all with "version": 1:
  text         the assistant's text as it comes; stderr says which session it is
  json         one object when all is over, with the session's ID
  stream-json  a line per event of this run between a "start" and a "result"`

const runExample = `  dsh-actor run "List the Go files and summarise go.mod"
  git diff | dsh-actor run --system "You review changes."
  dsh-actor run -f task.md --output json --timeout 10m > result.json
  dsh-actor run --provider openai --base-url http://localhost:8000/v1 --model qwen3 "Hello"
  dsh-actor run "Compare the tests of these packages, with three helpers"
  dsh-actor run --tools read_file,search,list_files "Where is the config read?"
  dsh-actor run --continue "Now fix it"
  dsh-actor run --resume agent-3f2a "Go on"
  dsh-actor run --fork agent-3f2a@120 "Try it another way"`

const (
	outputText       = "text"
	outputJSON       = "json"
	outputStreamJSON = "stream-json"
)

var outputs = []string{outputText, outputJSON, outputStreamJSON}

// runFlags are the flags of run as they were given.
type runFlags struct {
	file         string
	provider     string
	model        string
	baseURL      string
	system       string
	cwd          string
	maxTokens    int
	temperature  float64
	topP         float64
	seed         int64
	maxParallel  int
	tools        []string
	allowOutside bool
	maxDepth     int
	maxChildren  int
	timeout      time.Duration
	audit        bool
	output       string
	verbose      bool
	resume       string
	goOn         bool
	fork         string
	store        string
	sessionsDir  string
}

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:               "run [PROMPT]",
		Short:             "Run a prompt with tools to its end",
		Long:              runLong,
		Example:           runExample,
		Args:              onePrompt,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := a.settings(cmd.Context(), f, cmd.Flags().Changed)
			if err != nil {
				return a.refuse(f.output, err)
			}
			prompt, err := a.prompt(f.file, args, set.past)
			if err != nil || a.code != exitOK {
				return err
			}
			a.code, err = a.drive(cmd.Context(), set, prompt)
			return failed(err)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.file, "file", "f", "", "read the prompt from `FILE`")
	flags.StringVar(&f.resume, "resume", "", "go on with the session `ID`, or the one whose ID begins so")
	flags.BoolVarP(&f.goOn, "continue", "c", false, "go on with the session of the working directory that was written last")
	flags.StringVar(&f.fork, "fork", "", "go on in a copy of session `ID[@SEQ]`: of its first SEQ events, or of all ('sessions show' writes the SEQ of each turn)")
	flags.StringVar(&f.store, "store", config.Stores[0], "what keeps the session, a `NAME`: "+strings.Join(config.Stores, ", ")+" ("+config.StoreMemory+" keeps nothing)")
	flags.StringVar(&f.sessionsDir, flagSessionsDir, "", usageSessions)
	flags.StringVar(&f.provider, "provider", "", "who answers, a `NAME`: "+strings.Join(providerNames, ", ")+" or one of the configuration")
	flags.StringVar(&f.model, "model", "", "the provider's `NAME` of the model (deepseek: "+config.DeepSeekModel+")")
	flags.StringVar(&f.baseURL, "base-url", "", "`URL` of an OpenAI-compatible endpoint, before /chat/completions")
	flags.StringVar(&f.system, "system", "", "system prompt `TEXT` instead of the default one; {{cwd}}, {{model}} and {{provider}} are filled in")
	flags.StringVar(&f.cwd, "cwd", "", "working `DIR` of the tools (default: the current one, or that of the session that goes on)")
	flags.IntVar(&f.maxTokens, "max-tokens", 0, "most `N` tokens of one answer (default: the provider's)")
	flags.Float64Var(&f.temperature, "temperature", 0, "sampling temperature `T` (default: the provider's)")
	flags.Float64Var(&f.topP, "top-p", 0, "nucleus sampling `P` (default: the provider's)")
	flags.Int64Var(&f.seed, "seed", 0, "sampling seed `N` (default: none)")
	flags.IntVar(&f.maxParallel, "max-parallel-tools", 0, "most `N` tool calls of one answer at the same time (default: 10)")
	flags.StringSliceVar(&f.tools, "tools", nil, "the tools that the agent has: `NAMES` with commas, or "+noTools+" (default: all, or those of the session that goes on; see 'dsh-actor tools')")
	flags.BoolVar(&f.allowOutside, "allow-outside", false, "let the file tools leave the working directory")
	flags.IntVar(&f.maxDepth, "max-depth", defaultMaxDepth, "how deep sub-agents may have sub-agents, `N` levels; 0 forbids them")
	flags.IntVar(&f.maxChildren, "max-children", defaultMaxChildren, "most `N` sub-agents of one agent at the same time")
	flags.DurationVar(&f.timeout, "timeout", 0, "end the turn after this `TIME`, such as 90s or 10m (default: never)")
	flags.BoolVar(&f.audit, "audit", false, "log a digest of each request as it is sent, which 'sessions replay' compares with what the log yields")
	flags.StringVarP(&f.output, "output", "o", outputText, "`FORMAT` of stdout: "+strings.Join(outputs, ", "))
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "tell more on stderr")
	a.complete(cmd, f)
	return cmd
}

// refuse tells programs, too, that a run which was asked for rightly cannot
// begin.
func (a *app) refuse(output string, err error) error {
	var f *failure
	if errors.As(err, &f) {
		d := &drive{view: newView(output, a.stdout), begun: time.Now()}
		_ = d.give(result{}, f.err) // which is told below
	}
	return err
}

// onePrompt refuses more than one argument, most likely a prompt without
// quotes.
func onePrompt(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("run takes one prompt, not %d arguments; put it in quotes", len(args))
	}
	return nil
}

// complete completes values of flags.
func (a *app) complete(cmd *cobra.Command, f *runFlags) {
	must := func(err error) {
		if err != nil {
			panic(err) // the flag was just defined.
		}
	}
	must(cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(providerNames, cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("tools", completeTools))
	must(cmd.RegisterFlagCompletionFunc("store", cobra.FixedCompletions(config.Stores, cobra.ShellCompDirectiveNoFileComp)))
	sessions := a.completeSession(&f.sessionsDir, 1)
	for _, name := range []string{"resume", "fork"} {
		must(cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, given string) ([]string, cobra.ShellCompDirective) {
			return sessions(cmd, nil, given)
		}))
	}
	must(cmd.MarkFlagDirname("cwd"))
	must(cmd.MarkFlagDirname("sessions-dir"))
	for _, name := range []string{
		"model", "base-url", "system", "max-tokens", "temperature", "top-p", "seed", "max-parallel-tools", "max-depth", "max-children", "timeout",
	} {
		must(cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions))
	}
}

// completeTools completes the last name of a list.
func completeTools(_ *cobra.Command, _ []string, given string) ([]string, cobra.ShellCompDirective) {
	before, last := "", given
	if i := strings.LastIndexByte(given, ','); i >= 0 {
		before, last = given[:i+1], given[i+1:]
	}
	var out []string
	for _, name := range append([]string{noTools}, toolNames...) {
		if strings.HasPrefix(name, last) && !strings.Contains(","+before, ","+name+",") && (name != noTools || before == "") {
			out = append(out, before+name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
