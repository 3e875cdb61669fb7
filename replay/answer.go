package replay

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// answer compares an answer with what the chunks of its attempt make.
func (f *fold) answer(ev *dsh.Event, d dsh.AssistantMessage) {
	if ev.Surface.Kind() == dsh.SurfaceReplace {
		return // no model made it
	}
	if !f.within(ev, d.Turn, d.Step) {
		return
	}
	s := f.step
	if s.answered {
		f.find(ev, KindBracket, "a second answer in one step")
		return
	}
	a := s.attempt
	if a == nil || a.ended() && silent(ev, d) {
		a = f.begin(ev)
		f.strict(ev, a.derived)
	}
	f.cites(ev, a)
	f.made(ev, d, a)
	r := &f.report.Requests[a.request]
	r.Answer, r.AnswerSeq, r.Failure, r.Outcome = d.Message, ev.Seq, nil, Answered
	if d.Interrupted {
		r.Outcome = Interrupted
	}
	f.over()
	s.answered = true
	for _, c := range dsh.CallsOf(d.Message.Content) {
		s.calls = append(s.calls, call{ToolCall: c})
	}
}

// silent reports whether an answer is that of a stream without chunks. Behind a
// finish it is another attempt's.
func silent(ev *dsh.Event, d dsh.AssistantMessage) bool {
	return ev.Sources != nil && ev.Sources.Len() == 0 && len(d.Message.Content) == 0
}

// cites looks whether the answer cites the chunks of its attempt and no others.
func (f *fold) cites(ev *dsh.Event, a *attempt) {
	if ev.Sources == nil {
		f.find(ev, KindCitation, "an answer that cites nothing, not even an empty list")
		return
	}
	if ev.Sources.Equal(a.chunks) {
		return
	}
	for _, c := range ev.Sources.Runs() {
		switch {
		case covers(a.chunks, c):
		case overlaps(f.step.earlier, c):
			f.find(ev, KindCitation, "cites %s, which is of an attempt that failed", span(c))
			return
		default:
			f.find(ev, KindCitation, "cites %s, which are not all chunks of its attempt (%s)", span(c), list(a.chunks))
			return
		}
	}
	for _, c := range a.chunks.Runs() {
		if !covers(ev.Sources, c) {
			f.find(ev, KindCitation, "does not cite all of %s, the chunks of its attempt", list(a.chunks))
			return
		}
	}
}

// made looks whether the answer is what the chunks make: their blocks, without
// calls if it was cut off by its length, and the prefix that is worth keeping
// if it was cancelled.
func (f *fold) made(ev *dsh.Event, d dsh.AssistantMessage, a *attempt) {
	content := a.asm.Blocks()
	finish := a.asm.Finish()
	failure := a.failure()
	switch {
	case d.Interrupted:
		var keep bool
		if content, keep = a.asm.Prefix(); !keep {
			f.find(ev, KindAnswer, "an interrupted answer, and nothing was said that is worth keeping")
		}
	case failure != nil:
		f.find(ev, KindAnswer, "an answer of an attempt that failed with %s", failure.Code)
	case finish != nil && finish.Reason.Kind == dsh.FinishMaxTokens:
		content = withoutCalls(content)
	}
	if d.Message.Role != dsh.RoleAssistant {
		f.find(ev, KindAnswer, "an answer of the role %q", d.Message.Role)
	}
	if !sameContent(content, d.Message.Content) {
		f.find(ev, KindAnswer, "its content is not what its chunks make: %s", unlike(d.Message.Content, content))
	}
	if !reflect.DeepEqual(d.Usage, a.asm.Usage()) {
		f.find(ev, KindAnswer, "its usage is not the one that the stream told")
	}
	f.source(ev, d, a)
}

// source looks whether the answer names the route that was asked, and keeps the
// state that the adapter asked to get back.
func (f *fold) source(ev *dsh.Event, d dsh.AssistantMessage, a *attempt) {
	source, ok := d.Message.Source.(dsh.ModelSource)
	if !ok {
		f.find(ev, KindAnswer, "an answer that no model is named for")
		return
	}
	if h := f.report.Requests[a.request].Header; h != nil &&
		(source.Provider != h.Config.Provider || source.Model != h.Config.Model) {
		f.find(ev, KindHeader, "an answer of %s/%s to a request to %s/%s",
			source.Provider, source.Model, h.Config.Provider, h.Config.Model)
	}
	if state := a.asm.ReplayState(); !bytes.Equal(source.ReplayState, state) {
		f.find(ev, KindAnswer, "its replay state is not the one of its finish")
	}
}

// withoutCalls returns content without its tool calls.
func withoutCalls(content []dsh.Block) []dsh.Block {
	kept := make([]dsh.Block, 0, len(content))
	for _, b := range content {
		if _, ok := b.(dsh.ToolCall); !ok {
			kept = append(kept, b)
		}
	}
	return kept
}

func sameContent(a, b []dsh.Block) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameBlock(a[i], b[i]) {
			return false
		}
	}
	return true
}

func sameBlock(a, b dsh.Block) bool {
	switch a := a.(type) {
	case dsh.Text, dsh.Reasoning, dsh.ToolCall:
		return a == b
	case dsh.Image, dsh.ToolResult:
		return bytes.Equal(blockJSON(a), blockJSON(b))
	}
	return false
}

// blockJSON returns a block as a log holds it, inside of a message.
func blockJSON(b dsh.Block) []byte {
	m := dsh.Message{Content: []dsh.Block{b}, Source: dsh.UserSource{}}
	return m.AppendJSON(nil)
}

// unlike says where two contents part.
func unlike(got, want []dsh.Block) string {
	for i := range min(len(got), len(want)) {
		if !sameBlock(got[i], want[i]) {
			return fmt.Sprintf("block %d is %s where %s is due", i, blockName(got[i]), blockName(want[i]))
		}
	}
	return fmt.Sprintf("%d blocks where %d are due", len(got), len(want))
}

func blockName(b dsh.Block) string {
	switch b := b.(type) {
	case dsh.Text:
		return "the text " + brief(b.Text)
	case dsh.Reasoning:
		return "the reasoning " + brief(b.Text)
	case dsh.ToolCall:
		return fmt.Sprintf("the call %s of %s with %s", b.ID, b.Name, brief(b.Arguments))
	case dsh.ToolResult:
		return fmt.Sprintf("a result for %s", b.CallID)
	case dsh.Image:
		return "an image"
	}
	return "nothing"
}

// brief returns s quoted, and its middle left out if it is long.
func brief(s string) string {
	const most = 60
	if r := []rune(s); len(s) > most && len(r) > most {
		return fmt.Sprintf("%q", string(r[:most/2])+"..."+string(r[len(r)-most/2:]))
	}
	return fmt.Sprintf("%q", s)
}

func covers(s *dsh.Sources, r dsh.SeqRange) bool {
	for _, q := range s.Runs() {
		if q.First <= r.First && r.Last <= q.Last {
			return true
		}
	}
	return false
}

func overlaps(s *dsh.Sources, r dsh.SeqRange) bool {
	for _, q := range s.Runs() {
		if q.First <= r.Last && r.First <= q.Last {
			return true
		}
	}
	return false
}

func span(r dsh.SeqRange) string {
	if r.First == r.Last {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

func list(s *dsh.Sources) string {
	if s.Len() == 0 {
		return "none"
	}
	var out []string
	for _, r := range s.Runs() {
		out = append(out, span(r))
	}
	return strings.Join(out, ", ")
}
