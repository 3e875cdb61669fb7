package dsh_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

func ptrTo[T any](v T) *T { return &v }

// What the session format has no place for travels in an event that readers
// may skip; the header's own members stay those of the format.
func TestParametersAreAnEventOfTheirOwn(t *testing.T) {
	p := dsh.Parameters{
		TopP: ptrTo(0.9), Seed: ptrTo(int64(-7)), Logprobs: true, TopLogprobs: 3, Body: json.RawMessage(`{"b":1,"a":[null]}`),
	}
	ev := dsh.Event{Seq: 4, Time: 9, Data: dsh.RequestParameters{Parameters: p}, Ignorable: true}
	const line = `{"type":"dsh-actor/parameters","seq":4,"time":9,"data":` +
		`{"topP":0.9,"seed":-7,"logprobs":true,"topLogprobs":3,"body":{"b":1,"a":[null]}},"ignorable":true}`
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
	if got, _ := json.Marshal(dsh.Parameters{}); string(got) != "{}" {
		t.Errorf("none: %s", got)
	}
	header, _ := json.Marshal(dsh.Header{Config: dsh.CallConfig{Provider: "p", Model: "m", Parameters: p}})
	if want := `{"config":{"provider":"p","model":"m"}}`; string(header) != want {
		t.Errorf("header %s, want %s", header, want)
	}
}

func TestHeaderFoldCombines(t *testing.T) {
	var f dsh.HeaderFold
	apply := func(fact dsh.Fact) { f.Apply(&dsh.Event{Data: fact}) }
	plain := &dsh.Header{Config: dsh.CallConfig{Provider: "p", Model: "m"}}
	with := func(seed int64) dsh.RequestParameters {
		return dsh.RequestParameters{Parameters: dsh.Parameters{Seed: &seed}}
	}
	apply(with(1))
	if f.Header != nil {
		t.Error("a header out of nothing")
	}
	apply(dsh.RequestHeader{Header: plain})
	if s := f.Header.Config.Parameters.Seed; s == nil || *s != 1 {
		t.Errorf("seed %v", s)
	}
	apply(with(2))
	if s := f.Header.Config.Parameters.Seed; *s != 2 {
		t.Errorf("seed %v", *s)
	}
	apply(dsh.RequestParameters{})
	if !f.Header.Config.Parameters.IsZero() || !f.Header.Equal(plain) || !plain.Config.Parameters.IsZero() {
		t.Errorf("header %+v", f.Header)
	}
}

func TestParametersEqual(t *testing.T) {
	one := func() dsh.Parameters {
		return dsh.Parameters{TopP: ptrTo(1.0), Seed: ptrTo(int64(1)), Logprobs: true, TopLogprobs: 1, Body: json.RawMessage(`{}`)}
	}
	if !one().Equal(one()) {
		t.Error("not equal to itself")
	}
	for i, change := range []func(*dsh.Parameters){
		func(p *dsh.Parameters) { p.TopP = nil }, func(p *dsh.Parameters) { p.Seed = ptrTo(int64(2)) },
		func(p *dsh.Parameters) { p.Logprobs = false }, func(p *dsh.Parameters) { p.TopLogprobs = 2 },
		func(p *dsh.Parameters) { p.Body = json.RawMessage(`{ }`) },
	} {
		p := one()
		if change(&p); p.Equal(one()) || one().Equal(p) {
			t.Errorf("change %d is not seen", i)
		}
	}
}

// Each attempt counts once, whichever way its usage was told, and each route
// for itself.
func TestLedger(t *testing.T) {
	var l dsh.Ledger
	apply := func(facts ...dsh.Fact) {
		for _, f := range facts {
			l.Apply(&dsh.Event{Data: f})
		}
	}
	chunks := func(c ...dsh.Chunk) dsh.Fact { return dsh.ChunkRun{Chunks: c} }
	usage := func(in, cached int64) dsh.Usage {
		return dsh.Usage{InputTokens: in, OutputTokens: 1, CacheReadTokens: &cached}
	}
	finish := func(k dsh.FinishKind) dsh.Chunk { return dsh.Finish{Reason: dsh.FinishReason{Kind: k}} }
	header := func(model string) dsh.Fact {
		return dsh.RequestHeader{Header: &dsh.Header{Config: dsh.CallConfig{Provider: "p", Model: model}}}
	}
	good := usage(20, 30)
	apply(header("a"),
		chunks(dsh.TextDelta{Text: "x"}, usage(1, 0), usage(10, 0), finish(dsh.FinishError)), // failed; the last usage counts
		dsh.RetryScheduled{},
		dsh.AssistantChunk{Chunk: dsh.TextDelta{Text: "y"}}, dsh.AssistantChunk{Chunk: good},
		dsh.AssistantChunk{Chunk: finish(dsh.FinishStop)}, dsh.AssistantMessage{Usage: &good}, dsh.StepEnd{},
		header("b"),
		chunks(dsh.TextDelta{Text: "z"}, usage(5, 0)), dsh.AssistantMessage{Interrupted: true}, dsh.StepEnd{},
		chunks(dsh.TextDelta{Text: " "}), dsh.StepEnd{}, // cancelled with nothing said
	)
	got := l.Routes()
	if len(got) != 2 || got[0].Model != "a" || got[0].Requests != 2 || got[0].Failed != 1 || got[0].Usage.InputTokens != 30 ||
		got[1].Requests != 2 || got[1].Failed != 1 || got[1].Usage.InputTokens != 5 {
		t.Errorf("routes %+v", got)
	}
	requests, total := l.Total()
	if ratio, ok := total.CacheHitRatio(); requests != 4 || total.OutputTokens != 3 || !ok || ratio != 30.0/65 {
		t.Errorf("%d requests, %+v, ratio %v", requests, total, ratio)
	}
	if _, ok := (dsh.Usage{InputTokens: 1}).CacheHitRatio(); ok {
		t.Error("a ratio of nothing told")
	}
	if _, ok := (dsh.Usage{CacheReadTokens: ptrTo(int64(0))}).CacheHitRatio(); ok {
		t.Error("a ratio of nothing")
	}
}
