package loop

import (
	"github.com/dsh-actor/dsh-actor/dsh"
)

// streaming: the model is answering.
type streaming struct {
	header *dsh.Header
	asm    dsh.Assembler
	cited  *dsh.Sources // the chunks logged so far
}

func (*streaming) String() string { return "streaming" }

func (s *streaming) step(m *Machine, in Input) state {
	switch in := in.(type) {
	case Cancel:
		return s // the stream was told; it ends with an answer
	case Streamed:
		s.chunks(m, in.Chunks)
		return s
	case StreamEnded:
		if usage := s.asm.Usage(); usage != nil {
			m.turn.usage = m.turn.usage.Add(*usage) // a failed attempt costs too
		}
		if m.isAborted() {
			return s.interrupt(m)
		}
		return s.end(m, in.Err)
	default:
		return m.unexpected(s, in)
	}
}

// chunks logs and folds what came, up to a finish. After an abort nothing more
// is logged.
func (s *streaming) chunks(m *Machine, chunks []dsh.Chunk) {
	if m.isAborted() || s.asm.Finish() != nil {
		return
	}
	for i, c := range chunks {
		s.asm.Add(c)
		if s.asm.Finish() != nil {
			chunks = chunks[: i+1 : i+1]
			break
		}
	}
	if len(chunks) == 0 {
		return
	}
	first := m.log(dsh.ChunkRun{Turn: m.lastTurn, Step: m.turn.step, Chunks: chunks})
	s.cited = s.cited.With(first, m.next-1)
}

// interrupt keeps the prefix of a cancelled answer, if it says anything.
func (s *streaming) interrupt(m *Machine) state {
	if content, keep := s.asm.Prefix(); keep {
		s.answer(m, content, true)
	}
	return m.endStep()
}

// end goes on behind a stream that ended by itself.
func (s *streaming) end(m *Machine, err error) state {
	if err != nil {
		// An adapter's error is logged as the finish that it stands for.
		s.chunks(m, []dsh.Chunk{dsh.Finish{Reason: dsh.FinishReason{
			Kind: dsh.FinishError, Failure: dsh.AsFailure(err),
		}}})
	}
	finish := s.asm.Finish()
	failure := failureOf(finish, err)
	if failure != nil {
		earlier := m.turn.failed
		m.turn.failed = append(earlier[:len(earlier):len(earlier)], failure.Code)
		m.do(Recover{
			Pos: m.pos, Provider: s.header.Config.Provider, Failure: failure,
			Content: s.asm.Blocks(), Earlier: earlier,
		})
		return recovering{failure: failure}
	}
	content := s.asm.Blocks()
	if finish != nil && finish.Reason.Kind == dsh.FinishMaxTokens {
		s.answer(m, withoutCalls(content), false)
		m.turn.sticky = true
		m.turn.ending = dsh.Ending{Kind: dsh.EndMaxTokens}
		return between{at: answerLogged}
	}
	s.answer(m, content, false)
	if calls := dsh.CallsOf(content); len(calls) > 0 {
		return between{at: answerLogged, tools: newExecuting(calls)}
	}
	m.turn.ending = m.concluded()
	return between{at: answerLogged}
}

// failureOf returns why a stream failed, or nil. An error behind a finish that
// says otherwise is still a failure.
func failureOf(finish *dsh.Finish, err error) *dsh.Failure {
	switch {
	case finish == nil || finish.Reason.Kind != dsh.FinishError && finish.Reason.Kind != dsh.FinishAborted:
		return dsh.AsFailure(err)
	case finish.Reason.Failure != nil:
		return finish.Reason.Failure
	}
	return &dsh.Failure{Code: dsh.CodeUnknown, Message: "the provider failed without saying why"}
}

// answer logs the assistant message that the stream made.
func (s *streaming) answer(m *Machine, content []dsh.Block, interrupted bool) {
	if s.cited == nil {
		s.cited = dsh.Cite()
	}
	message := &dsh.Message{
		ID: m.messageID(), Role: dsh.RoleAssistant, Content: content,
		Source: dsh.ModelSource{
			Provider: s.header.Config.Provider, Model: s.header.Config.Model, ReplayState: s.asm.ReplayState(),
		},
	}
	if len(content) > 0 {
		m.turn.answer = message
	}
	m.logMessage(dsh.AssistantMessage{
		Turn: m.lastTurn, Step: m.turn.step, Message: message, Usage: s.asm.Usage(), Interrupted: interrupted,
	}, s.cited)
}

// withoutCalls returns content without its tool calls: one that was cut off is
// unsafe to run, also if what there is of it happens to parse.
func withoutCalls(content []dsh.Block) []dsh.Block {
	kept := make([]dsh.Block, 0, len(content))
	for _, b := range content {
		if _, ok := b.(dsh.ToolCall); !ok {
			kept = append(kept, b)
		}
	}
	return kept
}

// concluded returns the ending of a turn whose last step owes nothing: a
// max-tokens of an earlier step stands.
func (m *Machine) concluded() dsh.Ending {
	if m.turn.sticky {
		return dsh.Ending{Kind: dsh.EndMaxTokens}
	}
	return dsh.Ending{Kind: dsh.EndCompleted}
}

// afterAnswer runs the answer's calls or ends the step.
func (m *Machine) afterAnswer(tools *executing) state {
	if tools == nil {
		return m.endStep()
	}
	return tools.advance(m)
}

// recovering: the request-error chain is asked whether to try again.
type recovering struct{ failure *dsh.Failure }

func (recovering) String() string { return "recovering" }

func (s recovering) step(m *Machine, in Input) state {
	switch in := in.(type) {
	case Cancel:
		return s
	case Recovered:
		switch {
		case m.isAborted():
			return m.endStep()
		case in.Retry:
			m.pos.Attempt++
			return m.prepare()
		}
		m.fail(s.failure, s.failure)
		return m.endStep()
	case HookFailed:
		if m.isAborted() {
			return m.endStep()
		}
		return m.failStep(in.Err)
	default:
		return m.unexpected(s, in)
	}
}
