package dsh_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

func userEvent(seq dsh.Seq, text string) dsh.Event {
	m := dsh.UserText(text)
	m.ID = dsh.MessageID(text)
	return dsh.Event{Seq: seq, Surface: dsh.Append, Data: dsh.UserMessage{Message: m}}
}

func assistantEvent(seq dsh.Seq, content ...dsh.Block) dsh.Event {
	return dsh.Event{Seq: seq, Surface: dsh.Append, Data: dsh.AssistantMessage{
		Turn: 1, Step: 1,
		Message: &dsh.Message{ID: "answer", Role: dsh.RoleAssistant, Content: content, Source: dsh.ModelSource{}},
	}}
}

func resultEvent(seq dsh.Seq, id dsh.CallID, text string) dsh.Event {
	return dsh.Event{Seq: seq, Surface: dsh.Append, Data: dsh.ToolFinished{
		Turn: 1, Step: 1,
		Message: &dsh.Message{
			ID: "result-" + dsh.MessageID(id), Role: dsh.RoleUser, Source: dsh.ToolSource{CallID: id},
			Content: []dsh.Block{dsh.ToolResult{CallID: id, Content: []dsh.Block{dsh.Text{Text: text}}}},
		},
	}}
}

// replacing makes ev replace the nodes from start to end, citing sources.
func replacing(ev dsh.Event, start, end dsh.Seq, sources ...dsh.Seq) dsh.Event {
	ev.Surface = dsh.Replace(start, end)
	ev.Sources = dsh.Cite(sources...)
	return ev
}

func citing(ev dsh.Event, sources *dsh.Sources) dsh.Event {
	ev.Sources = sources
	return ev
}

// surface returns a history with a user message at 1, an answer with calls at
// 3, its results at 5 and 6, an empty answer at 7 and a user message at 8.
func surface(t *testing.T) *dsh.History {
	t.Helper()
	var h dsh.History
	for _, ev := range []dsh.Event{
		{Seq: 0, Data: dsh.TurnStart{Turn: 1}},
		userEvent(1, "ask"),
		{Seq: 2, Data: dsh.StepStart{Turn: 1, Step: 1}},
		assistantEvent(3, dsh.ToolCall{ID: "a"}, dsh.ToolCall{ID: "b"}),
		{Seq: 4, Data: dsh.Opaque{Name: "todo/write"}},
		resultEvent(5, "a", "one"),
		resultEvent(6, "b", "two"),
		assistantEvent(7),
		userEvent(8, "more"),
	} {
		apply(t, &h, ev)
	}
	return &h
}

func apply(t *testing.T, h *dsh.History, ev dsh.Event) {
	t.Helper()
	if err := h.Apply(&ev); err != nil {
		t.Fatal(err)
	}
}

func texts(messages []*dsh.Message) string {
	var all []string
	for _, m := range messages {
		content := m.Content
		if r, ok := content[0].(dsh.ToolResult); ok {
			content = r.Content
		}
		if calls := dsh.CallsOf(content); calls != nil {
			all = append(all, "calls")
			continue
		}
		all = append(all, dsh.TextOf(content))
	}
	return strings.Join(all, " ")
}

func TestHistoryAppend(t *testing.T) {
	h := surface(t)
	if got, want := h.Surface(), []dsh.Seq{1, 3, 5, 6, 7, 8}; !slices.Equal(got, want) {
		t.Errorf("surface %v, want %v", got, want)
	}
	if got, want := texts(h.Messages()), "ask calls one two more"; got != want {
		t.Errorf("messages %q, want %q", got, want)
	}
	if h.Generation() != 0 {
		t.Error("an append counts as a replacement")
	}
}

func TestHistoryReplace(t *testing.T) {
	h := surface(t)
	apply(t, h, replacing(resultEvent(9, "a", "short"), 5, 5, 5))
	if got, want := texts(h.Messages()), "ask calls short two more"; got != want {
		t.Errorf("after a prune %q, want %q", got, want)
	}
	apply(t, h, replacing(userEvent(10, "summary"), 1, 7, 1, 3, 9, 6, 7))
	if got, want := texts(h.Messages()), "summary more"; got != want {
		t.Errorf("after a compaction %q, want %q", got, want)
	}
	// Positions count, not numbers: 10 stands before 8.
	apply(t, h, replacing(userEvent(11, "all"), 10, 8, 8, 10))
	if got := h.Surface(); !slices.Equal(got, []dsh.Seq{11}) || h.Generation() != 3 {
		t.Errorf("surface %v in generation %d", got, h.Generation())
	}
}

func TestHistoryRefusals(t *testing.T) {
	for _, tc := range []struct {
		name string
		ev   dsh.Event
		want string
	}{
		{"surfaceOp elsewhere", dsh.Event{Seq: 9, Surface: dsh.Append, Data: dsh.TurnEnd{}}, "may not have a surfaceOp"},
		{"sources elsewhere", dsh.Event{Seq: 9, Sources: dsh.Cite(1), Data: dsh.TurnEnd{}}, "may not have sourceEventSeqs"},
		{"empty sources elsewhere", dsh.Event{Seq: 9, Sources: dsh.Cite(), Data: dsh.TurnEnd{}}, "may not have sourceEventSeqs"},
		{"no surfaceOp", dsh.Event{Seq: 9, Data: dsh.UserMessage{Message: dsh.UserText("")}}, "needs a surfaceOp"},
		{"user citing nothing", citing(userEvent(9, "x"), dsh.Cite()), "empty list"},
		{"result citing nothing", citing(resultEvent(9, "a", "x"), dsh.Cite()), "empty list"},
		{"citing itself", citing(userEvent(9, "x"), dsh.Cite(8, 9)), "not earlier"},
		{"citing the future", citing(userEvent(9, "x"), dsh.Cite(12)), "not earlier"},
		{"citing a negative", citing(userEvent(9, "x"), dsh.Cite(-1)), "not earlier"},
		{"citing twice", citing(userEvent(9, "x"), dsh.Cite(3, 5, 3)), "cites 3 twice"},
		{"citing in overlapping runs", citing(userEvent(9, "x"), dsh.Cite().With(4, 6).With(2, 5)), "cites 4 twice"},
		{"range that is not there", replacing(userEvent(9, "x"), 4, 5, 4, 5), "4 is not on the surface"},
		{"end that is not there", replacing(userEvent(9, "x"), 3, 4, 3, 4), "4 is not on the surface"},
		{"reversed range", replacing(userEvent(9, "x"), 5, 3, 3, 5), "reversed"},
		{"uncited node", replacing(userEvent(9, "x"), 3, 6, 3, 6), "replaces 5 without citing it"},
		{"result for two", replacing(resultEvent(9, "a", "x"), 5, 6, 5, 6), "exactly one tool/result"},
		{"result for a user", replacing(resultEvent(9, "a", "x"), 1, 1, 1), "exactly one tool/result"},
		{"result of another call", replacing(resultEvent(9, "b", "x"), 5, 5, 5), "only the content"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := surface(t)
			before, seqs := h.Messages(), h.Surface()
			err := h.Check(&tc.ev)
			if !errors.Is(err, dsh.ErrSurface) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if again := h.Apply(&tc.ev); again == nil || again.Error() != err.Error() {
				t.Errorf("Apply says %v, Check %v", again, err)
			}
			if !slices.Equal(h.Messages(), before) || !slices.Equal(h.Surface(), seqs) {
				t.Error("a refused event changed the history")
			}
		})
	}
}

// An error result stays one when it is shortened.
func TestHistoryReplaceKeepsError(t *testing.T) {
	h := surface(t)
	ev := replacing(resultEvent(9, "a", "x"), 5, 5, 5)
	m := *ev.Data.(dsh.ToolFinished).Message
	m.Content = []dsh.Block{dsh.ToolResult{CallID: "a", IsError: true}}
	ev.Data = dsh.ToolFinished{Message: &m}
	if err := h.Check(&ev); !errors.Is(err, dsh.ErrSurface) {
		t.Errorf("got %v", err)
	}
}

func TestHistoryAnswerMayCiteNothing(t *testing.T) {
	h := surface(t)
	apply(t, h, citing(assistantEvent(9, dsh.Text{Text: "x"}), dsh.Cite()))
}

// A snapshot stays what it was, whatever is folded later, and taking one costs
// nothing.
func TestHistorySnapshots(t *testing.T) {
	h := surface(t)
	type snapshot struct{ held, want []*dsh.Message }
	var all []snapshot
	take := func() {
		held := h.Messages()
		all = append(all, snapshot{held, slices.Clone(held)})
	}
	take()
	seq := dsh.Seq(9)
	for range 40 {
		apply(t, h, userEvent(seq, "more"))
		seq++
		take()
	}
	apply(t, h, replacing(userEvent(seq, "summary"), 1, 7, 1, 3, 5, 6, 7))
	take()
	apply(t, h, userEvent(seq+1, "after"))
	take()
	for i, s := range all {
		if !slices.Equal(s.held, s.want) {
			t.Errorf("snapshot %d changed", i)
		}
		if i > 0 && reflect.DeepEqual(s.held, all[i-1].held) {
			t.Errorf("snapshot %d equals the one before", i)
		}
	}
	if got := append(h.Messages(), nil); len(h.Messages()) == len(got) {
		t.Error("appending to a snapshot reached the history")
	}
	if got := testing.AllocsPerRun(100, func() { _ = h.Messages() }); got != 0 {
		t.Errorf("%g allocations per snapshot", got)
	}
}

func TestHistoryLastUser(t *testing.T) {
	h := surface(t)
	is := func(text string) func(*dsh.Message) bool {
		return func(m *dsh.Message) bool { return text == "" || dsh.TextOf(m.Content) == text }
	}
	if m, seq, ok := h.LastUser(is("")); !ok || seq != 8 || m.ID != "more" {
		t.Errorf("got %v %d %v", m, seq, ok)
	}
	if _, seq, ok := h.LastUser(is("ask")); !ok || seq != 1 {
		t.Errorf("got %d %v", seq, ok)
	}
	if m, _, ok := h.LastUser(is("never")); ok || m != nil {
		t.Errorf("got %v %v", m, ok)
	}
}

func TestHeaderFold(t *testing.T) {
	var f dsh.HeaderFold
	for _, ev := range readTurn(t) {
		f.Apply(&ev)
	}
	if f.Header == nil || f.Header.System != "You answer briefly." || f.Context.ContextWindow != 1000000 {
		t.Errorf("folded %+v %+v", f.Header, f.Context)
	}
}

func TestHeaderEqual(t *testing.T) {
	one, half := 1.0, 0.5
	base := func() *dsh.Header {
		return &dsh.Header{
			Config: dsh.CallConfig{Provider: "p", Model: "m", Temperature: &half, Stop: []string{"x"}},
			System: "s",
			Tools:  []dsh.ToolSchema{{Name: "t", Parameters: []byte(`{}`)}},
		}
	}
	if !base().Equal(base()) {
		t.Error("equal headers differ")
	}
	for name, change := range map[string]func(*dsh.Header){
		"provider":       func(h *dsh.Header) { h.Config.Provider = "q" },
		"temperature":    func(h *dsh.Header) { h.Config.Temperature = &one },
		"no temperature": func(h *dsh.Header) { h.Config.Temperature = nil },
		"stop":           func(h *dsh.Header) { h.Config.Stop = nil },
		"max tokens":     func(h *dsh.Header) { h.Config.MaxTokens = 1 },
		"defaults":       func(h *dsh.Header) { h.AdapterDefaults.MaxTokens = true },
		"system":         func(h *dsh.Header) { h.System = "" },
		"parameters":     func(h *dsh.Header) { h.Tools[0].Parameters = []byte(`{ }`) },
		"tools":          func(h *dsh.Header) { h.Tools = nil },
	} {
		h := base()
		change(h)
		if h.Equal(base()) || base().Equal(h) {
			t.Errorf("%s makes no difference", name)
		}
	}
	c := dsh.CallConfig{Model: "m", MaxTokens: 5, ReasoningEffort: "low"}
	d := dsh.AdapterDefaults{MaxTokens: true, ReasoningEffort: true}
	if got := d.Strip(c); !got.Equal(dsh.CallConfig{Model: "m"}) {
		t.Errorf("stripped to %+v", got)
	}
	if got := (dsh.AdapterDefaults{}).Strip(c); !got.Equal(c) {
		t.Errorf("stripped to %+v", got)
	}
}
