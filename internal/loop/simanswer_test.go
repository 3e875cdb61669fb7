package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/tool"
)

// answer answers an open question, or gives a part of a stream's answer.
func (s *sim) answer(i int) {
	q := s.open[i]
	if e, ok := q.effect.(OpenStream); ok && len(q.chunks) > 0 && !s.chance(12) {
		n := 1 + s.rng.IntN(len(q.chunks))
		s.open[i].chunks = q.chunks[n:]
		in := Streamed{Pos: e.Pos, Chunks: q.chunks[:n:n]}
		s.answered = append(s.answered, in)
		s.feed(in)
		return
	}
	s.open = slices.Delete(s.open, i, i+1)
	in := s.answerTo(q)
	s.answered = append(s.answered, in)
	if err := s.feed(in); err != nil {
		fail("the answer %T is refused: %w", in, err)
	}
}

var errBroke = errors.New("it broke")

func (s *sim) broke() bool { return !s.calm && s.chance(12) }

func (s *sim) answerTo(q question) Input {
	switch e := q.effect.(type) {
	case Sync:
		if s.broke() {
			return Synced{Pos: e.Pos, Err: errBroke}
		}
		s.watch.durable = max(s.watch.durable, q.through)
		return Synced{Pos: e.Pos}
	case Admit:
		return s.admission(e)
	case Prepare:
		return s.preparation(e)
	case Derive:
		if s.broke() {
			return Derived{Pos: e.Pos, Err: errBroke}
		}
		return Derived{Pos: e.Pos, Messages: q.messages}
	case OpenStream:
		if s.broke() {
			return StreamEnded{Pos: e.Pos, Err: pickOne[error](s, errBroke, context.Canceled, &dsh.Failure{Code: dsh.CodeServer})}
		}
		return StreamEnded{Pos: e.Pos}
	case Recover:
		if s.broke() {
			return HookFailed{Pos: e.Pos, Err: errBroke}
		}
		return Recovered{Pos: e.Pos, Retry: !s.calm && !s.chance(3)}
	case AskStopping:
		if s.broke() {
			return HookFailed{Pos: e.Pos, Err: errBroke}
		}
		return Settled(e)
	case AwaitChildren:
		return ChildrenSettled(e)
	case RunMaintenance:
		return Maintained(e)
	default:
		return s.callAnswer(e)
	}
}

func (s *sim) admission(e Admit) Input {
	in := Admitted{Pos: e.Pos, Messages: e.Messages}
	if s.calm {
		return in
	}
	switch s.rng.IntN(16) {
	case 0:
		return Refused{Pos: e.Pos}
	case 1:
		return HookFailed{Pos: e.Pos, Err: errBroke}
	case 2:
		in.Messages = nil
	case 3:
		in.Messages = append(slices.Clone(e.Messages), dsh.PluginText("hook", "added"))
	case 4:
		in.Messages = []*dsh.Message{s.message()}
	case 5:
		in.Prompt.Err = errBroke
	}
	in.Prompt.System = pickOne(s, "", "", "be brief")
	for range s.rng.IntN(2) {
		in.Prompt.Context = append(in.Prompt.Context, hook.Section{Name: "cwd", Text: pickOne(s, "/a", "/b")})
	}
	return in
}

func (s *sim) preparation(e Prepare) Input {
	config := *e.Config
	in := Prepared{Pos: e.Pos, Config: &config}
	if s.calm {
		in.Config.Provider, in.Config.Model = "p", "m"
		return in
	}
	switch s.rng.IntN(12) {
	case 0:
		return HookFailed{Pos: e.Pos, Err: errBroke}
	case 1:
		in.Config.Provider = ""
	case 2, 3:
		in.Config.Provider, in.Config.Model = "p", pickOne(s, "m", "n")
	case 4:
		in.Config.ReasoningEffort = pickOne(s, "low", "high")
	case 5:
		in.ContextWindow = 1000
	}
	if in.Config.MaxTokens == 0 && s.chance(2) {
		in.Config.MaxTokens, in.Defaults.MaxTokens = 100, true
	}
	return in
}

func (s *sim) callAnswer(e Effect) Input {
	switch e := e.(type) {
	case Classify:
		mode := pickOne(s, tool.Parallel, tool.Parallel, tool.Exclusive)
		s.watch.modes[e.Index] = mode
		return Classified{Pos: e.Pos, Call: e.Index, Mode: mode}
	case Judge:
		in := Judged{Pos: e.Pos, Call: e.Index}
		switch s.rng.IntN(10) {
		case 0:
			in.Verdict.Kind = hook.Deny
		case 1:
			in.Verdict = hook.Verdict{Kind: hook.Ask, Reason: "why not"}
		case 2:
			in.Err = errBroke
		}
		return in
	case Run:
		return Ran{Pos: e.Pos, Call: e.Index, Outcome: s.outcome()}
	case Review:
		in := Reviewed{Pos: e.Pos, Call: e.Index, Outcome: e.Outcome}
		if e.Skip {
			return in
		}
		switch s.rng.IntN(8) {
		case 0:
			in.Outcome = Blocked("no")
		case 1:
			in.Outcome = Failed(errBroke)
		case 2:
			in.Outcome.Content = []dsh.Block{dsh.Text{Text: "shorter"}}
		case 3:
			in.Outcome.Context = append(slices.Clip(in.Outcome.Context), s.message())
		}
		return in
	}
	panic(fmt.Sprintf("no answer to %T", e))
}

func (s *sim) outcome() hook.Outcome {
	o := hook.Outcome{Content: []dsh.Block{dsh.Text{Text: "fine"}}}
	switch s.rng.IntN(8) {
	case 0:
		o = Failed(errBroke)
	case 1:
		o = Failed(tool.Errorf("SOME", "coded"))
	case 2:
		o.Conclude = true
	case 3:
		o.Context = []*dsh.Message{dsh.PluginText("tool", "note")}
	case 4:
		o.Context = []*dsh.Message{s.message(), s.known()} // perhaps pending already
	case 5:
		o.Content = nil
	}
	return o
}

// chunks returns what a model says, well formed or not.
func (s *sim) chunks() []dsh.Chunk {
	if s.calm {
		return []dsh.Chunk{dsh.TextDelta{Text: "done"}, dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}}}
	}
	var out []dsh.Chunk
	for range s.rng.IntN(3) {
		out = append(out, dsh.ReasoningDelta{Index: 0, Text: "hm"})
	}
	for range s.rng.IntN(4) {
		out = append(out, dsh.TextDelta{Index: 1, Text: pickOne(s, "some ", "words ", " ", "")})
	}
	for i := range s.rng.IntN(6) - 1 {
		out = append(out, s.call(i+2)...)
	}
	if s.chance(3) {
		out = append(out, dsh.Usage{InputTokens: 3, OutputTokens: 2})
	}
	if s.chance(8) {
		s.rng.Shuffle(len(out), func(i, k int) { out[i], out[k] = out[k], out[i] })
	}
	if s.chance(12) {
		return out // no finish at all
	}
	reason := dsh.FinishReason{Kind: pickOne(s,
		dsh.FinishStop, dsh.FinishStop, dsh.FinishToolCalls, dsh.FinishToolCalls, dsh.FinishMaxTokens, dsh.FinishError, dsh.FinishAborted,
	)}
	if (reason.Kind == dsh.FinishError || reason.Kind == dsh.FinishAborted) && !s.chance(4) {
		reason.Failure = &dsh.Failure{Code: dsh.CodeRateLimit, Message: "slow down"}
	}
	out = append(out, dsh.Finish{Reason: reason})
	if s.chance(12) {
		out = append(out, dsh.TextDelta{Index: 1, Text: "behind the finish"})
	}
	return out
}

// call returns the chunks of one call; IDs may be missing or given twice.
func (s *sim) call(index int) []dsh.Chunk {
	id := dsh.CallID(pickOne(s, "c1", "c2", "c3", "", fmt.Sprintf("call-%d", index+1)))
	name := "t"
	out := []dsh.Chunk{dsh.ToolCallDelta{Index: index, ID: id, Name: &name, ArgumentsDelta: "{"}}
	if s.chance(2) {
		return append(out, dsh.BlockEnd{Index: index, Block: dsh.ToolCall{ID: id, Name: name, Arguments: "{}"}})
	}
	return append(out, dsh.ToolCallDelta{Index: index, ArgumentsDelta: "}"})
}
