package dsh_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsh-actor/dsh-actor/dsh"
)

func TestRequestSentIsAnEventOfOurs(t *testing.T) {
	req := dsh.Request{
		Header: &dsh.Header{
			Config: dsh.CallConfig{Provider: "p", Model: "m"}, System: "Be brief.",
			Tools: []dsh.ToolSchema{{Name: "t", Description: "d", Parameters: json.RawMessage(`{}`)}},
		},
		Messages: []*dsh.Message{{ID: "m1", Role: dsh.RoleUser, Content: []dsh.Block{dsh.Text{Text: "hello"}}, Source: dsh.UserSource{}}},
	}
	ev := dsh.Event{Seq: 9, Time: 1, Ignorable: true, Data: dsh.RequestSent{
		Turn: 1, Step: 2, Attempt: 3, Through: 8, Messages: 1, Digest: req.Digest(),
	}}
	// Computed by hand with sha256sum: a digest in a log stays right for ever.
	const line = `{"type":"dsh-actor/request","seq":9,"time":1,"data":{"turn":1,"step":2,"attempt":3,"through":8,"messages":1,"digest":{` +
		`"config":"sha256:22092552f8404ee4ccd0a5b7892abedfb86a0fb9bb4a3401b08015987e43a9ce",` +
		`"system":"sha256:fecef222d7732bb717f79edfbfe005707890d72608deefc4dd8171a5980dd5d0",` +
		`"tools":"sha256:ec689db58b5940f4d16d01c0c68029492bbd494000e6f4376a4c8f0f9ccf147a",` +
		`"messages":"sha256:a392fbd096f130b7baffebca567e2cb820e6cc67dbdcebfbda21bce1ecde0eed"}},"ignorable":true}`
	if got := string(ev.AppendJSON(nil)); got != line {
		t.Errorf("written\n%s, want\n%s", got, line)
	}
	var back dsh.Event
	if err := json.Unmarshal([]byte(line), &back); err != nil || !reflect.DeepEqual(back, ev) {
		t.Errorf("read %+v (%v)", back, err)
	}
	if err := dsh.CheckKnown(&back); err != nil {
		t.Error(err)
	}
	if back.Ignorable = false; dsh.CheckKnown(&back) == nil {
		t.Error("an event of ours that must not be ignored is taken for the format's")
	}
	for _, bad := range []string{`"through":8`, `"messages":1`} {
		if err := json.Unmarshal([]byte(strings.Replace(line, bad, bad[:len(bad)-1]+"-1", 1)), &back); err == nil {
			t.Errorf("a negative %s is taken", bad)
		}
	}
}

// What was read from a log has the digests of what was written.
func TestDigestProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		header := drawHeader(t)
		header.Config.Parameters = dsh.Parameters{TopP: rapid.Ptr(rapid.Float64(), true).Draw(t, "top"), Body: anyRaw.Draw(t, "body")}
		req := dsh.Request{Header: header}
		for range rapid.IntRange(0, 4).Draw(t, "messages") {
			req.Messages = append(req.Messages, drawMessage(t))
		}
		back := dsh.Request{Header: new(dsh.Header)}
		reread(t, header, back.Header)
		reread(t, header.Config.Parameters, &back.Header.Config.Parameters)
		var chain dsh.MessageChain
		for i, m := range req.Messages {
			read := new(dsh.Message)
			reread(t, m, read)
			back.Messages = append(back.Messages, read)
			chain.Add(read)
			if part := (&dsh.Request{Header: header, Messages: req.Messages[:i+1]}).Digest(); part.Messages != chain.Digest(i+1) {
				t.Fatalf("the first %d messages: %s in a chain of %d, %s alone", i+1, chain.Digest(i+1), chain.Len(), part.Messages)
			}
		}
		if got, want := back.Digest(), req.Digest(); got != want {
			t.Fatalf("read back %+v, written %+v", got, want)
		}
	})
}

func reread(t *rapid.T, from json.Marshaler, into any) {
	t.Helper()
	raw, err := from.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
}

// Every part of a request has a digest that changes with it, and with it alone.
func TestDigestOfParts(t *testing.T) {
	request := func() *dsh.Request {
		return &dsh.Request{
			Header:   &dsh.Header{System: "s", Tools: []dsh.ToolSchema{{Name: "a"}, {Name: "b"}}},
			Messages: []*dsh.Message{dsh.UserText("1"), dsh.UserText("2")},
		}
	}
	var none dsh.MessageChain
	if zero := dsh.Digest("sha256:" + strings.Repeat("0", 64)); none.Digest(0) != zero {
		t.Errorf("no messages: %s", none.Digest(0))
	}
	for name, change := range map[string]func(*dsh.Request){
		"Config":   func(r *dsh.Request) { r.Header.Config.Model = "x" },
		"Config 2": func(r *dsh.Request) { r.Header.Config.Parameters.TopLogprobs = 1 },
		"Config 3": func(r *dsh.Request) { r.Header.AdapterDefaults.MaxTokens = true },
		"System":   func(r *dsh.Request) { r.Header.System += "." },
		"Tools":    func(r *dsh.Request) { r.Header.Tools[0], r.Header.Tools[1] = r.Header.Tools[1], r.Header.Tools[0] },
		"Messages": func(r *dsh.Request) { r.Messages[0], r.Messages[1] = r.Messages[1], r.Messages[0] },
		"Pos":      func(r *dsh.Request) { r.Pos.Turn, r.Session, r.Through = 7, "s", 9 },
	} {
		r := request()
		change(r)
		a, b := reflect.ValueOf(request().Digest()), reflect.ValueOf(r.Digest())
		for i := range a.NumField() {
			field := a.Type().Field(i).Name
			if changed := !a.Field(i).Equal(b.Field(i)); changed != strings.HasPrefix(name, field) {
				t.Errorf("%s: the digest of %s changed: %t", name, field, changed)
			}
		}
	}
}

// A check that is continued says what one of the whole list does.
func TestRequestCheckContinues(t *testing.T) {
	call := dsh.ToolCall{ID: "c", Name: "t"}
	answer := &dsh.Message{Role: dsh.RoleAssistant, Content: []dsh.Block{call}}
	result := &dsh.Message{Role: dsh.RoleUser, Content: []dsh.Block{dsh.ToolResult{CallID: "c"}}}
	messages := []*dsh.Message{dsh.UserText("go"), answer, result, dsh.UserText("on"), answer, dsh.UserText("stop"), result}
	var check dsh.RequestCheck
	for i, m := range messages {
		check.Add(m)
		got, want := check.Err(), dsh.CheckRequest(messages[:i+1])
		if (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() {
			t.Errorf("the first %d messages: %v, want %v", i+1, got, want)
		}
	}
}
