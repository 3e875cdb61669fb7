package dsh_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

func fold(chunks ...dsh.Chunk) *dsh.Assembler {
	var a dsh.Assembler
	for _, c := range chunks {
		a.Add(c)
	}
	return &a
}

func TestAssemblerBlocks(t *testing.T) {
	name, other, empty := "read", "write", ""
	call := func(id dsh.CallID, name *string, arguments string) dsh.ToolCallDelta {
		return dsh.ToolCallDelta{ID: id, Name: name, ArgumentsDelta: arguments}
	}
	for _, tc := range []struct {
		name   string
		chunks []dsh.Chunk
		want   []dsh.Block
	}{
		{"nothing", nil, []dsh.Block{}},
		{
			"a start alone is a block",
			[]dsh.Chunk{dsh.BlockStart{Index: 0, BlockType: dsh.TextBlock}},
			[]dsh.Block{dsh.Text{}},
		},
		{
			"deltas without a start open a block",
			[]dsh.Chunk{dsh.ReasoningDelta{0, "a"}, dsh.TextDelta{1, "b"}, dsh.ReasoningDelta{0, "c"}},
			[]dsh.Block{dsh.Reasoning{Text: "ac"}, dsh.Text{Text: "b"}},
		},
		{
			"an end without anything before is a block",
			[]dsh.Chunk{dsh.BlockEnd{3, dsh.Text{Text: "a"}}},
			[]dsh.Block{dsh.Text{Text: "a"}},
		},
		{
			"deltas behind an end are ignored",
			[]dsh.Chunk{dsh.TextDelta{0, "a"}, dsh.BlockEnd{0, dsh.Text{Text: "b"}}, dsh.TextDelta{0, "c"}},
			[]dsh.Block{dsh.Text{Text: "b"}},
		},
		{
			"the first end wins",
			[]dsh.Chunk{dsh.BlockEnd{0, dsh.Text{Text: "a"}}, dsh.BlockEnd{0, dsh.Text{Text: "b"}}},
			[]dsh.Block{dsh.Text{Text: "a"}},
		},
		{
			"an end without a block leaves the deltas",
			[]dsh.Chunk{dsh.TextDelta{0, "a"}, dsh.BlockEnd{Index: 0}, dsh.TextDelta{0, "b"}},
			[]dsh.Block{dsh.Text{Text: "ab"}},
		},
		{
			"a second start changes nothing",
			[]dsh.Chunk{dsh.TextDelta{0, "a"}, dsh.BlockStart{0, dsh.ToolCallBlock}, dsh.TextDelta{0, "b"}},
			[]dsh.Block{dsh.Text{Text: "ab"}},
		},
		{
			"blocks are ordered by their first chunk",
			[]dsh.Chunk{dsh.TextDelta{5, "a"}, dsh.TextDelta{1, "b"}, dsh.TextDelta{5, "c"}},
			[]dsh.Block{dsh.Text{Text: "ac"}, dsh.Text{Text: "b"}},
		},
		{
			"a block of an unknown kind is dropped",
			[]dsh.Chunk{dsh.BlockStart{0, "audio"}, dsh.TextDelta{1, "a"}},
			[]dsh.Block{dsh.Text{Text: "a"}},
		},
		{
			"arguments are joined; the first name and ID stay",
			[]dsh.Chunk{call("c", &name, `{"a`), call("c", nil, `":`), call("", &empty, `1`), call("d", &other, `}`)},
			[]dsh.Block{dsh.ToolCall{ID: "c", Name: "read", Arguments: `{"a":1}`}},
		},
		{
			"a late name and ID are taken",
			[]dsh.Chunk{call("", nil, `{`), call("c", &name, `}`)},
			[]dsh.Block{dsh.ToolCall{ID: "c", Name: "read", Arguments: `{}`}},
		},
		{
			"a call without an ID is named by its index",
			[]dsh.Chunk{dsh.ToolCallDelta{Index: 7, Name: &name}},
			[]dsh.Block{dsh.ToolCall{ID: "call-7", Name: "read"}},
		},
		{
			"also where an end says so",
			[]dsh.Chunk{dsh.BlockEnd{7, dsh.ToolCall{Name: "read"}}},
			[]dsh.Block{dsh.ToolCall{ID: "call-7", Name: "read"}},
		},
		{
			"an end without an ID keeps that of the deltas",
			[]dsh.Chunk{call("c", nil, ""), dsh.BlockEnd{0, dsh.ToolCall{Name: "read"}}},
			[]dsh.Block{dsh.ToolCall{ID: "c", Name: "read"}},
		},
		{
			"calls that share an ID get their own",
			[]dsh.Chunk{
				dsh.BlockEnd{0, dsh.ToolCall{ID: "c", Name: "a"}},
				dsh.BlockEnd{1, dsh.ToolCall{ID: "c", Name: "b"}},
				dsh.BlockEnd{2, dsh.ToolCall{ID: "c-2", Name: "c"}},
			},
			[]dsh.Block{
				dsh.ToolCall{ID: "c", Name: "a"},
				dsh.ToolCall{ID: "c-2", Name: "b"},
				dsh.ToolCall{ID: "c-2-2", Name: "c"},
			},
		},
		{
			"chunks behind a finish are ignored",
			[]dsh.Chunk{dsh.TextDelta{0, "a"}, dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}}, dsh.TextDelta{0, "b"}, dsh.TextDelta{1, "c"}},
			[]dsh.Block{dsh.Text{Text: "a"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := fold(tc.chunks...)
			if got := a.Blocks(); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("\n got %+v\nwant %+v", got, tc.want)
			}
			if got := a.Blocks(); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("asked again, got %+v", got)
			}
		})
	}
}

func TestAssemblerUsageAndFinish(t *testing.T) {
	a := fold(dsh.TextDelta{0, "a"})
	if a.Usage() != nil || a.Finish() != nil || a.ReplayState() != nil {
		t.Error("an open stream has an end")
	}
	a.Add(dsh.Usage{InputTokens: 1})
	a.Add(dsh.Usage{InputTokens: 2})
	a.Add(dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishToolCalls}, ReplayState: json.RawMessage(`1`)})
	a.Add(dsh.Usage{InputTokens: 3})
	a.Add(dsh.Finish{Reason: dsh.FinishReason{Kind: dsh.FinishStop}})
	if got := a.Usage().InputTokens; got != 2 {
		t.Errorf("usage %d, want the last one before the finish", got)
	}
	if got := a.Finish().Reason.Kind; got != dsh.FinishToolCalls || string(a.ReplayState()) != "1" {
		t.Errorf("finish %s, want the first one", got)
	}
}

func TestAssemblerPrefix(t *testing.T) {
	for _, tc := range []struct {
		name   string
		chunks []dsh.Chunk
		want   []dsh.Block
		worth  bool
	}{
		{"nothing", nil, []dsh.Block{}, false},
		{"an empty block", []dsh.Chunk{dsh.BlockStart{0, dsh.TextBlock}}, []dsh.Block{dsh.Text{}}, false},
		{"white space", []dsh.Chunk{dsh.TextDelta{0, " \n"}}, []dsh.Block{dsh.Text{Text: " \n"}}, false},
		{"reasoning", []dsh.Chunk{dsh.ReasoningDelta{0, "a"}}, []dsh.Block{dsh.Reasoning{Text: "a"}}, true},
		{
			"calls are left out",
			[]dsh.Chunk{
				dsh.TextDelta{0, "a"}, dsh.ToolCallDelta{Index: 1, ID: "c"},
				dsh.BlockEnd{2, dsh.ToolCall{ID: "d"}}, dsh.TextDelta{3, "b"},
			},
			[]dsh.Block{dsh.Text{Text: "a"}, dsh.Text{Text: "b"}}, true,
		},
		{"only a call", []dsh.Chunk{dsh.ToolCallDelta{Index: 1, ID: "c"}}, []dsh.Block{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, worth := fold(tc.chunks...).Prefix()
			if !reflect.DeepEqual(got, tc.want) || worth != tc.worth {
				t.Errorf("\n got %+v %v\nwant %+v %v", got, worth, tc.want, tc.worth)
			}
		})
	}
}

func TestUsageAdd(t *testing.T) {
	one, two := int64(1), int64(2)
	got := dsh.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: &one, ReasoningTokens: &one}.
		Add(dsh.Usage{InputTokens: 10, OutputTokens: 20, CacheWriteTokens: &two, ReasoningTokens: &two})
	three := int64(3)
	want := dsh.Usage{InputTokens: 11, OutputTokens: 22, CacheReadTokens: &one, CacheWriteTokens: &two, ReasoningTokens: &three}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if one != 1 || two != 2 {
		t.Error("a summand changed")
	}
}

// A chunk costs no allocation once the block's buffer has grown.
func TestAssemblerAddAllocs(t *testing.T) {
	var a dsh.Assembler
	var c dsh.Chunk = dsh.TextDelta{Text: " word"}
	a.Add(c)
	if got := testing.AllocsPerRun(5000, func() { a.Add(c) }); got != 0 {
		t.Errorf("%g allocations per chunk", got)
	}
}

func BenchmarkAssemblerAdd(b *testing.B) {
	chunks := []dsh.Chunk{dsh.TextDelta{Text: " word"}, dsh.TextDelta{Text: "s"}}
	var a dsh.Assembler
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i&0xfff == 0 {
			a = dsh.Assembler{} // an answer has an end
		}
		a.Add(chunks[i&1])
	}
}
