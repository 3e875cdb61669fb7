package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dsh-actor/dsh-actor/delegation"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// plugin is every extension point of a world: it records the call and lets the
// scenario's hooks act.
type plugin struct{ w *world }

var _ delegation.Observer = (*plugin)(nil)

var (
	_ hook.Prompt       = (*plugin)(nil)
	_ hook.PreStep      = (*plugin)(nil)
	_ hook.Request      = (*plugin)(nil)
	_ hook.RequestError = (*plugin)(nil)
	_ hook.TurnStopping = (*plugin)(nil)
	_ hook.PreTool      = (*plugin)(nil)
	_ hook.PostTool     = (*plugin)(nil)
	_ hook.ToolResult   = (*plugin)(nil)
)

// begin finds the agent of a call, which is no longer heard of if its life is
// frozen.
func (p *plugin) begin(a hook.Agent) *subject {
	s := p.w.subject(a.ID())
	s.hold()
	return s
}

// run lets the scenario's hooks of a point act, one after the other, and hands
// each to decide, which may end the round.
func (s *subject) run(ctx context.Context, point string, m moment, decide func(*trigger) (done bool)) error {
	d := s.world.d
	for _, t := range d.moments(point, m) {
		err := t.act(ctx, d.gates, func(actions []Action) {
			s.hold()
			d.actions(s, actions)
		})
		s.hold()
		if err != nil {
			return err
		}
		if decide(t) {
			return nil
		}
	}
	return nil
}

func nothing(*trigger) bool { return false }

// Prompt tells the runtime context.
func (p *plugin) Prompt(ctx context.Context, a hook.Assembly, next hook.PromptFunc) (hook.Assembly, error) {
	p.begin(a.Agent)
	p.w.mu.Lock()
	for _, c := range p.w.contexts {
		a.Context = append(a.Context, hook.Section{Name: c.Name, Text: c.Text, Order: c.Order})
	}
	p.w.mu.Unlock()
	return next(ctx, a)
}

// PreStep is agent/pre-step.
func (p *plugin) PreStep(ctx context.Context, st hook.Step, next hook.PreStepFunc) (hook.Decision, error) {
	s := p.begin(st.Agent)
	s.record.Called("agent/pre-step", preStepFields(st))
	p.w.children.admit(s, st.Messages)
	reject := false
	err := s.run(ctx, "pre-step", s.placed(st.Pos), func(t *trigger) bool {
		if t.Empty {
			st.Messages = nil
		}
		if t.Replace != nil {
			st.Messages = texts(dsh.UserSource{}, t.Replace)
		}
		st.Messages = append(slices.Clip(st.Messages), texts(byOracle, t.Append)...)
		reject = t.Reject
		return reject
	})
	if err != nil || reject {
		return hook.Decision{Reject: reject}, err
	}
	return next(ctx, st)
}

// Request is agent/request.
func (p *plugin) Request(ctx context.Context, r hook.Proposal, next hook.RequestFunc) (dsh.CallConfig, error) {
	s := p.begin(r.Agent)
	s.record.Called("agent/request", requestFields(r))
	var bad error
	err := s.run(ctx, "request", s.placed(r.Pos), func(t *trigger) bool {
		bad = set(&r.Config, t.Set)
		return bad != nil
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return dsh.CallConfig{}, err
	}
	return next(ctx, r)
}

// RequestError is agent/request-error.
func (p *plugin) RequestError(ctx context.Context, f hook.FailedRequest, next hook.RequestErrorFunc) (bool, error) {
	s := p.begin(f.Agent)
	s.record.Called("agent/request-error", requestErrorFields(f))
	retry := false
	err := s.run(ctx, "request-error", s.placed(f.Pos), func(t *trigger) bool {
		retry = t.Retry
		return retry
	})
	if err != nil || retry {
		return retry, err
	}
	return next(ctx, f)
}

// TurnStopping is agent/turn-stopping.
func (p *plugin) TurnStopping(ctx context.Context, t hook.EndingTurn) error {
	s := p.begin(t.Agent)
	s.record.Called("agent/turn-stopping", stoppingFields(t))
	return s.run(ctx, "turn-stopping", s.placed(t.Pos), nothing)
}

// PreTool is tools/pre-execute.
func (p *plugin) PreTool(ctx context.Context, c hook.Call, next hook.PreToolFunc) (hook.Verdict, error) {
	s := p.begin(c.Agent)
	s.record.Called("tools/pre-execute", preToolFields(c))
	p.w.children.inTurn(s, c)
	var verdict hook.Verdict
	err := s.run(ctx, "pre-execute", s.calling(c), func(t *trigger) bool {
		switch {
		case t.Deny != nil:
			verdict = hook.Verdict{Kind: hook.Deny, Reason: *t.Deny}
		case t.Ask != nil:
			verdict = hook.Verdict{Kind: hook.Ask, Reason: t.Ask.Reason}
		}
		return verdict.Kind != hook.Allow
	})
	if err != nil || verdict.Kind != hook.Allow {
		return verdict, err
	}
	return next(ctx, c)
}

// PostTool is tools/post-execute.
func (p *plugin) PostTool(
	ctx context.Context, c hook.Call, o hook.Outcome, next hook.PostToolFunc,
) (hook.Review, error) {
	s := p.begin(c.Agent)
	s.record.Called("tools/post-execute", postToolFields(c, o))
	var review hook.Review
	err := s.run(ctx, "post-execute", s.calling(c), func(t *trigger) bool {
		if t.Block != nil {
			review.Block, review.Feedback = true, *t.Block
		}
		if t.Content != nil {
			review.Content = []dsh.Block{dsh.Text{Text: *t.Content}}
		}
		review.Context = append(review.Context, texts(byReview, t.Contexts)...)
		return review.Block
	})
	if err != nil {
		return hook.Review{}, err
	}
	if review.Block || review.Content != nil || review.Context != nil {
		return review, nil
	}
	return next(ctx, c, o)
}

// ToolResult is tools/result.
func (p *plugin) ToolResult(ctx context.Context, c hook.Call, o hook.Outcome) {
	s := p.begin(c.Agent)
	s.record.Called("tools/result", resultFields(c, o))
	_ = s.run(ctx, "tool-result", s.calling(c), func(t *trigger) bool { // an observer's error changes nothing
		if t.SetMode != nil {
			p.w.setMode(*t.SetMode)
		}
		return false
	})
}

// texts returns messages without identifiers.
func texts(source dsh.Source, list []string) []*dsh.Message {
	var out []*dsh.Message
	for _, text := range list {
		out = append(out, &dsh.Message{
			Role: dsh.RoleUser, Source: source, Content: []dsh.Block{dsh.Text{Text: text}},
		})
	}
	return out
}

// set changes the fields of a configuration; null takes one away.
func set(c *dsh.CallConfig, fields map[string]json.RawMessage) error {
	for name, value := range fields {
		into := map[string]any{
			"provider": &c.Provider, "model": &c.Model, "maxTokens": &c.MaxTokens,
			"reasoningEffort": &c.ReasoningEffort, "temperature": &c.Temperature, "stop": &c.Stop,
		}[name]
		switch {
		case into == nil:
			return fmt.Errorf("a call has no %s", name)
		case string(value) == "null":
			clearField(into)
		default:
			if into, ok := into.(**float64); ok {
				*into = new(float64) // what is there is shared
			}
			if into, ok := into.(*[]string); ok {
				*into = nil
			}
			if err := json.Unmarshal(value, into); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func clearField(field any) {
	switch field := field.(type) {
	case *string:
		*field = ""
	case *int:
		*field = 0
	case **float64:
		*field = nil
	case *[]string:
		*field = nil
	}
}
