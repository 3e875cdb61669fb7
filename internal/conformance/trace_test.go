package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// Every recorded trace, taken apart into what a driver would record and put
// together again, is itself: also when identifiers were others.
func TestTraceOfARecording(t *testing.T) {
	for _, c := range load(t) {
		got, err := rerecorded(t, c).Trace(c.Scenario)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		got["childEntriesLeft"] = c.Trace["childEntriesLeft"] // nothing of the log
		got["lifecycle"] = c.Trace["lifecycle"]
		got["actions"] = c.Trace["actions"]
		for _, d := range Compare(got, c.Trace, false) {
			t.Errorf("%s: %v", c.Name, d)
		}
	}
}

// rerecorded records what a trace shows, with other identifiers.
func rerecorded(t *testing.T, c Case) *Recording {
	t.Helper()
	literal := c.literalIDs()
	foreign := func(id string) string {
		if literal[id] {
			return id
		}
		return "id-of-" + id
	}
	r := new(Recording)
	records := make(map[string]*AgentRecord)
	events := make(map[string][]dsh.Event)
	for _, a := range agentsOf(c.Trace) {
		key := a["key"].(string)
		record := r.Agent(key, a["origin"].(string))
		record.Header = decodeAs[dsh.SessionHeader](t, header(a["header"]))
		records[key] = record
		for _, e := range a["events"].([]any) {
			event := clone(with(e, "time", 1.0)).(object)
			rename := func(m any) {
				if m, ok := m.(object); ok {
					if id, ok := m["id"].(string); ok {
						m["id"] = foreign(id)
					}
				}
			}
			data := event["data"].(object)
			if event["type"] == dsh.TypeUserMessage {
				rename(data)
			}
			rename(data["message"])
			inserted, _ := data["inserted"].([]any)
			for _, m := range inserted {
				rename(m)
			}
			if id, ok := data["retryId"].(string); ok {
				data["retryId"] = "retry-of-" + id
			}
			events[key] = append(events[key], decodeAs[dsh.Event](t, event))
		}
		play(t, record, a, events[key], foreign)
	}
	for _, v := range c.Trace["requests"].([]any) {
		req := v.(object)
		session := dsh.SessionID(req["session"].(string))
		sent := &dsh.Request{Session: session, Header: &dsh.Header{Config: decodeAs[dsh.CallConfig](t, req)}}
		sent.Header.System, _ = req["system"].(string)
		for _, name := range req["tools"].([]any) {
			sent.Header.Tools = append(sent.Header.Tools, dsh.ToolSchema{Name: name.(string)})
		}
		for _, m := range req["messages"].([]any) {
			message := decodeAs[dsh.Message](t, m)
			message.ID = dsh.MessageID(foreign(string(message.ID)))
			sent.Messages = append(sent.Messages, &message)
		}
		r.requests = append(r.requests, request{
			session: session, sent: sent, afterSeq: dsh.Seq(req["afterSeq"].(float64)),
		})
	}
	r.checkpoints = c.Trace["checkpoints"].([]any)
	r.left = int(c.Trace["modelEntriesLeft"].(float64))
	return r
}

// play interleaves an agent's events with what happened between them.
func play(t *testing.T, record *AgentRecord, a object, events []dsh.Event, foreign func(string) string) {
	t.Helper()
	live, seams := a["live"].([]any), a["seams"].([]any)
	firstLive, seeded := a["firstLiveSeq"].(float64)
	for n := 0; ; n++ {
		if seeded && float64(n) == firstLive {
			record.Seeded()
		}
		for len(live) > 0 && live[0].(object)["afterSeq"] == float64(n) {
			record.Noticed(notice(live[0].(object), foreign))
			live = live[1:]
		}
		for len(seams) > 0 && seams[0].(object)["afterSeq"] == float64(n) {
			fields := clone(seams[0]).(object)
			name := fields["seam"].(string)
			delete(fields, "seam")
			delete(fields, "afterSeq")
			messages, _ := fields["messages"].([]any)
			for i := range messages {
				messages[i] = foreign(messages[i].(string))
			}
			record.Called(name, fields)
			seams = seams[1:]
		}
		if n == len(events) {
			break
		}
		record.Logged(events[n])
	}
	if len(live)+len(seams) > 0 {
		t.Errorf("%s: %d notices and %d calls are out of order", record.Key, len(live), len(seams))
	}
}

func header(recorded any) object {
	h := object{"type": "session", "createdAt": 1.0, "delegationDepth": 0.0}
	maps.Copy(h, recorded.(object))
	return h
}

func notice(live object, foreign func(string) string) hook.Notice {
	text := func(name string) string { s, _ := live[name].(string); return s }
	number := func(name string) int { n, _ := live[name].(float64); return int(n) }
	message := dsh.UserText(text("text"))
	message.ID = dsh.MessageID(foreign(text("message")))
	switch live["type"] {
	case "agent/created":
		return hook.Created{}
	case "agent/session-start":
		return hook.SessionStarted{Source: hook.Source(text("source"))}
	case "agent/inbox/inserted":
		return hook.Inserted{Message: message}
	case "agent/inbox/claimed":
		return hook.Claimed{Message: message, Turn: number("turn")}
	case "agent/inbox/discarded":
		return hook.Discarded{Message: message}
	case "agent/status":
		return hook.StatusChanged{Status: hook.Status(text("status"))}
	case "agent/error":
		e := live["error"].(object)
		err := errors.New(e["message"].(string))
		if code, ok := e["code"].(string); ok {
			err = &dsh.Failure{Code: dsh.Code(code), Message: e["message"].(string)}
		}
		return hook.Erred{Turn: number("turn"), Step: number("step"), Err: fmt.Errorf("%w", err)}
	}
	return hook.Disposed{}
}

func with(v any, name string, value any) object {
	out := object{name: value}
	maps.Copy(out, v.(object))
	return out
}

func decodeAs[T any](t *testing.T, v any) T {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out T
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// Nothing is recorded of a lifecycle that another one took over.
func TestFreeze(t *testing.T) {
	r := new(Recording)
	a := r.Agent("a1", "startup")
	a.Logged(dsh.Event{Data: dsh.TurnStart{Turn: 1}})
	a.Freeze()
	a.Logged(dsh.Event{Seq: 1, Data: dsh.TurnEnd{Turn: 1}})
	a.Noticed(hook.Disposed{})
	a.Called("agent/pre-step", nil)
	r.Requested(a, "", &dsh.Request{})
	if len(a.Events()) != 1 || len(a.live) != 0 || len(a.seams) != 0 || r.Requests() != 0 {
		t.Error("recorded after the freeze")
	}
}

// Packed chunks count one by one.
func TestPackedEvents(t *testing.T) {
	r := new(Recording)
	a := r.Agent("a1", "startup")
	a.Logged(dsh.Event{Data: dsh.ChunkRun{Turn: 1, Step: 1, Chunks: []dsh.Chunk{
		dsh.TextDelta{Text: "a"}, dsh.TextDelta{Text: "b"},
	}}})
	r.Checkpoint(0, a)
	trace, err := r.Trace(&Scenario{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(agentsOf(trace)[0]["events"].([]any)); n != 2 {
		t.Errorf("%d events", n)
	}
	if seq := trace["checkpoints"].([]any)[0].(object)["seq"]; seq != 2.0 {
		t.Errorf("checkpoint at %v", seq)
	}
}

func TestNormalize(t *testing.T) {
	message := func(id string) object { return object{"id": id, "role": "user"} }
	trace := object{
		"agents": []any{
			object{
				"key": "a1",
				"events": []any{
					object{"seq": 0.0, "type": "agent/inbox/spliced", "data": object{"inserted": []any{message("s-10"), message("s-1")}}},
					object{"seq": 1.0, "type": "user/message", "data": message("x1")},
					object{"seq": 2.0, "type": "tool/result", "data": object{"message": message("s-2")}},
					object{"seq": 3.0, "type": "llm/retry", "data": object{"retryId": "s/retry"}},
				},
				"inbox": object{"nextTurn": []any{"s-1"}},
				"live":  []any{object{"error": object{"message": "message s-10: s-1 and (s-2), not s-100"}}},
			},
			object{"key": "b", "events": []any{object{"type": "user/message", "data": message("s-3")}}},
		},
		"requests": []any{object{"session": "run-77", "messages": []any{message("s-3")}}},
	}
	Normalize(trace, map[string]bool{"x1": true}, "run-77", "child1")
	text, err := json.Marshal(trace)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`[{"id":"m1","role":"user"},{"id":"m2","role":"user"}]`, `{"id":"x1",`, `"retryId":"r1"`, `["m2"]`,
		`message m1: m2 and (m3), not s-100`, `"session":"child1"`, `"messages":[{"id":"m4"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
}

func TestErrorNames(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("x"), `{"message":"x","name":"Error"}`},
		{&dsh.Failure{Code: dsh.CodeServer, Message: "x"}, `{"code":"SERVER","message":"x","name":"LlmError"}`},
		{forkError{}, `{"code":"OPEN_TURN","message":"x","name":"SessionForkError"}`},
	} {
		if got := show(errorJSON(c.err)); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

type forkError struct{}

func (forkError) Error() string               { return "x" }
func (forkError) TraceName() (string, string) { return "SessionForkError", "OPEN_TURN" }
