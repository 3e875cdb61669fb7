package retry

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

func tried(t *testing.T, o Options, f hook.FailedRequest) (again bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f.Agent = &log{}
		var err error
		if again, err = New(o).RequestError(t.Context(), f, no); err != nil {
			t.Fatal(err)
		}
	})
	return again
}

// The three levels, by what was streamed and by how the stream ended.
func TestTruncatedLevels(t *testing.T) {
	content := map[string][]dsh.Block{
		"nothing":       nil,
		"reasoning":     {dsh.Reasoning{Text: "r"}},
		"blank":         {dsh.Text{Text: " \n"}},
		"text":          {dsh.Reasoning{Text: "r"}, dsh.Text{Text: "a"}},
		"call":          {dsh.ToolCall{ID: "c", Arguments: `{"p":`}},
		"text and call": {dsh.Text{Text: "a"}, dsh.ToolCall{ID: "c"}},
	}
	closed := &dsh.Failure{Code: dsh.CodeTransport, Cause: fmt.Errorf("x: %w", dsh.ErrStreamClosed)}
	broken := &dsh.Failure{Code: dsh.CodeTransport}
	stall := &dsh.Failure{Code: dsh.CodeTimeout}
	never := func(string) bool { return false }
	always := func(string) bool { return true }
	for _, tt := range []struct {
		level   Truncated
		failure *dsh.Failure
		want    func(content string) bool
	}{
		{TruncatedNever, closed, never},
		{TruncatedNever, broken, func(c string) bool { return c == "nothing" }},
		{TruncatedNever, stall, always},
		{"", closed, func(c string) bool { return c != "text" }},
		{"", broken, always},
		{TruncatedUnseen, closed, func(c string) bool { return c != "text" }},
		{TruncatedUnseen, broken, always},
		{TruncatedUnseen, stall, always},
		{TruncatedAlways, closed, always},
		{TruncatedAlways, broken, always},
	} {
		for name, blocks := range content {
			got := tried(t, Options{Truncated: tt.level}, hook.FailedRequest{Failure: tt.failure, Content: blocks})
			if got != tt.want(name) {
				t.Errorf("level %q, %s, %v: retried %v", tt.level, name, tt.failure, got)
			}
		}
	}
}

// Empty answers have a budget of their own, which other failures in between do
// not fill again.
func TestEmptyAnswersAreCapped(t *testing.T) {
	empty, server := dsh.CodeEmptyResponse, dsh.CodeServer
	for _, tt := range []struct {
		max     int
		earlier []dsh.Code
		want    bool
	}{
		{0, nil, true},
		{0, []dsh.Code{empty}, true},
		{0, []dsh.Code{empty, server, empty}, false},
		{0, []dsh.Code{server, server, empty}, true},
		{-1, nil, false},
		{1, []dsh.Code{empty}, false},
	} {
		f := hook.FailedRequest{Failure: &dsh.Failure{Code: empty}, Earlier: tt.earlier, Pos: dsh.Pos{Attempt: len(tt.earlier)}}
		if got := tried(t, Options{MaxEmpty: tt.max}, f); got != tt.want {
			t.Errorf("at most %d, after %v: retried %v", tt.max, tt.earlier, got)
		}
	}
}

// A policy of other levels has another name in the log.
func TestLevelsAreInTheKey(t *testing.T) {
	keys := map[string]bool{}
	for _, o := range []Options{{}, {Truncated: TruncatedNever}, {Truncated: TruncatedAlways}, {MaxEmpty: 1}} {
		keys[New(o).key] = true
	}
	if len(keys) != 4 || New(Options{Truncated: DefaultTruncated, MaxEmpty: DefaultMaxEmpty}).key != New(Options{}).key {
		t.Errorf("keys %v", keys)
	}
}
