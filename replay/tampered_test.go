package replay_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/replay"
)

// edit changes the data of one event, which the log it came from keeps.
func edit[F dsh.Fact](events []dsh.Event, seq dsh.Seq, change func(*F)) []dsh.Event {
	d := events[seq].Data.(F)
	change(&d)
	events[seq].Data = d
	return events
}

// message changes a copy of a message.
func message(m **dsh.Message, change func(*dsh.Message)) {
	c := **m
	c.Content = slices.Clone(c.Content)
	change(&c)
	*m = &c
}

type tampering struct {
	name   string
	tamper func([]dsh.Event) []dsh.Event
	// want is what is found: event, kind and a part of the text, a line each.
	want string
}

// citing returns sources that list a run and then what s lists.
func citing(s *dsh.Sources, run dsh.SeqRange) *dsh.Sources {
	cited := dsh.Cite().With(run.First, run.Last)
	for _, r := range s.Runs() {
		cited = cited.With(r.First, r.Last)
	}
	return cited
}

// Each kind of finding is provoked by changes of a sound log, and no change
// provokes others.
func TestTamperedLogs(t *testing.T) {
	for _, tc := range slices.Concat(brackets, headers, answers, tools, inboxes, surfaces, digests) {
		t.Run(tc.name, func(t *testing.T) {
			report := replay.Run(dsh.SessionHeader{}, tc.tamper(sound()))
			var got []string
			for _, found := range report.Findings {
				got = append(got, fmt.Sprintf("%d %s %s", found.Seq, found.Kind, found.Text))
			}
			want := strings.Split(tc.want, "\n")
			if tc.want == "" {
				want = nil
			}
			if len(got) != len(want) {
				t.Fatalf("found\n%s\nwant\n%s", strings.Join(got, "\n"), tc.want)
			}
			for i := range got {
				head, text, _ := strings.Cut(want[i], ": ")
				if !strings.HasPrefix(got[i], head+" ") || !strings.Contains(got[i], text) {
					t.Errorf("found %s, want %s", got[i], want[i])
				}
			}
		})
	}
}

var brackets = []tampering{
	{"a gap", func(l []dsh.Event) []dsh.Event {
		l[atAborted].Seq++
		return l
	}, "46 sequence: event 46 stands where 45 is due"},
	{"a turn that is left out", func(l []dsh.Event) []dsh.Event {
		l = edit(l, atTurn2, func(d *dsh.TurnStart) { d.Turn = 3 })
		l = edit(l, atTurn2+2, func(d *dsh.StepStart) { d.Turn = 3 })
		l = edit(l, atPrefix-1, func(d *dsh.RequestSent) { d.Turn = 3 })
		l = edit(l, atPrefix, func(d *dsh.AssistantChunk) { d.Turn = 3 })
		l = edit(l, atCut, func(d *dsh.AssistantMessage) { d.Turn = 3 })
		l = edit(l, atCut+1, func(d *dsh.StepEnd) { d.Turn = 3 })
		return edit(l, atAborted, func(d *dsh.TurnEnd) { d.Turn = 3 })
	}, "36 bracket: turn 3 starts where turn 2 is next"},
	{"a turn inside of another", func(l []dsh.Event) []dsh.Event {
		return without(l, atTurnEnd)
	}, "33 bracket: a seed ends inside turn 1\n35 bracket: turn 2 starts inside turn 1"},
	{"a turn that ends twice", func(l []dsh.Event) []dsh.Event {
		return with(l, atTurnEnd, l[atTurnEnd])
	}, "33 bracket: turn 1 ends and no turn is open"},
	{"a step that does not end", func(l []dsh.Event) []dsh.Event {
		return without(l, atStepEnd2)
	}, "31 bracket: turn 1 ends and its step 2 does not"},
	{"a step inside of another", func(l []dsh.Event) []dsh.Event {
		return without(l, atStepEnd)
	}, "25 bracket: step 1.2 starts inside step 1"},
	{"a step outside of its turn", func(l []dsh.Event) []dsh.Event {
		return edit(l, atStepEnd, func(d *dsh.StepEnd) { d.Step = 2 })
	}, "25 bracket: step/end of step 1.2 in step 1.1"},
	{"a chunk of another step", func(l []dsh.Event) []dsh.Event {
		return edit(l, atFailed, func(d *dsh.AssistantChunk) { d.Step = 2 })
	}, "9 bracket: assistant/chunk of step 1.2 in step 1.1"},
	{"a chunk behind the answer", func(l []dsh.Event) []dsh.Event {
		return with(l, atAnswer2+1, dsh.Event{Data: dsh.AssistantChunk{Turn: 1, Step: 2, Chunk: dsh.TextDelta{}}})
	}, "31 bracket: a chunk behind the step's answer"},
	{"a second answer", func(l []dsh.Event) []dsh.Event {
		return with(l, atAnswer2+1, l[atAnswer2])
	}, "31 bracket: a second answer in one step\n42 digest: "},
	{"a retry behind the answer", func(l []dsh.Event) []dsh.Event {
		return with(l, atAnswer+1, l[atRetry])
	}, "21 bracket: a retry behind the step's answer"},
	{"a record behind the answer", func(l []dsh.Event) []dsh.Event {
		return with(l, atAnswer+1, l[atAgain])
	}, "21 bracket: a request behind the step's answer"},
	{"a header behind the answer", func(l []dsh.Event) []dsh.Event {
		return with(l, atAnswer+1, dsh.Event{Data: dsh.RequestContext{Provider: "p", Model: "m"}})
	}, "21 bracket: request/context behind the step's answer"},
	{"a header where no step is", func(l []dsh.Event) []dsh.Event {
		return with(l, atTurnEnd, dsh.Event{Data: dsh.RequestContext{Provider: "p", Model: "m"}})
	}, "32 bracket: request/context, and no step is open"},
	{"an end without a cause", func(l []dsh.Event) []dsh.Event {
		return edit(l, atAborted, func(d *dsh.TurnEnd) { d.Reason.Cause = dsh.Cause{} })
	}, `45 ending: aborted with the cause ""`},
	{"an error without a failure", func(l []dsh.Event) []dsh.Event {
		return edit(l, atTurnEnd, func(d *dsh.TurnEnd) { d.Reason.Kind = dsh.EndError })
	}, "32 ending: error, and a failure is named: false"},
}

var headers = []tampering{
	{"no header", func(l []dsh.Event) []dsh.Event { return without(l, atHeader) },
		"7 header: a request, and the log has no header\n" +
			"12 header: a request, and the log has no header\n" +
			"26 header: a request, and the log has no header\n" +
			"39 header: a header that resumes, and there is none before it"},
	{"a header for nothing", func(l []dsh.Event) []dsh.Event {
		header := l[atHeader]
		header.Data = dsh.RequestHeader{Header: header.Data.(dsh.RequestHeader).Header, Reason: dsh.HeaderChange}
		return with(l, atStep2+1, header)
	}, "27 header: a header that changes nothing"},
	{"a header that changes where it resumes", func(l []dsh.Event) []dsh.Event {
		return edit(l, atResume, func(d *dsh.RequestHeader) { d.Reason = dsh.HeaderChange })
	}, "40 header: says that it changes, not that it resumes"},
	{"a resume without a header", func(l []dsh.Event) []dsh.Event { return without(l, atResume) },
		"40 header: the first request since a session/end-seed has no header of its own\n" +
			"40 digest: the system prompt that was sent is not the one\n" +
			"40 digest: the list of tools that was sent is not the one"},
	{"a header that resumes nothing", func(l []dsh.Event) []dsh.Event {
		return edit(l, atHeader, func(d *dsh.RequestHeader) { d.Reason = dsh.HeaderResume })
	}, "6 header: a header that resumes, and there is none before it"},
	{"a second initial header", func(l []dsh.Event) []dsh.Event {
		return edit(l, atResume, func(d *dsh.RequestHeader) { d.Reason = dsh.HeaderInitial })
	}, "40 header: an initial header, and it is not the first"},
	{"a resume in the middle", func(l []dsh.Event) []dsh.Event { return without(l, atSeedEnd) },
		"39 header: a header that resumes, and nothing was resumed"},
	{"a first header that changes", func(l []dsh.Event) []dsh.Event {
		return edit(l, atHeader, func(d *dsh.RequestHeader) { d.Reason = dsh.HeaderChange })
	}, "6 header: a header that changes, and there is none before it"},
	{"a header with a reason of its own", func(l []dsh.Event) []dsh.Event {
		return edit(l, atResume, func(d *dsh.RequestHeader) { d.Reason = "whim" })
	}, `40 header: the reason "whim"`},
	{"parameters for nothing", func(l []dsh.Event) []dsh.Event { return with(l, atParameters+1, l[atParameters]) },
		"6 header: parameters that change nothing"},
	{"a context for nothing", func(l []dsh.Event) []dsh.Event { return with(l, atContext+1, l[atContext]) },
		"8 header: a request/context that changes nothing"},
	{"a context of another route", func(l []dsh.Event) []dsh.Event {
		return with(l, atContext, dsh.Event{Data: dsh.RequestContext{Provider: "p", Model: "n"}})
	}, "7 header: the context is of p/n and the header of p/m"},
	{"no context", func(l []dsh.Event) []dsh.Event { return without(l, atContext) },
		"7 header: a request, and the log has no request/context\n" +
			"12 header: no request/context\n26 header: no request/context\n40 header: no request/context"},
	{"a route without its context", func(l []dsh.Event) []dsh.Event {
		l = edit(l, atResume, func(d *dsh.RequestHeader) {
			h := *d.Header
			h.Config.Model = "n"
			d.Header = &h
		})
		return edit(l, atCut, func(d *dsh.AssistantMessage) {
			message(&d.Message, func(m *dsh.Message) { m.Source = dsh.ModelSource{Provider: "p", Model: "n"} })
		})
	}, "41 header: a request to p/n, and the last request/context is of p/m\n41 digest: the configuration"},
	{"an answer of another model", func(l []dsh.Event) []dsh.Event {
		return edit(l, atAnswer2, func(d *dsh.AssistantMessage) {
			message(&d.Message, func(m *dsh.Message) { m.Source = dsh.ModelSource{Provider: "p", Model: "n"} })
		})
	}, "30 header: an answer of p/n to a request to p/m"},
}

func content(change func(*dsh.Message)) func([]dsh.Event) []dsh.Event {
	return func(l []dsh.Event) []dsh.Event {
		return edit(l, atAnswer2, func(d *dsh.AssistantMessage) { message(&d.Message, change) })
	}
}

var answers = []tampering{
	{"a text that nobody streamed", content(func(m *dsh.Message) { m.Content[0] = dsh.Text{Text: "dune"} }),
		`30 answer: block 0 is the text "dune" where the text "done" is due`},
	{"a block more", content(func(m *dsh.Message) { m.Content = append(m.Content, dsh.Text{}) }),
		`30 answer: 2 blocks where 1 are due`},
	{"an answer of a user", content(func(m *dsh.Message) { m.Role = dsh.RoleUser }), `30 answer: of the role "user"`},
	{"an answer of nobody", content(func(m *dsh.Message) { m.Source = dsh.UserSource{} }), `30 answer: no model is named`},
	{"another replay state", content(func(m *dsh.Message) {
		m.Source = dsh.ModelSource{Provider: "p", Model: "m", ReplayState: json.RawMessage("1")}
	}), "30 answer: its replay state"},
	{"a chunk that says something else", func(l []dsh.Event) []dsh.Event {
		return edit(l, atChunks+1, func(d *dsh.AssistantChunk) { d.Chunk = dsh.ReasoningDelta{Text: "once"} })
	}, `20 answer: block 0 is the reasoning "count, twice" where the reasoning "count, once" is due`},
	{"another usage", func(l []dsh.Event) []dsh.Event {
		return edit(l, atChunks+4, func(d *dsh.AssistantChunk) { d.Chunk = dsh.Usage{InputTokens: 11, OutputTokens: 5} })
	}, "20 answer: its usage"},
	{"a long text", content(func(m *dsh.Message) { m.Content[0] = dsh.Text{Text: strings.Repeat("ab", 50)} }),
		`30 answer: block 0 is the text "` + strings.Repeat("ab", 15) + "..." + strings.Repeat("ab", 15) + `" where`},
	{"a result in the place of a text", content(func(m *dsh.Message) { m.Content[0] = dsh.ToolResult{CallID: "c"} }),
		"30 answer: block 0 is a result for c where"},
	{"another image", func(l []dsh.Event) []dsh.Event {
		l = edit(l, atAnswer2-2, func(d *dsh.AssistantChunk) {
			d.Chunk = dsh.BlockEnd{Block: dsh.Image{Raw: json.RawMessage(`{"type":"image","attachment":"a"}`)}}
		})
		return content(func(m *dsh.Message) {
			m.Content[0] = dsh.Image{Raw: json.RawMessage(`{"type":"image","attachment":"b"}`)}
		})(l)
	}, "30 answer: block 0 is an image where an image is due"},
	{"a failure without a code", func(l []dsh.Event) []dsh.Event {
		return edit(l, atAnswer2-1, func(d *dsh.AssistantChunk) {
			d.Chunk = dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishAborted}}
		})
	}, "30 answer: an answer of an attempt that failed with UNKNOWN"},
	{"a failure that was answered", func(l []dsh.Event) []dsh.Event {
		return edit(l, atAnswer2-1, func(d *dsh.AssistantChunk) {
			d.Chunk = dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishError, Failure: &dsh.Failure{Code: dsh.CodeServer}}}
		})
	}, "30 answer: an answer of an attempt that failed with SERVER"},
	{"calls of an answer that was cut off", func(l []dsh.Event) []dsh.Event {
		return edit(l, atFinish, func(d *dsh.AssistantChunk) {
			d.Chunk = dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishMaxTokens}, ReplayState: json.RawMessage(`{"id":"x"}`)}
		})
	}, "20 answer: 3 blocks where 1 are due"},
	{"an interrupted answer that says nothing", func(l []dsh.Event) []dsh.Event {
		l = edit(l, atPrefix, func(d *dsh.AssistantChunk) { d.Chunk = dsh.TextDelta{Text: " "} })
		return edit(l, atCut, func(d *dsh.AssistantMessage) {
			message(&d.Message, func(m *dsh.Message) { m.Content[0] = dsh.Text{Text: " "} })
		})
	}, "43 answer: nothing was said that is worth keeping"},
	{"chunks of a failed attempt", func(l []dsh.Event) []dsh.Event {
		l[atAnswer].Sources = citing(l[atAnswer].Sources, dsh.SeqRange{First: atFailed, Last: atFailed + 1})
		return l
	}, "20 citation: cites 9-10, which is of an attempt that failed"},
	{"a chunk that is not cited", func(l []dsh.Event) []dsh.Event {
		l[atAnswer].Sources = dsh.Cite().With(atChunks, atFinish-1)
		return l
	}, "20 citation: does not cite all of 14-19"},
	{"what is no chunk", func(l []dsh.Event) []dsh.Event {
		l[atAnswer].Sources = citing(l[atAnswer].Sources, dsh.SeqRange{First: atUser, Last: atUser})
		return l
	}, "20 citation: cites 4, which are not all chunks of its attempt (14-19)"},
	{"nothing cited", func(l []dsh.Event) []dsh.Event {
		l[atAnswer].Sources = nil
		return l
	}, "20 citation: cites nothing, not even an empty list"},
}

var tools = []tampering{
	{"other arguments", func(l []dsh.Event) []dsh.Event {
		return edit(l, atCall, func(d *dsh.ToolStarted) { d.Arguments = `{"n":9}` })
	}, "21 call: runs with the arguments"},
	{"another tool", func(l []dsh.Event) []dsh.Event {
		return edit(l, atCall, func(d *dsh.ToolStarted) { d.Name = "rm" })
	}, `21 call: runs the tool "rm", and the model asked for "count"`},
	{"a call that nobody made", func(l []dsh.Event) []dsh.Event {
		return with(l, atResult, dsh.Event{Data: dsh.ToolStarted{Turn: 1, Step: 1, CallID: "c3"}})
	}, `23 call: call "c3" starts, and the answer asks for no such call`},
	{"a call that starts twice", func(l []dsh.Event) []dsh.Event {
		return with(l, atCall, l[atCall])
	}, `22 call: call "c1" starts a second time`},
	{"calls out of order", func(l []dsh.Event) []dsh.Event {
		l[atCall].Data, l[atCall+1].Data = l[atCall+1].Data, l[atCall].Data
		l[atResult].Sources, l[atResult+1].Sources = l[atResult+1].Sources, l[atResult].Sources
		return l
	}, `21 call: call "c2" starts where call "c1" is next`},
	{"empty arguments of an older writer", func(l []dsh.Event) []dsh.Event {
		empty := dsh.ToolCall{ID: "c1", Name: "count"}
		l = edit(l, atChunks+2, func(d *dsh.AssistantChunk) { d.Chunk = dsh.BlockEnd{Index: 1, Block: empty} })
		l = edit(l, atAnswer, func(d *dsh.AssistantMessage) {
			message(&d.Message, func(m *dsh.Message) { m.Content[1] = empty })
		})
		l = without(l, atSent2) // its digest
		return edit(l, atCall, func(d *dsh.ToolStarted) { d.Arguments = "{}" })
	}, ""},
	{"a result that is missing", func(l []dsh.Event) []dsh.Event { return without(without(l, atSummary), atResult+1) },
		`24 result: the step ends, and call "c2" has no result` + "\n26 request: rule 3\n26 digest: 4 messages were sent, and the log yields 3 others\n39 digest: "},
	{"a result without a call", func(l []dsh.Event) []dsh.Event {
		return with(l, atAnswer2+1, dsh.Event{
			Surface: dsh.Append, Data: dsh.ToolFinished{Turn: 1, Step: 2, Message: result("c9", "")},
		})
	}, `31 result: a result for call "c9", which nobody made` + "\n42 request: rule 4\n42 digest: "},
	{"a second result", func(l []dsh.Event) []dsh.Event { return with(without(l, atSent2), atResult+1, l[atResult]) },
		`24 result: a second result for call "c1"` + "\n28 request: rule 3\n33 surface: \n41 digest: "},
	{"results out of order", func(l []dsh.Event) []dsh.Event {
		l[atResult].Data, l[atResult+1].Data = l[atResult+1].Data, l[atResult].Data
		l[atResult].Sources, l[atResult+1].Sources = l[atResult+1].Sources, l[atResult].Sources
		return without(l, atSent2)
	}, `23 result: the result for call "c2" stands where the one for "c1" is due` + "\n27 request: rule 3"},
	{"a result of another call", func(l []dsh.Event) []dsh.Event {
		l[atResult].Sources = dsh.Cite(atCall + 1)
		return l
	}, "23 result: cites 22, and its tool/call is 21"},
	{"a result of a call that never started", func(l []dsh.Event) []dsh.Event {
		l[atResult+1].Sources = nil
		return without(l, atCall+1)
	}, `23 result: a result for call "c2", which has no tool/call`},
	{"a result message without a result", func(l []dsh.Event) []dsh.Event {
		l = edit(l, atResult+1, func(d *dsh.ToolFinished) {
			message(&d.Message, func(m *dsh.Message) { m.Content[0] = dsh.Text{} })
		})
		return without(l, atSent2)
	}, "24 result: does not hold exactly one result\n25 result: the step ends, and call \"c2\" has no result\n27 request: rule 3"},
	{"a result message with two", func(l []dsh.Event) []dsh.Event {
		l = edit(l, atResult+1, func(d *dsh.ToolFinished) {
			message(&d.Message, func(m *dsh.Message) { m.Content = append(m.Content, dsh.Text{}) })
		})
		return without(l, atSent2)
	}, "24 result: does not hold exactly one result\n25 result: has no result\n27 request: rule 5"},
	{"a message between call and result", func(l []dsh.Event) []dsh.Event {
		return with(without(l, atSent2), atResult, dsh.Event{Data: dsh.UserMessage{Message: user("x", "hm")}, Surface: dsh.Append})
	}, "23 result: stands between the calls\n28 request: rule 3\n33 surface: \n41 digest: "},
}

var inboxes = []tampering{
	{"a splice that does not fit", func(l []dsh.Event) []dsh.Event {
		return edit(l, atClaim, func(d *dsh.InboxSpliced) { d.Removed = 2 })
	}, "2 inbox: invalid inbox splice"},
	{"a claim outside of turns", func(l []dsh.Event) []dsh.Event { return with(without(l, atClaim), atTurnStart, l[atClaim]) },
		"1 inbox: 1 messages of next-turn are claimed, and no turn is open"},
	{"a claim inside of a step", func(l []dsh.Event) []dsh.Event { return with(without(l, atClaim), atUser-1, l[atClaim]) },
		"3 inbox: 1 messages of next-turn are claimed inside of step 1"},
}

var surfaces = []tampering{
	{"a replace of what is not there", func(l []dsh.Event) []dsh.Event {
		_, end := l[atSummary].Surface.Range()
		l[atSummary].Surface = dsh.Replace(atStep, end)
		return without(l, atPrefix-1)
	}, "33 surface: event 3 is not on the surface"},
	{"a replace that does not cite", func(l []dsh.Event) []dsh.Event {
		l[atSummary].Sources = dsh.Cite(atUser)
		return without(l, atPrefix-1)
	}, "33 surface: without citing it"},
	{"a message without a place", func(l []dsh.Event) []dsh.Event {
		l[atUser].Surface = dsh.SurfaceOp{}
		return without(without(without(l, atSent2), atAgain), atSent)[:atTurnEnd-3]
	}, "4 surface: user/message needs a surfaceOp"},
}

var digests = []tampering{
	{"another message", func(l []dsh.Event) []dsh.Event {
		return edit(l, atUser, func(d *dsh.UserMessage) {
			message(&d.Message, func(m *dsh.Message) { m.Content[0] = dsh.Text{Text: "hallo"} })
		})
	}, "8 digest: the 1 messages that were sent are not all those\n13 digest: \n27 digest: the 4 messages"},
	{"a message more", func(l []dsh.Event) []dsh.Event {
		return with(l, atResume, dsh.Event{Data: dsh.UserMessage{Message: user("x", "psst")}, Surface: dsh.Append})
	}, "42 digest: only the first 2 of the 3 messages that the log yields were sent"},
	{"another system prompt", func(l []dsh.Event) []dsh.Event {
		return edit(l, atResume, func(d *dsh.RequestHeader) {
			h := *d.Header
			h.System = "Be rude."
			d.Header = &h
		})
	}, "41 digest: the system prompt"},
	{"other parameters", func(l []dsh.Event) []dsh.Event {
		return edit(l, atParameters, func(d *dsh.RequestParameters) { d.Parameters = dsh.Parameters{Logprobs: true} })
	}, "8 digest: the configuration\n13 digest: the configuration\n27 digest: \n41 digest: "},
	{"an attempt that was before", func(l []dsh.Event) []dsh.Event {
		return edit(l, atAgain, func(d *dsh.RequestSent) { d.Attempt = 0 })
	}, "13 bracket: attempt 0 is sent where attempt 1 is next"},
}
