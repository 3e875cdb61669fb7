package dsh_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Generators of values in the form that reading gives them.
var (
	anyText  = rapid.String()
	anyInt   = rapid.IntRange(-1<<53+1, 1<<53-1)
	anyCount = rapid.IntRange(0, 1<<53-1)
	anyInt64 = rapid.Int64Range(-1<<53+1, 1<<53-1)

	anyRaw = rapid.Custom(func(t *rapid.T) json.RawMessage {
		raw, err := json.Marshal(rapid.OneOf(
			rapid.Just[any](nil), rapid.Bool().AsAny(), anyInt.AsAny(), anyText.AsAny(),
			rapid.SliceOfN(anyText, 0, 3).AsAny(), rapid.MapOfN(anyText, anyInt, 0, 3).AsAny(),
		).Draw(t, "raw"))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	})

	anyFailure = rapid.Custom(func(t *rapid.T) *dsh.Failure {
		return &dsh.Failure{
			Message:              anyText.Draw(t, "message"),
			Code:                 dsh.Code(anyText.Draw(t, "code")),
			Status:               rapid.IntRange(0, 599).Draw(t, "status"),
			ProviderRetryAfterMs: rapid.Ptr(anyInt64, true).Draw(t, "retry after"),
			RequestID:            anyText.Draw(t, "request"),
		}
	})

	anyUsage = rapid.Custom(func(t *rapid.T) dsh.Usage {
		count := rapid.Ptr(anyInt64, true)
		return dsh.Usage{
			InputTokens:      anyInt64.Draw(t, "input"),
			OutputTokens:     anyInt64.Draw(t, "output"),
			CacheReadTokens:  count.Draw(t, "read"),
			CacheWriteTokens: count.Draw(t, "write"),
			ReasoningTokens:  count.Draw(t, "reasoning"),
		}
	})
)

func drawID[S ~string](t *rapid.T, label string) S { return S(anyText.Draw(t, label)) }

func drawBlock(t *rapid.T, depth int) dsh.Block {
	switch rapid.IntRange(0, 3+depth).Draw(t, "block") {
	case 0:
		return dsh.Text{Text: anyText.Draw(t, "text")}
	case 1:
		return dsh.Reasoning{Text: anyText.Draw(t, "text")}
	case 2:
		return dsh.ToolCall{ID: drawID[dsh.CallID](t, "id"), Name: anyText.Draw(t, "name"), Arguments: anyText.Draw(t, "arguments")}
	case 3:
		return dsh.Image{Raw: slices.Concat([]byte(`{"attachment":`), anyRaw.Draw(t, "raw"), []byte(`,"type":"image"}`))}
	}
	return dsh.ToolResult{CallID: drawID[dsh.CallID](t, "id"), Content: drawContent(t, depth-1), IsError: rapid.Bool().Draw(t, "is error")}
}

func drawContent(t *rapid.T, depth int) []dsh.Block {
	content := []dsh.Block{}
	for range rapid.IntRange(0, 3).Draw(t, "blocks") {
		content = append(content, drawBlock(t, depth))
	}
	return content
}

func drawSource(t *rapid.T) dsh.Source {
	switch rapid.IntRange(0, 5).Draw(t, "source") {
	case 0:
		return dsh.UserSource{}
	case 1:
		return dsh.PluginSource{Plugin: anyText.Draw(t, "plugin")}
	case 2:
		return dsh.PluginSource{Plugin: "p", Extra: slices.Concat([]byte(`{"form":`), anyRaw.Draw(t, "raw"), []byte(`,"<a>":[]}`))}
	case 3:
		return dsh.ModelSource{Provider: anyText.Draw(t, "provider"), Model: anyText.Draw(t, "model"), ReplayState: anyRaw.Draw(t, "raw")}
	case 4:
		return dsh.ToolSource{CallID: drawID[dsh.CallID](t, "call")}
	}
	return dsh.OpaqueSource{Name: "other", Raw: slices.Concat([]byte(`{"x":`), anyRaw.Draw(t, "raw"), []byte(`,"kind":"other"}`))}
}

func drawMessage(t *rapid.T) *dsh.Message {
	return &dsh.Message{
		ID:      drawID[dsh.MessageID](t, "id"),
		Role:    rapid.SampledFrom([]dsh.Role{dsh.RoleUser, dsh.RoleAssistant, dsh.RoleSystem}).Draw(t, "role"),
		Content: drawContent(t, 2),
		Source:  drawSource(t),
	}
}

func drawChunk(t *rapid.T) dsh.Chunk {
	index := anyInt.Draw(t, "index")
	switch rapid.IntRange(0, 6).Draw(t, "chunk") {
	case 0:
		return dsh.BlockStart{Index: index, BlockType: anyText.Draw(t, "type")}
	case 1:
		return dsh.TextDelta{Index: index, Text: anyText.Draw(t, "text")}
	case 2:
		return dsh.ReasoningDelta{Index: index, Text: anyText.Draw(t, "text")}
	case 3:
		return dsh.ToolCallDelta{
			Index: index, ID: drawID[dsh.CallID](t, "id"), Name: rapid.Ptr(anyText, true).Draw(t, "name"),
			ArgumentsDelta: anyText.Draw(t, "arguments"),
		}
	case 4:
		return dsh.BlockEnd{Index: index, Block: drawBlock(t, 1)}
	case 5:
		return anyUsage.Draw(t, "usage")
	}
	f := dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}}
	if rapid.Bool().Draw(t, "failed") {
		f.Reason = dsh.FinishReason{Kind: dsh.FinishError, Failure: anyFailure.Draw(t, "failure")}
	} else {
		f.ReplayState = anyRaw.Draw(t, "replay state")
	}
	return f
}

func drawHeader(t *rapid.T) *dsh.Header {
	h := &dsh.Header{
		Config: dsh.CallConfig{
			Provider:        anyText.Draw(t, "provider"),
			Model:           anyText.Draw(t, "model"),
			ReasoningEffort: anyText.Draw(t, "effort"),
			Temperature:     rapid.Ptr(rapid.Float64(), true).Draw(t, "temperature"),
			MaxTokens:       anyInt.Draw(t, "max tokens"),
		},
		AdapterDefaults: dsh.AdapterDefaults{MaxTokens: rapid.Bool().Draw(t, "a"), ReasoningEffort: rapid.Bool().Draw(t, "b")},
		System:          anyText.Draw(t, "system"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "stops") {
		h.Config.Stop = append(h.Config.Stop, anyText.Draw(t, "stop"))
	}
	for range rapid.IntRange(0, 2).Draw(t, "tools") {
		h.Tools = append(h.Tools, dsh.ToolSchema{
			Name: anyText.Draw(t, "name"), Description: anyText.Draw(t, "description"), Parameters: anyRaw.Draw(t, "parameters"),
		})
	}
	return h
}

func drawEnding(t *rapid.T) dsh.Ending {
	switch rapid.IntRange(0, 3).Draw(t, "ending") {
	case 0:
		return dsh.Ending{Kind: dsh.EndCompleted}
	case 1:
		return dsh.Ending{Kind: dsh.EndAborted, Cause: dsh.Cause{Kind: dsh.CauseUser}}
	case 2:
		return dsh.Ending{Kind: dsh.EndAborted, Cause: dsh.Cause{Kind: dsh.CauseHook, Reason: anyText.Draw(t, "reason")}}
	}
	return dsh.Ending{Kind: dsh.EndError, Failure: anyFailure.Draw(t, "failure")}
}

func drawFact(t *rapid.T) dsh.Fact {
	turn, step := anyInt.Draw(t, "turn"), anyInt.Draw(t, "step")
	switch rapid.IntRange(0, 15).Draw(t, "fact") {
	case 0:
		return dsh.TurnStart{Turn: turn}
	case 1:
		return dsh.TurnEnd{Turn: turn, Reason: drawEnding(t)}
	case 2:
		return dsh.StepStart{Turn: turn, Step: step}
	case 3:
		return dsh.StepEnd{Turn: turn, Step: step}
	case 4:
		return dsh.UserMessage{Message: drawMessage(t)}
	case 5:
		return dsh.AssistantChunk{Turn: turn, Step: step, Chunk: drawChunk(t)}
	case 6:
		return dsh.AssistantMessage{
			Turn: turn, Step: step, Message: drawMessage(t),
			Usage: rapid.Ptr(anyUsage, true).Draw(t, "usage"), Interrupted: rapid.Bool().Draw(t, "interrupted"),
		}
	case 7:
		return dsh.ToolStarted{Turn: turn, Step: step, CallID: drawID[dsh.CallID](t, "call"), Name: anyText.Draw(t, "name"), Arguments: anyText.Draw(t, "arguments")}
	case 8:
		d := dsh.ToolFinished{Turn: turn, Step: step, Message: drawMessage(t)}
		if rapid.Bool().Draw(t, "failed") {
			d.Error, d.Meta = &dsh.ToolFailure{Name: anyText.Draw(t, "name"), Code: anyText.Draw(t, "code")}, anyRaw.Draw(t, "meta")
		}
		return d
	case 9:
		return dsh.RequestHeader{Header: drawHeader(t), Reason: dsh.HeaderChange}
	case 10:
		return dsh.RequestContext{Provider: anyText.Draw(t, "provider"), Model: anyText.Draw(t, "model"), ContextWindow: anyInt.Draw(t, "window")}
	case 11:
		d := dsh.InboxSpliced{
			Target: dsh.NextTurn, Start: anyCount.Draw(t, "start"), Removed: anyCount.Draw(t, "removed"),
			Inserted: []*dsh.Message{}, Outcome: anyText.Draw(t, "outcome"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "messages") {
			d.Inserted = append(d.Inserted, drawMessage(t))
		}
		return d
	case 12:
		return dsh.EndSeed{}
	case 13:
		return dsh.RetryScheduled{
			RetryID: anyText.Draw(t, "id"), Turn: turn, Step: step, Provider: anyText.Draw(t, "provider"), Mode: "normal",
			PolicyKey: anyText.Draw(t, "key"), Retry: anyInt.Draw(t, "retry"), MaxRetries: rapid.Ptr(anyInt, true).Draw(t, "max"),
			DelayMs: anyInt64.Draw(t, "delay"), Failure: anyFailure.Draw(t, "failure"),
		}
	case 14:
		digest := func(name string) dsh.Digest { return dsh.Digest(anyText.Draw(t, name)) }
		return dsh.RequestSent{
			Turn: turn, Step: step, Attempt: anyInt.Draw(t, "attempt"),
			Through: dsh.Seq(anyCount.Draw(t, "through")), Messages: anyCount.Draw(t, "messages"),
			Digest: dsh.RequestDigest{Config: digest("a"), System: digest("b"), Tools: digest("c"), Messages: digest("d")},
		}
	}
	return dsh.Opaque{Name: "todo/write", Raw: anyRaw.Draw(t, "raw")}
}

func drawEvent(t *rapid.T) dsh.Event {
	ev := dsh.Event{
		Seq:       dsh.Seq(anyCount.Draw(t, "seq")),
		Time:      anyInt64.Draw(t, "time"),
		Data:      drawFact(t),
		Ignorable: rapid.Bool().Draw(t, "ignorable"),
	}
	if rapid.Bool().Draw(t, "cites") {
		ev.Sources = dsh.Cite()
		for range rapid.IntRange(0, 4).Draw(t, "runs") {
			first := dsh.Seq(rapid.IntRange(0, 1<<40).Draw(t, "first"))
			ev.Sources = ev.Sources.With(first, first+dsh.Seq(rapid.IntRange(0, 5).Draw(t, "more")))
		}
	}
	switch rapid.IntRange(0, 2).Draw(t, "surface") {
	case 1:
		ev.Surface = dsh.Append
	case 2:
		ev.Surface = dsh.Replace(dsh.Seq(anyCount.Draw(t, "start")), dsh.Seq(anyCount.Draw(t, "end")))
	}
	return ev
}

// Whatever an event holds, it comes back as it was.
func TestEventProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawEvent(t)
		line := want.AppendJSON(nil)
		var got dsh.Event
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v\nin %s", err, line)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\n got %+v\nwant %+v", line, got, want)
		}
	})
}

// AppendString writes what encoding/json reads back, also of what is not UTF-8.
func TestAppendStringProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		var got string
		if err := json.Unmarshal(dsh.AppendString(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		if want := string([]rune(s)); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

// However a log is packed and wherever it is cut, the prefix is the same.
func TestCutProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var packed []dsh.Event
		var seq dsh.Seq
		for range rapid.IntRange(0, 5).Draw(t, "events") {
			ev := dsh.Event{Seq: seq, Data: dsh.TurnStart{Turn: int(seq)}}
			if rapid.Bool().Draw(t, "run") {
				run := dsh.ChunkRun{Turn: 1}
				for range rapid.IntRange(1, 4).Draw(t, "chunks") {
					run.Chunks = append(run.Chunks, dsh.TextDelta{Index: len(run.Chunks)})
				}
				ev.Data = run
			}
			packed = append(packed, ev)
			seq += ev.Span()
		}
		n := dsh.Seq(rapid.IntRange(0, int(seq)).Draw(t, "cut"))
		got := slices.Collect(dsh.Expand(dsh.Cut(packed, n)))
		want := slices.Collect(dsh.Expand(packed))[:n]
		if !slices.EqualFunc(got, want, eventsEqual) {
			t.Fatalf("cut at %d\n got %+v\nwant %+v", n, got, want)
		}
	})
}
