package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/cmd/dsh-actor/config"
	"github.com/dsh-actor/dsh-actor/dsh"
)

const providersTestLong = `Send one real request to a provider and tell what works: text, tools, usage and
reasoning, and how long it took to the first word and to the end.

The request asks for a word and for a call of a harmless tool. A model that
answers without a call, or without text, is not broken: the table says what was
seen. Nothing is tried again. The request costs a few tokens.

Exit status: 0 if the provider answered, 1 if it did not, 2 for the command line.`

func (a *app) providersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "providers",
		Short: "List the providers or try one",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.providersListCommand(), a.providersTestCommand())
	return cmd
}

// A listedProvider is one provider as providers list --json shows it.
type listedProvider struct {
	Name         string   `json:"name"`
	BaseURL      string   `json:"base_url,omitempty"`
	KeyVariables []string `json:"key_variables,omitempty"` // that may hold a key
	Keys         int      `json:"keys"`                    // that are set
	DefaultModel string   `json:"default_model,omitempty"`
	Models       []string `json:"models,omitempty"`
}

func (a *app) load() (*config.Loaded, error) {
	cwd, err := workingDirectory("")
	if err != nil {
		return nil, err
	}
	return config.Load(config.Sources{CWD: cwd, Env: a.env})
}

func (a *app) providersListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "list",
		Short:             "List the providers, with their addresses, models and whether there is a key",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.load()
			if err != nil {
				return err
			}
			return failed(a.listProviders(cfg, asJSON))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

func (a *app) listProviders(cfg *config.Loaded, asJSON bool) error {
	list := struct {
		Version   int              `json:"version"`
		Files     []string         `json:"files"`
		Providers []listedProvider `json:"providers"`
	}{Version: outputVersion, Files: append([]string{}, cfg.Files...)}
	for _, name := range namesOf(cfg) {
		p := cfg.Providers[name]
		l := listedProvider{Name: name, BaseURL: p.BaseURL, DefaultModel: p.DefaultModel, KeyVariables: p.APIKeyEnv, Models: sortedKeys(p.Models)}
		if name != providerDemo {
			l.Keys = len(cfg.Keys(name))
		}
		list.Providers = append(list.Providers, l)
	}
	if asJSON {
		return writeJSON(a.stdout, list)
	}
	var out strings.Builder
	for _, l := range list.Providers {
		key := ""
		switch {
		case l.Name == providerDemo:
			key = "scripted, needs no key"
		case l.Keys > 0:
			key = plural(l.Keys, "key")
		case len(l.KeyVariables) > 0:
			key = "no key: set " + strings.Join(l.KeyVariables, " or ")
		default:
			key = "no key"
		}
		fmt.Fprintf(&out, "%s  %s\n", strings.TrimRight(l.Name+"  "+l.BaseURL, " "), key)
		for _, m := range l.Models {
			mark := ""
			if m == l.DefaultModel {
				mark = " (default)"
			}
			fmt.Fprintf(&out, "    %s%s\n", m, mark)
		}
	}
	_, err := a.stdout.WriteString(out.String())
	return err
}

func (a *app) providersTestCommand() *cobra.Command {
	f := &runFlags{}
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "test [NAME]",
		Short:   "Send one request to a provider and tell what works",
		Long:    providersTestLong,
		Example: "  dsh-actor providers test deepseek\n  dsh-actor providers test openai --base-url http://localhost:8000/v1 --model qwen3 --json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("providers test takes one provider, not %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions(providerNames, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.provider = args[0]
			}
			if f.timeout <= 0 {
				return usagef("--timeout is %v; it must be more than 0", f.timeout)
			}
			set, err := a.tested(f, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			defer set.release()
			ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
			defer cancel()
			go func() {
				select {
				case <-a.stop.soft:
					cancel()
				case <-ctx.Done():
				}
			}()
			r := probe(ctx, set.route)
			if !r.OK {
				a.code = exitFailed
			}
			return failed(a.report(r, asJSON))
		},
	}
	cmd.Flags().StringVar(&f.model, "model", "", "the provider's `NAME` of the model")
	cmd.Flags().StringVar(&f.baseURL, "base-url", "", "`URL` of an OpenAI-compatible endpoint, before /chat/completions")
	cmd.Flags().DurationVar(&f.timeout, "timeout", time.Minute, "give up after this `TIME`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// tested returns the route that a test takes.
func (a *app) tested(f *runFlags, changed func(string) bool) (settings, error) {
	cwd, err := workingDirectory("")
	if err != nil {
		return settings{}, err
	}
	given := f.given(changed)
	if f.provider != "" {
		given["provider"] = f.provider
	}
	set := settings{}
	if set.config, err = config.Load(config.Sources{CWD: cwd, Env: a.env, Flags: given}); err != nil {
		return set, err
	}
	set.route, err = a.route(f, set.config, nil)
	return set, err
}

// A probed is what a test found out.
type probed struct {
	Version     int      `json:"version"`
	Provider    string   `json:"provider"`
	Model       string   `json:"model"`
	BaseURL     string   `json:"base_url,omitempty"`
	OK          bool     `json:"ok"`
	Text        bool     `json:"text"`
	Tools       bool     `json:"tools"`
	Usage       bool     `json:"usage"`
	Reasoning   bool     `json:"reasoning"`
	FirstWordMs *int64   `json:"first_word_ms,omitempty"`
	TotalMs     int64    `json:"total_ms"`
	Tokens      *tokens  `json:"tokens,omitempty"`
	Error       *problem `json:"error,omitempty"`
	RequestID   string   `json:"request_id,omitempty"`
	Status      int      `json:"status,omitempty"`
	RetryAfter  *int64   `json:"retry_after_ms,omitempty"`
}

// probe sends the one request.
func probe(ctx context.Context, r route) probed {
	out := probed{Version: outputVersion, Provider: r.provider, Model: r.model, BaseURL: r.baseURL}
	resolved, filled := r.served.Model(r.model).Resolve(dsh.CallConfig{Provider: r.provider, Model: r.model})
	req := &dsh.Request{
		Header: &dsh.Header{
			Config: resolved, AdapterDefaults: filled, System: "You check a connection.",
			Tools: []dsh.ToolSchema{{
				Name: "ping", Description: "Answers with the word.",
				Parameters: json.RawMessage(`{"type":"object","properties":{"word":{"type":"string"}},"required":["word"]}`),
			}},
		},
		Messages: []*dsh.Message{dsh.UserText("Write the word ready. Then call the tool ping with the word ready.")},
	}
	begun := time.Now()
	out.take(ctx, r.served, req, begun)
	out.TotalMs = time.Since(begun).Milliseconds()
	return out
}

func (p *probed) take(ctx context.Context, served llm.Provider, req *dsh.Request, begun time.Time) {
	var asm dsh.Assembler
	for c, err := range served.Stream(ctx, req) {
		if err != nil {
			p.fail(dsh.AsFailure(err), errors.Is(ctx.Err(), context.Canceled))
			break
		}
		if p.FirstWordMs == nil {
			ms := time.Since(begun).Milliseconds()
			p.FirstWordMs = &ms
		}
		asm.Add(c)
	}
	for _, b := range asm.Blocks() {
		switch b := b.(type) {
		case dsh.Text:
			p.Text = p.Text || strings.TrimSpace(b.Text) != ""
		case dsh.Reasoning:
			p.Reasoning = p.Reasoning || strings.TrimSpace(b.Text) != ""
		case dsh.ToolCall:
			p.Tools = p.Tools || b.Name == "ping" && json.Valid([]byte(b.Arguments))
		default:
		}
	}
	if u := asm.Usage(); u != nil {
		t := tokensOf(*u)
		p.Usage, p.Tokens = true, &t
	}
	finish := asm.Finish()
	if finish != nil && finish.Reason.Failure != nil {
		p.fail(finish.Reason.Failure, false)
	}
	p.OK = finish != nil && p.Error == nil
}

func (p *probed) fail(f *dsh.Failure, interrupted bool) {
	p.Error = &problem{string(f.Code), f.Error()}
	if interrupted {
		p.Error = &problem{"INTERRUPTED", "the test was interrupted"}
	}
	p.RequestID, p.Status, p.RetryAfter = f.RequestID, f.Status, f.ProviderRetryAfterMs
}

func (a *app) report(p probed, asJSON bool) error {
	if asJSON {
		return writeJSON(a.stdout, p)
	}
	var out strings.Builder
	at := ""
	if p.BaseURL != "" {
		at = " at " + p.BaseURL
	}
	fmt.Fprintf(&out, "%s, model %s%s\n", p.Provider, p.Model, at)
	for _, row := range []struct {
		name string
		seen bool
	}{{"text", p.Text}, {"tools", p.Tools}, {"usage", p.Usage}, {"reasoning", p.Reasoning}} {
		seen := "not seen"
		if row.seen {
			seen = "works"
		}
		fmt.Fprintf(&out, "  %-10s %s\n", row.name, seen)
	}
	if p.FirstWordMs != nil {
		fmt.Fprintf(&out, "  first word %s\n", short(time.Duration(*p.FirstWordMs)*time.Millisecond))
	}
	fmt.Fprintf(&out, "  in all     %s\n", short(time.Duration(p.TotalMs)*time.Millisecond))
	if p.Error != nil {
		fmt.Fprintf(&out, "failed: %s: %s\n", p.Error.Code, oneLine(p.Error.Message, 500))
	} else {
		out.WriteString("ok\n")
	}
	_, err := a.stdout.WriteString(printable(out.String()))
	return err
}
