package replay_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/replay"
)

// recorded is an agent of a recorded trace.
type recorded struct {
	Key    string            `json:"key"`
	Origin string            `json:"origin"`
	Header json.RawMessage   `json:"header"`
	Events []json.RawMessage `json:"events"`

	FirstLiveSeq *dsh.Seq `json:"firstLiveSeq"`
}

// log returns the agent's log. Traces leave out what differs between runs.
func (r *recorded) log(t *testing.T) (h dsh.SessionHeader, events []dsh.Event) {
	t.Helper()
	var line map[string]any
	if err := json.Unmarshal(r.Header, &line); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]any{"type": "session", "createdAt": 0, "delegationDepth": 0, "version": 0} {
		if _, has := line[name]; !has {
			line[name] = value
		}
	}
	raw, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		t.Fatalf("%s: header %s: %v", r.Key, raw, err)
	}
	if r.Origin == "fork" && !h.HasSeed && r.FirstLiveSeq != nil {
		h.SeedLength = *r.FirstLiveSeq
	}
	for _, raw := range r.Events {
		var event map[string]json.RawMessage
		if err := json.Unmarshal(raw, &event); err != nil {
			t.Fatal(err)
		}
		event["time"] = json.RawMessage("0")
		line, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		var ev dsh.Event
		if err := json.Unmarshal(line, &ev); err != nil {
			t.Fatalf("%s: event %s: %v", r.Key, line, err)
		}
		events = append(events, ev)
	}
	return h, events
}

// strange are the findings of logs that were written by hand, and of one where
// the reference breaks a rule.
var strange = map[string][]replay.Kind{
	// Hand-written logs in the middle of a session's life.
	"repair-literal-log.json a1": {
		replay.KindBracket, replay.KindHeader, replay.KindCitation, replay.KindAnswer,
	},
	"resume-literal-balanced.json a1": {replay.KindBracket},
	// A splice that never fitted.
	"resume-bad-inbox.json a1": {replay.KindInbox},
	// A settled message that quotes an answer's tool call in a user message.
	"continuable-drain.json a1": {replay.KindRequest},
}

// What the reference loop logged replays without a finding, and yields the
// requests that its adapter received.
func TestRecordedLogs(t *testing.T) {
	const dir = "../internal/conformance/testdata/"
	logs, requests := 0, 0
	for _, pattern := range []string{"traces/*.json", "subagents/traces/*.json"} {
		files, err := filepath.Glob(dir + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%d traces in %s: %v", len(files), pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var trace recording
			if err := json.Unmarshal(data, &trace); err != nil {
				t.Fatal(err)
			}
			for _, a := range trace.Agents {
				h, events := a.log(t)
				report := replay.Run(h, events)
				name := filepath.Base(file) + " " + a.Key
				expect(t, name, report)
				logs++
				requests += trace.received(t, name, h, report)
			}
		}
	}
	t.Logf("%d logs, %d requests as they were received", logs, requests)
	if logs < 300 || requests < 500 {
		t.Error("that is too few")
	}
}

func expect(t *testing.T, name string, report *replay.Report) {
	t.Helper()
	var kinds []replay.Kind
	for _, found := range report.Findings {
		kinds = append(kinds, found.Kind)
	}
	if want := strange[name]; !slices.Equal(kinds, want) {
		t.Errorf("%s: findings %v, want %v", name, report.Findings, want)
	}
}

// recording is a trace, as far as it matters here.
type recording struct {
	Agents   []recorded `json:"agents"`
	Requests []struct {
		Session  string            `json:"session"`
		AfterSeq dsh.Seq           `json:"afterSeq"`
		Purpose  string            `json:"purpose"`
		Provider string            `json:"provider"`
		Model    string            `json:"model"`
		System   *string           `json:"system"`
		Tools    []string          `json:"tools"`
		Messages []json.RawMessage `json:"messages"`
	} `json:"requests"`
}

// received compares what was derived with what the adapter was handed by the
// session, and returns how many requests that were. A request that left no
// trace in the log is not known of.
func (r *recording) received(t *testing.T, name string, h dsh.SessionHeader, report *replay.Report) (n int) {
	t.Helper()
	for _, q := range report.Requests {
		if q.Seq < h.SeedLength {
			continue // of the session that this one was forked from
		}
		found := -1 // nothing but pending input comes between it and the first chunk
		for i, sent := range r.Requests {
			if sent.Session == string(h.ID) && sent.Purpose == "" && sent.AfterSeq <= q.Through+1 {
				found = i
			}
		}
		if found < 0 {
			if !slices.Contains(unsent, name) {
				t.Errorf("%s: request %v through %d was never received", name, q.Pos, q.Through)
			}
			continue
		}
		sent := r.Requests[found]
		n++
		system := ""
		if sent.System != nil {
			system = *sent.System
		}
		var tools []string
		for _, tool := range q.Header.Tools {
			tools = append(tools, tool.Name)
		}
		if q.Header.System != system || !slices.Equal(tools, sent.Tools) ||
			q.Header.Config.Provider != sent.Provider || q.Header.Config.Model != sent.Model {
			t.Errorf("%s: request %v: header %+v, received %+v", name, q.Pos, q.Header, sent)
		}
		if !sameMessages(t, q.Messages, sent.Messages) {
			t.Errorf("%s: request %v: %d messages, received %s", name, q.Pos, len(q.Messages), sent.Messages)
		}
	}
	return n
}

// unsent are the logs with an attempt that no adapter was there for, or of which
// nobody knows any more.
var unsent = []string{"no-adapter.json a1", "repair-literal-log.json a1"}

func sameMessages(t *testing.T, messages []*dsh.Message, received []json.RawMessage) bool {
	t.Helper()
	return slices.EqualFunc(messages, received, func(m *dsh.Message, raw json.RawMessage) bool {
		var a, b any
		if err := errors.Join(json.Unmarshal(m.AppendJSON(nil), &a), json.Unmarshal(raw, &b)); err != nil {
			t.Fatal(err)
		}
		return reflect.DeepEqual(a, b)
	})
}
