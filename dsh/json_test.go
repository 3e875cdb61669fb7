package dsh_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// readLines returns the lines of a file in testdata.
func readLines(t testing.TB, name string) [][]byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
}

// readTurn returns the events of sample A of the session format: one turn with
// a tool call, each chunk an event of its own.
func readTurn(t testing.TB) []dsh.Event {
	t.Helper()
	var events []dsh.Event
	for _, line := range readLines(t, "turn.jsonl")[1:] {
		events = append(events, decode(t, string(line)))
	}
	return events
}

func decode(t testing.TB, line string) dsh.Event {
	t.Helper()
	var ev dsh.Event
	if err := ev.UnmarshalJSON([]byte(line)); err != nil {
		t.Fatalf("%v\nin %s", err, line)
	}
	return ev
}

// The documented log survives reading and writing byte for byte.
func TestSampleRoundTrip(t *testing.T) {
	lines := readLines(t, "turn.jsonl")
	var header dsh.SessionHeader
	if err := json.Unmarshal(lines[0], &header); err != nil {
		t.Fatal(err)
	}
	if got := header.AppendJSON(nil); !bytes.Equal(got, lines[0]) {
		t.Errorf("header\n got %s\nwant %s", got, lines[0])
	}
	for i, line := range lines[1:] {
		ev := decode(t, string(line))
		if int(ev.Seq) != i {
			t.Errorf("event %d has seq %d", i, ev.Seq)
		}
		if got := ev.AppendJSON(nil); !bytes.Equal(got, line) {
			t.Errorf("event %d\n got %s\nwant %s", i, got, line)
		}
		if err := dsh.CheckKnown(&ev); err != nil {
			t.Error(err)
		}
	}
}

// Lines that are written exactly as they were read, each for one detail.
func TestEventRoundTrip(t *testing.T) {
	for name, line := range map[string]string{
		"absent name":         `{"type":"assistant/chunk","seq":1,"time":2,"data":{"turn":1,"step":1,"chunk":{"type":"tool-call-delta","index":0,"id":"c","argumentsDelta":"{"}}}`,
		"empty name":          `{"type":"assistant/chunk","seq":1,"time":2,"data":{"turn":1,"step":1,"chunk":{"type":"tool-call-delta","index":0,"id":"","name":"","argumentsDelta":""}}}`,
		"told zero counts":    `{"type":"assistant/chunk","seq":1,"time":2,"data":{"turn":1,"step":1,"chunk":{"type":"usage","usage":{"inputTokens":0,"outputTokens":0,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0}}}}`,
		"replay state":        `{"type":"assistant/chunk","seq":1,"time":2,"data":{"turn":1,"step":1,"chunk":{"type":"finish","reason":{"kind":"stop"},"replayState":{"b":1,"a":[1.50]}}}}`,
		"finish failure":      `{"type":"assistant/chunk","seq":1,"time":2,"data":{"turn":1,"step":1,"chunk":{"type":"finish","reason":{"kind":"error","failure":{"message":"m","code":"RATE_LIMIT","status":429,"providerRetryAfterMs":0,"requestId":"r"}}}}}`,
		"no escapes of HTML":  `{"type":"assistant/chunk","seq":1,"time":2,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"<a&b>\u0001\b\f\n\r\t\"\\/é ` + "\u2028\x7f" + `"}}}`,
		"explicit no sources": `{"type":"assistant/message","seq":1,"time":2,"data":{"turn":1,"step":1,"message":{"role":"assistant","content":[],"source":{"kind":"model","provider":"p","model":"m"},"id":"a"},"interrupted":true},"sourceEventSeqs":[],"surfaceOp":"append"}`,
		"replace":             `{"type":"user/message","seq":9,"time":2,"data":{"content":[{"type":"text","text":"s"}],"source":{"kind":"plugin","plugin":"compaction","form":"notice","n":{"x":[1]}},"role":"user","id":"u"},"sourceEventSeqs":[3,1,2,7],"surfaceOp":{"op":"replace","start":3,"end":7}}`,
		"opaque source":       `{"type":"user/message","seq":9,"time":2,"data":{"content":[{"type":"image","attachment":{"id":"x"}}],"source":{"form":"notice","kind":"subagent-settled","senderSessionId":"c"},"role":"user","id":"u"},"surfaceOp":"append"}`,
		"tool error and meta": `{"type":"tool/result","seq":9,"time":2,"data":{"turn":1,"step":1,"message":{"source":{"kind":"tool","callId":"c"},"content":[{"type":"tool-result","toolCallId":"c","content":[],"isError":true}],"role":"user","id":"u"},"error":{"name":"AbortError","code":"ABORTED"},"meta":null},"surfaceOp":"append"}`,
		"all of a header":     `{"type":"request/header","seq":9,"time":2,"data":{"header":{"config":{"provider":"p","model":"m","reasoningEffort":"low","temperature":0.7,"maxTokens":5,"stop":["a","b"]},"adapterDefaults":{"maxTokens":true,"reasoningEffort":true},"system":"s","tools":[{"name":"a","description":"","parameters":{ "z": 1, "a": 2 }},{"name":"b","description":"d","parameters":true}]},"reason":"change"}}`,
		"least of a header":   `{"type":"request/header","seq":9,"time":2,"data":{"header":{"config":{"provider":"p","model":"m"}},"reason":"resume"}}`,
		"one default":         `{"type":"request/header","seq":9,"time":2,"data":{"header":{"config":{"provider":"p","model":"m","maxTokens":5},"adapterDefaults":{"maxTokens":true}},"reason":"resume"}}`,
		"unknown window":      `{"type":"request/context","seq":9,"time":2,"data":{"provider":"p","model":"m"}}`,
		"cancelled removal":   `{"type":"agent/inbox/spliced","seq":9,"time":-2,"data":{"target":"next-step","start":1,"removedCount":2,"inserted":[],"outcome":"canceled"}}`,
		"aborted by a hook":   `{"type":"turn/end","seq":9,"time":2,"data":{"turn":1,"reason":{"kind":"aborted","reason":{"kind":"hook","reason":"budget"}}}}`,
		"aborted by a user":   `{"type":"turn/end","seq":9,"time":2,"data":{"turn":1,"reason":{"kind":"aborted","reason":{"kind":"user"}}}}`,
		"error":               `{"type":"turn/end","seq":9,"time":2,"data":{"turn":1,"reason":{"kind":"error","error":{"message":"m","code":"UNKNOWN"}}}}`,
		"end seed":            `{"type":"session/end-seed","seq":9,"time":2,"data":{}}`,
		"retry":               `{"type":"llm/retry","seq":9,"time":2,"data":{"retryId":"r","turn":1,"step":1,"provider":"p","mode":"normal","policyKey":"k","retry":1,"maxRetries":0,"delayMs":500,"failure":{"message":"m","code":"SERVER"}}}`,
		"endless retry":       `{"type":"llm/retry","seq":9,"time":2,"data":{"retryId":"r","turn":1,"step":1,"provider":"p","mode":"always","policyKey":"k","retry":1,"delayMs":500,"failure":{"message":"m","code":"SERVER"}}}`,
		"retry started":       `{"type":"llm/retry-started","seq":9,"time":2,"data":{"retryId":"r","turn":1,"step":1,"retry":1}}`,
		"opaque":              `{"type":"todo/write","seq":9,"time":2,"data":{"todos":[], "n": 1.0, "s":"\u0041"}}`,
		"opaque null":         `{"type":"todo/write","seq":9,"time":2,"data":null}`,
		"ignorable":           `{"type":"activity/status","seq":9,"time":2,"data":1,"ignorable":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			ev := decode(t, line)
			if got := string(ev.AppendJSON(nil)); got != line {
				t.Errorf("\n got %s\nwant %s", got, line)
			}
		})
	}
}

// Members of payloads that nobody knows are passed over; how a number is
// written and where white space stands does not matter.
func TestEventReadsOtherWriters(t *testing.T) {
	const want = `{"type":"turn/start","seq":1,"time":1000,"data":{"turn":2}}`
	for _, line := range []string{
		` { "data" : { "trigger" : [ { } , "}" ] , "turn" : 2.0 } , "time" : 1e3 , "seq" : 1 , "type" : "turn\/start" } `,
		`{"type":"x","seq":7,"time":1000,"data":{"turn":2},"seq":1,"type":"turn/start"}`,
	} {
		ev := decode(t, line)
		if got := string(ev.AppendJSON(nil)); got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
		}
	}
	ev := decode(t, `{"type":"llm/retry","seq":9,"time":2,"data":{"retryId":"r","turn":1,"step":1,"provider":"p","mode":"always","policyKey":"k","retry":1,"delayMs":512.25,"failure":{"message":"m","code":"SERVER","providerRetryAfterMs":0.5}}}`)
	r := ev.Data.(dsh.RetryScheduled)
	if r.DelayMs != 513 || *r.Failure.ProviderRetryAfterMs != 1 {
		t.Errorf("fractions became %d and %d", r.DelayMs, *r.Failure.ProviderRetryAfterMs)
	}
}

func TestEventRefusals(t *testing.T) {
	const chunk = `{"type":"assistant/chunk","seq":1,"time":2,"data":{"turn":1,"step":1,"chunk":`
	for line, want := range map[string]string{
		``:     "unexpected end",
		`null`: "must be an object",
		`[]`:   "must be an object",
		`{"type":"turn/start","seq":0,"time":0,"data":{"turn":1}`:                                          "unexpected end",
		`{"seq":0,"time":0,"data":{}}`:                                                                     "type: missing",
		`{"type":"turn/start","time":0,"data":{"turn":1}}`:                                                 "seq: missing",
		`{"type":"turn/start","seq":0,"data":{"turn":1}}`:                                                  "time: missing",
		`{"type":"todo/write","seq":0,"time":0}`:                                                           "data: missing",
		`{"Type":"turn/start","seq":0,"time":0,"data":{"turn":1}}`:                                         "Type: unknown member",
		`{"type":"turn/start","seq":0,"time":0,"data":{"turn":1},"extra":1}`:                               "extra: unknown member",
		`{"type":"text-chunks","seq0":0,"time0":0,"data":{}}`:                                              "seq0: unknown member",
		`{"type":"","seq":0,"time":0,"data":{}}`:                                                           "type: must not be empty",
		`{"type":1,"seq":0,"time":0,"data":{}}`:                                                            "type: must be a string",
		`{"type":"turn/start","seq":-1,"time":0,"data":{"turn":1}}`:                                        "seq: must not be negative",
		`{"type":"turn/start","seq":-0,"time":0,"data":{"turn":1}}`:                                        "seq: -0",
		`{"type":"turn/start","seq":0.5,"time":0,"data":{"turn":1}}`:                                       "seq: must be an integer",
		`{"type":"turn/start","seq":"0","time":0,"data":{"turn":1}}`:                                       "seq: must be an integer",
		`{"type":"turn/start","seq":9007199254740992,"time":0,"data":{"turn":1}}`:                          "seq: must be an integer that is safe",
		`{"type":"turn/start","seq":0,"time":1e300,"data":{"turn":1}}`:                                     "time: must be an integer",
		`{"type":"turn/start","seq":0,"time":0,"data":{}}`:                                                 "data.turn: missing",
		`{"type":"turn/start","seq":0,"time":0,"data":{"turn":null}}`:                                      "data.turn: must be an integer",
		`{"type":"turn/start","seq":0,"time":0,"data":null}`:                                               "data: must be an object",
		`{"type":"todo/write","seq":0,"time":0,"data":{"x":[-0.0]}}`:                                       "data: -0",
		`{"type":"todo/write","seq":0,"time":0,"data":1e999}`:                                              "data: a number without",
		`{"type":"todo/write","seq":0,"time":0,"data":1,"ignorable":false}`:                                "ignorable: must be true",
		`{"type":"user/message","seq":0,"time":0,"data":{},"surfaceOp":"append"}`:                          "data.content: missing",
		`{"type":"todo/write","seq":0,"time":0,"data":{},"surfaceOp":"prepend"}`:                           "surfaceOp: must be",
		`{"type":"todo/write","seq":0,"time":0,"data":{},"surfaceOp":null}`:                                "surfaceOp: must be",
		`{"type":"todo/write","seq":0,"time":0,"data":{},"surfaceOp":{"op":"append","start":1,"end":1}}`:   "surfaceOp.op: must be",
		`{"type":"todo/write","seq":0,"time":0,"data":{},"surfaceOp":{"op":"replace","start":1}}`:          "surfaceOp.end: missing",
		`{"type":"todo/write","seq":0,"time":0,"data":{},"surfaceOp":{"op":"replace","start":1.5}}`:        "surfaceOp.start: must be an integer",
		`{"type":"todo/write","seq":0,"time":0,"data":{},"surfaceOp":{"op":"replace","x":1}}`:              "surfaceOp.x: unknown",
		`{"type":"todo/write","seq":0,"time":0,"data":{},"sourceEventSeqs":1}`:                             "sourceEventSeqs: must be an array",
		`{"type":"todo/write","seq":0,"time":0,"data":{},"sourceEventSeqs":null}`:                          "sourceEventSeqs: must be an array",
		`{"type":"todo/write","seq":0,"time":0,"data":{},"sourceEventSeqs":[1,-2]}`:                        "sourceEventSeqs[1]: must not be negative",
		`{"type":"session/end-seed","seq":0,"time":0,"data":1}`:                                            "data: must be an object",
		`{"type":"turn/end","seq":0,"time":0,"data":{"turn":1,"reason":"completed"}}`:                      "data.reason: must be an object",
		`{"type":"agent/inbox/spliced","seq":0,"time":0,"data":{"target":"next-turn","start":0}}`:          "data.inserted: missing",
		`{"type":"agent/inbox/spliced","seq":0,"time":0,"data":{"target":"a","start":0,"inserted":[{}]}}`:  "data.inserted[0].content: missing",
		`{"type":"agent/inbox/spliced","seq":0,"time":0,"data":{"removedCount":-1}}`:                       "data.removedCount: must not be negative",
		`{"type":"request/header","seq":0,"time":0,"data":{"header":{"config":{"stop":[1]}},"reason":""}}`: "data.header.config.stop[0]: must be a string",
		`{"type":"user/message","seq":0,"time":0,"data":{"content":[{"type":"video"}]}}`:                   `data.content[0].type: unknown block type "video"`,
		`{"type":"user/message","seq":0,"time":0,"data":{"source":{}}}`:                                    "data.source.kind: missing",
		`{"type":"user/message","seq":0,"time":0,"data":{"source":{"kind":"plugin"}}}`:                     "data.source.plugin: missing",
		chunk + `{"type":"text-delta","index":0}}}`:                                                        "data.chunk.text: missing",
		chunk + `{"type":"text-delta","index":0.5,"text":""}}}`:                                            "data.chunk.index: must be an integer",
		chunk + `{"type":"usage","usage":{"inputTokens":1}}}}`:                                             "data.chunk.usage.outputTokens: missing",
		chunk + `{"type":"noise"}}}`:                                                                       `data.chunk.type: unknown chunk type "noise"`,
		chunk + `{"type":"block-end","index":0,"block":{"type":"text"}}}}`:                                 "data.chunk.block.text: missing",
	} {
		ev := dsh.Event{Seq: 42}
		err := ev.UnmarshalJSON([]byte(line))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "dsh: decode event: ") {
			t.Errorf("%s\n got %v\nwant %s", line, err, want)
		}
		if ev.Seq != 42 || ev.Data != nil {
			t.Errorf("%s changed the event to %+v", line, ev)
		}
	}
}

// Whatever a caller puts into a raw member, the line can be read again.
func TestRawStaysReadable(t *testing.T) {
	for raw, want := range map[string]string{
		``:                                       `null`,
		"{\n\t\"a\": [\r\n1]\n}":                 `{"a":[1]}`,
		`{ "a": 1 }`:                             `{ "a": 1 }`,
		`{"a":`:                                  `"{\"a\":"`,
		`[-0, -0.0e5,-1, 0, "-0", 1e999,-1e999]`: `[0, 0,-1, 0, "-0", null,null]`,
		"\"a\xffb\"":                             `"a` + "\uFFFD" + `b"`,
	} {
		ev := dsh.Event{Data: dsh.Opaque{Name: "todo/write", Raw: json.RawMessage(raw)}}
		line := string(ev.AppendJSON(nil))
		if got := strings.TrimSuffix(strings.SplitN(line, `"data":`, 2)[1], "}"); got != want {
			t.Errorf("%q\n got %s\nwant %s", raw, got, want)
		}
		decode(t, line)
	}
}

func TestAppendString(t *testing.T) {
	for s, want := range map[string]string{
		"":                   `""`,
		"a\xff\xfeb\xe2\x82": `"a` + "\uFFFD\uFFFDb\uFFFD\uFFFD" + `"`,
		"\uFFFD":             "\"\uFFFD\"",
		"\x00\x1f\x7f":       `"\u0000\u001f` + "\x7f" + `"`,
		"π\"\\\U0001F600":    `"π\"\\` + "\U0001F600" + `"`,
	} {
		if got := string(dsh.AppendString(nil, s)); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

func TestTemperature(t *testing.T) {
	for f, want := range map[float64]string{
		0.7:                         `,"temperature":0.7`,
		1:                           `,"temperature":1`,
		math.Copysign(0, -1):        `,"temperature":0`,
		1e-7:                        `,"temperature":1e-7`,
		2.5e-300:                    `,"temperature":2.5e-300`,
		1e21:                        `,"temperature":1e+21`,
		math.Inf(1):                 ``,
		math.SmallestNonzeroFloat64: `,"temperature":5e-324`,
	} {
		got, err := dsh.CallConfig{Temperature: &f}.MarshalJSON()
		if err != nil || string(got) != `{"provider":"","model":""`+want+`}` {
			t.Errorf("%g: got %s, %v", f, got, err)
		}
	}
}

// What a plugin adds to its source cannot make it another's.
func TestSourceCannotLie(t *testing.T) {
	for _, tc := range []struct {
		source dsh.Source
		want   string
	}{
		{dsh.PluginSource{Plugin: "p"}, `{"kind":"plugin","plugin":"p"}`},
		{dsh.PluginSource{Plugin: "p", Extra: json.RawMessage(`{}`)}, `{"kind":"plugin","plugin":"p"}`},
		{dsh.PluginSource{Plugin: "p", Extra: json.RawMessage(`[1]`)}, `{"kind":"plugin","plugin":"p"}`},
		{dsh.PluginSource{Plugin: "p", Extra: json.RawMessage(`{"a":`)}, `{"kind":"plugin","plugin":"p"}`},
		{dsh.PluginSource{Plugin: "p", Extra: json.RawMessage(` {"k\u0069nd":"user","b":{"kind":1},"plugin":"q","a":2}`)}, `{"kind":"plugin","plugin":"p","b":{"kind":1},"a":2}`},
		{dsh.OpaqueSource{Name: "coordinator"}, `{"kind":"coordinator"}`},
		{dsh.OpaqueSource{Name: "coordinator", Raw: json.RawMessage(`{"a":1}`)}, `{"kind":"coordinator","a":1}`},
		{dsh.OpaqueSource{Name: "coordinator", Raw: json.RawMessage(`{"a":1,"kind":"user"}`)}, `{"kind":"coordinator","a":1}`},
		{dsh.OpaqueSource{Name: "coordinator", Raw: json.RawMessage(`{"a":1,"kind":"coordinator"}`)}, `{"a":1,"kind":"coordinator"}`},
	} {
		got := dsh.AppendSource(nil, tc.source)
		if string(got) != tc.want {
			t.Errorf("%+v\n got %s\nwant %s", tc.source, got, tc.want)
		}
		back, err := dsh.DecodeSource(got)
		if err != nil || back.Kind() != tc.source.Kind() {
			t.Errorf("%s reads as %v, %v", got, back, err)
		}
	}
}

// What was read does not share memory with the line, which may be a buffer.
func TestDecodeCopies(t *testing.T) {
	for i, line := range readLines(t, "turn.jsonl")[1:] {
		want := bytes.Clone(line)
		ev := decode(t, string(line))
		buf := bytes.Clone(line)
		if err := ev.UnmarshalJSON(buf); err != nil {
			t.Fatal(err)
		}
		for k := range buf {
			buf[k] = 'x'
		}
		if got := ev.AppendJSON(nil); !bytes.Equal(got, want) {
			t.Errorf("event %d changed to %s", i, got)
		}
	}
}

func TestMessageDefaults(t *testing.T) {
	m := dsh.Message{Role: dsh.RoleUser}
	const want = `{"content":[],"source":{"kind":"user"},"role":"user"}`
	if got := string(m.AppendJSON(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var back dsh.Message
	if err := json.Unmarshal([]byte(want), &back); err != nil {
		t.Fatal(err)
	}
	if back.Content == nil || back.ID != "" || back.Source != (dsh.UserSource{}) {
		t.Errorf("read as %+v", back)
	}
	b, err := dsh.DecodeBlock(json.RawMessage(`{"type":"tool-result","toolCallId":"c","content":[]}`))
	if err != nil || b.(dsh.ToolResult).IsError {
		t.Errorf("absent isError reads as %+v, %v", b, err)
	}
	if got := string(dsh.AppendBlock(nil, dsh.Image{})); got != `{"type":"image"}` {
		t.Errorf("empty image is %s", got)
	}
}

// Every type has the same form inside encoding/json as on its own.
func TestMarshalers(t *testing.T) {
	n := int64(3)
	temperature := 0.5
	for _, v := range []any{
		&dsh.Usage{InputTokens: 1, OutputTokens: 2, ReasoningTokens: &n},
		&dsh.Failure{Message: "m", Code: dsh.CodeServer, Status: 500, ProviderRetryAfterMs: &n, RequestID: "r"},
		&dsh.CallConfig{Provider: "p", Model: "m", Temperature: &temperature, Stop: []string{"x"}},
		&dsh.Header{Config: dsh.CallConfig{Provider: "p"}, Tools: []dsh.ToolSchema{{Name: "t", Parameters: json.RawMessage(`{}`)}}},
		&dsh.ToolSchema{Name: "t", Description: "d", Parameters: json.RawMessage(`{"b":1,"a":2}`)},
		&dsh.Ending{Kind: dsh.EndAborted, Cause: dsh.Cause{Kind: dsh.CauseHook, Reason: "r"}},
		&dsh.Cause{Kind: "legacy"},
		&dsh.Message{ID: "i", Role: dsh.RoleUser, Content: []dsh.Block{dsh.Text{Text: "t"}}, Source: dsh.UserSource{}},
		&dsh.SessionHeader{ID: "s", CreatedAt: 1, CWD: "/", ParentSession: "p", HasSeed: true, Origin: "subagent", DelegationDepth: 1, AgentPreset: "a"},
		&dsh.Event{Seq: 1, Time: 2, Data: dsh.TurnStart{Turn: 1}},
		dsh.Cite(1, 2, 3, 0),
		dsh.Cite(),
	} {
		alone, err := v.(json.Marshaler).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		inside, err := json.Marshal([]any{reflect.ValueOf(v).Elem().Interface()})
		if err != nil || string(inside) != "["+string(alone)+"]" {
			t.Errorf("%T: %s alone, %s inside, %v", v, alone, inside, err)
		}
		back := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		if err := json.Unmarshal(alone, back); err != nil || !reflect.DeepEqual(back, v) {
			t.Errorf("%s\n got %+v, %v\nwant %+v", alone, back, err, v)
		}
	}
}

func TestChunkRunHasNoJSON(t *testing.T) {
	ev := dsh.Event{Data: dsh.ChunkRun{Chunks: []dsh.Chunk{dsh.TextDelta{}}}}
	if _, err := ev.MarshalJSON(); err == nil {
		t.Error("a packed event was written as one")
	}
	defer func() {
		if recover() == nil {
			t.Error("AppendJSON wrote a packed event as one")
		}
	}()
	ev.AppendJSON(nil)
}

func TestSessionHeaderRefusals(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"session","version":3}`:                         "newer",
		`{"version":-1,"id":7}`:                                  "older",
		`{"type":"session","id":"s"}`:                            "version: missing",
		`{"type":"session","version":"0"}`:                       "version: must be",
		`{"type":"turn/start","version":0}`:                      "type: must be",
		`{"type":"session","version":0,"id":"s","createdAt":1}`:  "delegationDepth: missing",
		`{"type":"session","version":0,"id":"s","createdAt":-1}`: "createdAt: must not be negative",
		`{"type":"session","version":0,"id":"s","createdAt":1,"delegationDepth":0,"origin":"main"}`:              "origin: must be",
		`{"type":"session","version":0,"id":"s","createdAt":1,"delegationDepth":0,"sandboxMode":"off"}`:          "sandboxMode: is a retired",
		`{"type":"session","version":0,"id":"s","createdAt":1,"delegationDepth":0,"approvalPolicy":{"kind":""}}`: "approvalPolicy: is a retired",
		`{"type":"session","version":0,"id":"s","createdAt":1,"delegationDepth":0,"seedLength":-1}`:              "seedLength: must not be negative",
	} {
		var h dsh.SessionHeader
		err := json.Unmarshal([]byte(line), &h)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", line, err, want)
		}
		if foreign := want == "newer" || want == "older"; errors.Is(err, dsh.ErrVersion) != foreign {
			t.Errorf("%s: is ErrVersion: %v", line, !foreign)
		}
	}
}

func TestCheckKnown(t *testing.T) {
	for line, ok := range map[string]bool{
		`{"type":"web/deepseek-search-llm-request","seq":0,"time":0,"data":{}}`:                          true,
		`{"type":"activity/status","seq":0,"time":0,"data":{}}`:                                          false,
		`{"type":"activity/status","seq":0,"time":0,"data":{},"ignorable":true}`:                         true,
		`{"type":"mode/set","seq":0,"time":0,"data":{},"ignorable":true}`:                                false,
		`{"type":"request/header-delta","seq":0,"time":0,"data":{}}`:                                     false,
		`{"type":"request/header","seq":0,"time":0,"data":{"header":{"config":{}},"reason":"fallback"}}`: false,
		`{"type":"request/header","seq":0,"time":0,"data":{"header":{"config":{}},"reason":"change"}}`:   true,
		`{"type":"steering/message","seq":0,"time":0,"data":{}}`:                                         false,
	} {
		ev := decode(t, line)
		err := dsh.CheckKnown(&ev)
		if (err == nil) != ok {
			t.Errorf("%s: %v", line, err)
		}
		if err != nil && (!errors.Is(err, dsh.ErrUnknownEvent) || !strings.Contains(err.Error(), ev.Type())) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
