package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// configured gives a shot a home with a file.
func (s *shot) configured(text string) *shot {
	s.t.Helper()
	home := s.t.TempDir()
	s.env["DSH_ACTOR_HOME"] = home
	if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return s
}

// providers test against each fault: one request, one truthful answer.
func TestProvidersTest(t *testing.T) {
	ping := dsh.ToolCall{ID: "c", Name: "ping", Arguments: `{"word":"ready"}`}
	full := llmtest.Text("ready").Reasoning("hm").ToolCalls(ping).Usage(10, 5, 3)
	limits := "\n    first_byte_timeout: 500ms\n    idle_timeout: 500ms\n" // of those that hang
	for _, tt := range []struct {
		name string
		resp llmtest.Response
		err  string // code; empty for ok
		seen string // letters of text, tools, usage, reasoning
	}{
		{"all works", full, "", "txur"},
		{"text alone", llmtest.Text("ready"), "", "tu"},
		{"a call alone", llmtest.ToolCalls(ping), "", "xu"},
		{"keep-alives", full.KeepAlives(500), "", "txur"},
		{"slow drip", full.Drip(time.Millisecond), "", "txur"},
		{"cut", full.CutAfter(3), "TRANSPORT", "tr"},
		{"cut inside", full.CutInside(3), "TRANSPORT", "tr"},
		{"closed", full.EndAfter(3), "TRANSPORT", "tr"},
		{"no first byte", full.StallAfter(0), "TIMEOUT", ""},
		{"stall", full.StallAfter(3), "TIMEOUT", "tr"},
		{"error in the stream", full.ErrorAfter(3, `{"message":"died"}`), "SERVER", "tr"},
		{"wrong JSON", llmtest.Raw("data: {", "data: [DONE]"), "TRANSPORT", ""},
		{"page", llmtest.HTML(), "TRANSPORT", ""},
		{"no body", llmtest.Empty(), "EMPTY_RESPONSE", ""},
		{"nothing said", llmtest.Text(), "EMPTY_RESPONSE", "u"},
		{"401", llmtest.Status(401, `{"error":{"message":"no such key"}}`), "AUTH", ""},
		{"402", llmtest.Status(402, `{"error":{"message":"Insufficient Balance"}}`), "QUOTA", ""},
		{"400", llmtest.Status(400, `{"error":{"message":"no tools here"}}`), "INVALID_REQUEST", ""},
		{"429", llmtest.RateLimited("2"), "RATE_LIMIT", ""},
		{"429 in ms", llmtest.RateLimitedFor(time.Second), "RATE_LIMIT", ""},
		{"500", llmtest.Status(500, "oops"), "SERVER", ""},
		{"529", llmtest.Status(529, "overloaded").Header("Retry-After", "1"), "SERVER", ""},
		{"filter", llmtest.Text("a").Finish("content_filter"), "CONTENT_FILTER", "tu"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShot(t)
			srv := llmtest.NewServer(t, tt.resp)
			text := "providers:\n  mine:\n    base_url: " + srv.URL + "\n    default_model: m"
			if tt.err == "TIMEOUT" {
				text += limits
			}
			s.configured(text)
			code := exitOK
			if tt.err != "" {
				code = exitFailed
			}
			s.want(code, "providers", "test", "mine", "--json")
			var p probed
			if err := json.Unmarshal([]byte(s.out.String()), &p); err != nil {
				t.Fatalf("%v in %s", err, s.out.String())
			}
			got := ""
			if p.Error != nil {
				got = p.Error.Code
			}
			seen := ""
			for _, f := range []struct {
				letter string
				seen   bool
			}{{"t", p.Text}, {"x", p.Tools}, {"u", p.Usage}, {"r", p.Reasoning}} {
				if f.seen {
					seen += f.letter
				}
			}
			if got != tt.err || seen != tt.seen || p.OK != (tt.err == "") || p.Provider != "mine" || p.Model != "m" {
				t.Errorf("error %q, seen %q, %s; want %q, %q", got, seen, s.out.String(), tt.err, tt.seen)
			}
			if n := len(srv.Requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestProvidersTestInWords(t *testing.T) {
	s := newShot(t)
	srv := llmtest.NewServer(t, llmtest.Text("ready"), llmtest.Status(500, "oops"))
	s.configured("providers: {mine: {base_url: '" + srv.URL + "', default_model: m}}\n")
	s.want(exitOK, "providers", "test", "mine")
	s.says(&s.out, "mine, model m at "+srv.URL, "text       works", "tools      not seen", "first word", "ok\n")
	s.want(exitFailed, "providers", "test", "mine")
	s.says(&s.out, "failed: SERVER: openai: status 500: oops")
	s.want(exitOK, "providers", "test", "demo")
	s.want(exitUsage, "providers", "test", "nobody")
	s.says(&s.err, `"nobody" is not one of demo, openai, deepseek, mine`)
	s.want(exitUsage, "providers", "test", "mine", "--timeout", "0s")
	s.want(exitUsage, "providers", "tset")
}

// A time limit ends a test that hangs, and so does Ctrl-C.
func TestProvidersTestEnds(t *testing.T) {
	s, later := newShot(t), newShot(t)
	srv := llmtest.NewServer(t, llmtest.Text("a").StallAfter(2), llmtest.Text("a").StallAfter(2))
	text := "providers: {mine: {base_url: '" + srv.URL + "', default_model: m}}\n"
	s.configured(text)
	s.want(exitFailed, "providers", "test", "mine", "--timeout", "500ms")
	s.says(&s.out, "failed: TIMEOUT")
	s = later.configured(text)
	s.begin("providers", "test", "mine")
	await(t, "the request", func() bool { return len(srv.Requests()) == 2 })
	s.signals <- os.Interrupt
	if code := s.end(); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	s.says(&s.out, "failed: INTERRUPTED")
}

func TestProvidersList(t *testing.T) {
	s := newShot(t).configured("providers: {mine: {base_url: 'http://h/v1', default_model: m, models: {m: {}}, api_key_env: [MINE, OTHER]}}\n")
	s.env["MINE"], s.env["OTHER"] = "a-secret", "b-secret"
	s.want(exitOK, "providers", "list")
	s.says(&s.out, "demo  scripted, needs no key\n", "deepseek  https://api.deepseek.com  no key: set DEEPSEEK_API_KEY\n",
		"mine  http://h/v1  2 keys\n    m (default)\n")
	s.want(exitOK, "providers", "list", "--json")
	s.says(&s.out, `{"name":"mine","base_url":"http://h/v1","key_variables":["MINE","OTHER"],"keys":2,"default_model":"m","models":["m"]}`)
	if strings.Contains(s.out.String(), "secret") {
		t.Error("a key is shown")
	}
	s.want(exitOK, "providers")
	bad := newShot(t).configured("modle: x\n")
	bad.want(exitUsage, "providers", "list")
	bad.says(&bad.err, "config.yaml:1: there is no key modle; did you mean model?")
}

// A run takes what is configured: route, sampling, retries and price.
func TestRunIsConfigured(t *testing.T) {
	s := newShot(t)
	srv := llmtest.NewServer(t, llmtest.Text("half").EndAfter(2), llmtest.Text("whole").Usage(1_000_000, 1_000_000, 500_000))
	s.configured(`
provider: mine
temperature: 0.5
retry: {truncated: always, initial: 1ms}
providers:
  mine:
    base_url: ` + srv.URL + `
    default_model: m
    limits: {concurrency: 1}
    models: {m: {price: {input: 2, cache_read: 0.2, output: 4, currency: EUR}}}
`)
	s.want(exitOK, "run", "--seed", "0", "--top-p", "0.9", "-o", "json", "hi")
	s.says(&s.out, `"cache_hit_ratio":0.5`, `"requests":2`, `"cost":{"amount":4.2,"currency":"EUR"}`, `"text":"whole"`)
	s.says(&s.err, "(1,000,000 cached, 50 %)", " · 4.20 EUR · ")
	if got := string(srv.Requests()[0].Body); !strings.Contains(got, `"temperature":0.5,"top_p":0.9,"seed":0`) {
		t.Errorf("body %s", got)
	}
	s.want(exitUsage, "run", "--temperature", "9", "hi")
}

// By default a stream that its server ended behind visible text is not asked
// for again.
func TestClosedBehindTextIsAnError(t *testing.T) {
	s := newShot(t)
	srv := llmtest.NewServer(t, llmtest.Text("half an ans", "wer").EndAfter(2))
	s.want(exitFailed, remote(srv, "hi")...)
	s.says(&s.err, "TRANSPORT", "ended before the answer did")
}
