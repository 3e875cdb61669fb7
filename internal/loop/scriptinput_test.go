package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// input reads an input. The grammar is what the scripts show.
func (p *player) input(pos dsh.Pos, verb, rest string) (Input, error) {
	switch verb {
	case "start":
		return Start{Source: hook.Source(rest)}, nil
	case "followup":
		return Deliver{Message: message(rest), Target: dsh.NextTurn, Wake: true}, nil
	case "steer":
		return Deliver{Message: message(rest), Target: dsh.NextStep, Wake: true}, nil
	case "inject":
		return Deliver{Message: message(rest), Target: dsh.NextStep}, nil
	case "wake":
		return Wake{}, nil
	case "prepend":
		target, rest := word(rest)
		return Deliver{Message: message(rest), Target: dsh.Target(target), Front: true}, nil
	case "replace":
		id, rest := word(rest)
		return Replace{ID: dsh.MessageID(id), Message: message(rest)}, nil
	case "remove":
		return Remove{ID: dsh.MessageID(rest)}, nil
	case "clear":
		return Clear{}, nil
	case "cancel":
		cause, keep := word(rest)
		kind, reason, _ := strings.Cut(cause, ":")
		return Cancel{Cause: dsh.Cause{Kind: dsh.CauseKind(kind), Reason: reason}, KeepInbox: keep == "keep"}, nil
	case "maintain":
		return Maintain{}, nil
	case "continue":
		return Continue{}, nil
	case "append":
		return p.append(rest)
	case "synced":
		return Synced{Pos: pos, Err: failure(rest)}, nil
	case "admitted":
		return p.admitted(pos, rest), nil
	case "refused":
		return Refused{Pos: pos}, nil
	case "hook-failed":
		return HookFailed{Pos: pos, Err: errors.New(rest)}, nil
	case "prepared":
		return p.prepared(pos, rest)
	case "derived":
		in := Derived{Pos: pos, Messages: p.history.Messages(), Err: failure(rest)}
		if p.m.State() == (deriving{}).String() {
			return in, dsh.CheckRequest(in.Messages)
		}
		return in, nil
	case "stream":
		return streamed(pos, rest)
	case "stream-end":
		return StreamEnded{Pos: pos, Err: failure(rest)}, nil
	case "recovered":
		return Recovered{Pos: pos, Retry: rest == "retry"}, nil
	case "settled":
		return Settled{Pos: pos}, nil
	case "children-settled":
		return ChildrenSettled{Pos: pos}, nil
	case "tell":
		return Deliver{Message: message(rest), Target: Nearest, Wake: true}, nil
	case "tools-failed":
		return ToolsFailed{Pos: pos, Err: errors.New(rest)}, nil
	case "maintained":
		return Maintained{Pos: pos}, nil
	}
	return p.callAnswer(pos, verb, rest)
}

// admitted [none | only ID TEXT] [; context NAME=TEXT] [; prompt-error TEXT]
// [; system TEXT].
func (p *player) admitted(pos dsh.Pos, rest string) Input {
	in := Admitted{Pos: pos, Messages: p.admit.Messages}
	for _, part := range strings.Split(rest, ";") {
		option, value := word(strings.TrimSpace(part))
		switch option {
		case "none":
			in.Messages = nil
		case "only":
			in.Messages = []*dsh.Message{message(value)}
		case "context":
			name, text, _ := strings.Cut(value, "=")
			in.Prompt.Context = append(in.Prompt.Context, hook.Section{Name: name, Text: text})
		case "prompt-error":
			in.Prompt.Err = errors.New(value)
		case "system":
			in.Prompt.System = value
		}
	}
	return in
}

// prepared [window=N] and the options of new.
func (p *player) prepared(pos dsh.Pos, rest string) (Input, error) {
	in := Prepared{Pos: pos, Config: &dsh.CallConfig{}}
	if p.prepare.Config != nil {
		*in.Config = *p.prepare.Config
	}
	for _, option := range strings.Fields(rest) {
		key, value, _ := strings.Cut(option, "=")
		if key == "window" {
			fmt.Sscan(value, &in.ContextWindow)
			continue
		}
		if err := configure(in.Config, &in.Defaults, key, value); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// callAnswer reads the answers about one call.
func (p *player) callAnswer(pos dsh.Pos, verb, rest string) (Input, error) {
	id, rest := word(rest)
	i, ok := p.calls[dsh.CallID(id)]
	if !ok {
		return nil, fmt.Errorf("no verb %s, or no call %q", verb, id)
	}
	kind, text := word(rest)
	switch verb {
	case "classified":
		return Classified{Pos: pos, Call: i, Mode: modeNamed(kind)}, nil
	case "judged":
		in := Judged{Pos: pos, Call: i}
		switch kind {
		case "deny":
			in.Verdict = hook.Verdict{Kind: hook.Deny, Reason: text}
		case "ask":
			in.Verdict = hook.Verdict{Kind: hook.Ask, Reason: text}
		case "error":
			in.Err = errors.New(text)
		}
		return in, nil
	case "ran":
		return Ran{Pos: pos, Call: i, Outcome: outcome(hook.Outcome{}, rest)}, nil
	case "reviewed":
		return Reviewed{Pos: pos, Call: i, Outcome: outcome(p.reviews[dsh.CallID(id)], rest)}, nil
	}
	return nil, fmt.Errorf("no verb %s", verb)
}

// outcome changes o by options separated by semicolons: ok TEXT, error TEXT,
// block FEEDBACK, conclude, context ID TEXT.
func outcome(o hook.Outcome, rest string) hook.Outcome {
	for _, part := range strings.Split(rest, ";") {
		option, value := word(strings.TrimSpace(part))
		switch option {
		case "ok":
			o.Content = []dsh.Block{dsh.Text{Text: value}}
		case "error":
			o = Failed(errors.New(value))
		case "block":
			o = Blocked(value)
		case "conclude":
			o.Conclude = true
		case "context":
			m := message(value)
			m.Source = dsh.PluginSource{Plugin: "tool"}
			o.Context = append(o.Context, m)
		}
	}
	return o
}

// append opaque NAME | user ID TEXT | replace START END ID TEXT | result CALL
// SEQ TEXT.
func (p *player) append(rest string) (Input, error) {
	kind, rest := word(rest)
	switch kind {
	case "opaque":
		return Append{Fact: dsh.Opaque{Name: rest, Raw: []byte("{}")}}, nil
	case "user":
		return Append{Fact: dsh.UserMessage{Message: message(rest)}, Surface: dsh.Append}, nil
	case "bare":
		return Append{Fact: dsh.UserMessage{Message: message(rest)}}, nil
	case "replace":
		var start, end dsh.Seq
		first, rest := word(rest)
		last, rest := word(rest)
		fmt.Sscan(first, &start)
		fmt.Sscan(last, &end)
		var cited *dsh.Sources
		for _, seq := range p.history.Surface() {
			if start <= seq && seq <= end {
				cited = cited.With(seq, seq)
			}
		}
		return Append{Fact: dsh.UserMessage{Message: message(rest)}, Surface: dsh.Replace(start, end), Sources: cited}, nil
	}
	return nil, fmt.Errorf("append what: %q", kind)
}

// streamed reads chunks separated by bars: text T, think T, call ID NAME ARGS,
// args ID ARGS, usage IN OUT, finish KIND [CODE MESSAGE].
func streamed(pos dsh.Pos, rest string) (Input, error) {
	in := Streamed{Pos: pos}
	for _, part := range strings.Split(rest, "|") {
		verb, value := word(strings.TrimSpace(part))
		switch verb {
		case "text":
			in.Chunks = append(in.Chunks, dsh.TextDelta{Index: 1, Text: value})
		case "blank":
			in.Chunks = append(in.Chunks, dsh.TextDelta{Index: 1, Text: " \n"})
		case "think":
			in.Chunks = append(in.Chunks, dsh.ReasoningDelta{Index: 0, Text: value})
		case "call":
			id, value := word(value)
			name, args := word(value)
			in.Chunks = append(in.Chunks, dsh.ToolCallDelta{
				Index: callIndex(id), ID: dsh.CallID(id), Name: &name, ArgumentsDelta: args,
			})
		case "usage":
			var u dsh.Usage
			fmt.Sscan(value, &u.InputTokens, &u.OutputTokens)
			in.Chunks = append(in.Chunks, u)
		case "finish":
			kind, value := word(value)
			reason := dsh.FinishReason{Kind: dsh.FinishKind(kind)}
			if value != "" {
				reason.Failure = dsh.AsFailure(failure(value))
			}
			in.Chunks = append(in.Chunks, dsh.Finish{Reason: reason})
		default:
			return nil, fmt.Errorf("no chunk %q", part)
		}
	}
	return in, nil
}

// callIndex gives each call of an answer a block: a is 2, b is 3.
func callIndex(id string) int { return int(id[len(id)-1]) - 'a' + 2 }

// failure reads CODE MESSAGE, plain MESSAGE or canceled; nothing is nil.
func failure(text string) error {
	code, rest := word(text)
	switch {
	case text == "":
		return nil
	case code == "plain":
		return errors.New(rest)
	case code == "canceled":
		return context.Canceled
	}
	return &dsh.Failure{Code: dsh.Code(code), Message: rest}
}

func message(text string) *dsh.Message {
	id, text := word(text)
	m := dsh.UserText(text)
	if id != "?" {
		m.ID = dsh.MessageID(id)
	}
	return m
}

func word(text string) (first, rest string) {
	first, rest, _ = strings.Cut(text, " ")
	return first, strings.TrimSpace(rest)
}
