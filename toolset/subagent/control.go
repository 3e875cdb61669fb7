package subagent

import (
	"context"
	"fmt"
	"strings"

	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/tool"
)

// Names of the tools beside the delegation tools.
const (
	SendMessage    = "send_message"
	InterruptAgent = "interrupt_agent"
	ListAgents     = "list_agents"
	ReportTool     = "report"
)

// parentOf returns the agent that a call runs for.
func parentOf(ctx context.Context) (delegation.Parent, error) {
	if p, ok := delegation.From(ctx); ok {
		return p, nil
	}
	return nil, coded(delegation.Errorf(delegation.CodeNoAgent, "there is no agent to delegate for"))
}

type messageArgs struct {
	ID      dsh.SessionID `json:"subagent_id"`
	Message string        `json:"message"`
}

// sendMessage gives a background child another turn.
func (s *Set) sendMessage() tool.Tool {
	return tool.Func(SendMessage,
		"Sends a message to one of your background sub-agents. It is a turn of its own behind whatever the sub-agent does; one that has settled works again.",
		func(ctx context.Context, in messageArgs) (string, error) {
			parent, err := parentOf(ctx)
			if err != nil {
				return "", err
			}
			a, _ := hook.AgentFrom(ctx)
			m := delegation.Relay(delegation.CoordinatorSource, a.Session(), dsh.Text{Text: in.Message})
			if err := parent.Message(ctx, in.ID, m, s.gear()); err != nil {
				return "", coded(err)
			}
			return fmt.Sprintf("The message is queued for sub-agent %s.", in.ID), nil
		}, tool.WithParameters(object(map[string]any{
			"subagent_id": text("The sub-agent's ID."), "message": text("What to tell it."),
		}, "subagent_id", "message")))
}

type interruptArgs struct {
	ID dsh.SessionID `json:"agent_id"`
}

// interrupt cancels the turn of a descendant.
func (s *Set) interrupt() tool.Tool {
	return tool.Func(InterruptAgent,
		"Stops what a sub-agent does at the moment. Messages that it has not read yet stay queued and wait for the next one.",
		func(ctx context.Context, in interruptArgs) (string, error) {
			parent, err := parentOf(ctx)
			if err != nil {
				return "", err
			}
			if err := parent.Interrupt(ctx, in.ID); err != nil {
				return "", coded(err)
			}
			return fmt.Sprintf("Sub-agent %s was asked to stop what it does.", in.ID), nil
		}, tool.WithParameters(object(map[string]any{"agent_id": text("The sub-agent's ID.")}, "agent_id")))
}

type listArgs struct {
	Scope string `json:"scope,omitempty"`
}

// list lists background children.
func list() tool.Tool {
	return tool.Func(ListAgents, "Lists your background sub-agents with what they do.",
		func(ctx context.Context, in listArgs) (string, error) {
			parent, err := parentOf(ctx)
			if err != nil {
				return "", err
			}
			deep := in.Scope == "descendants"
			entries, err := parent.Children(ctx, deep)
			if err != nil {
				return "", coded(err)
			}
			var lines []string
			for _, e := range entries {
				if e.Mode != delegation.Continuable {
					continue
				}
				where := ""
				if deep {
					where = fmt.Sprintf(" parent=%s depth=%d", e.Parent, e.Depth)
				}
				lines = append(lines, fmt.Sprintf("%s [%s]%s — %s", e.ID, e.Status, where, e.Label))
			}
			if len(lines) == 0 {
				return "There are no background sub-agents.", nil
			}
			return strings.Join(lines, "\n"), nil
		}, tool.WithParameters(object(map[string]any{"scope": map[string]any{
			"type": "string", "enum": []string{"children", "descendants"},
			"description": "children (the default), or descendants for theirs too.",
		}})))
}

type reportArgs struct {
	Output string `json:"output"`
}

// report lets a background child tell its parent something.
func (s *Set) report() tool.Tool {
	return tool.Func(ReportTool, "Tells the agent that asked for this work something before the work is done. It does not end your turn.",
		func(ctx context.Context, in reportArgs) (string, error) {
			parent, err := parentOf(ctx)
			if err != nil {
				return "", err
			}
			a, _ := hook.AgentFrom(ctx)
			id, err := parent.Report(ctx, delegation.Report(a.Session(), in.Output), s.opts.QuietReports)
			if err != nil {
				return "", coded(err)
			}
			return fmt.Sprintf("The report was handed on as message %s.", id), nil
		}, tool.WithParameters(object(map[string]any{"output": text("What to tell.")}, "output")))
}

// Orders of the prompt's sections.
const (
	guidanceOrder   = 116.5
	reportOrder     = 117
	structuredOrder = 190
)

var reportSection = []hook.Section{{
	Name: "subagent:report", Order: reportOrder,
	Text: "You work in the background for another agent. Use the tool report for what it should know before you are done; your last message reaches it anyway.",
}}

// guidance tells agents that have a tool for background children how to use it.
type guidance struct{ set *Set }

// Prompt adds the section where the step has such a tool.
func (g *guidance) Prompt(ctx context.Context, a hook.Assembly, next hook.PromptFunc) (hook.Assembly, error) {
	for _, t := range g.set.opts.Tools {
		if t.Background == ByDefault && has(a.Tools, t.Name) {
			a.Sections = append(a.Sections, hook.Section{
				Name: "subagent:continuable", Order: guidanceOrder,
				Text: "Sub-agents work in the background unless you ask to wait. Go on with something else or end your turn: a message tells you when one has settled.",
			})
			break
		}
	}
	return next(ctx, a)
}

func has(tools []dsh.ToolSchema, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}
