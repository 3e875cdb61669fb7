package openai

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

func TestDefaults(t *testing.T) {
	s := checked(t, Options{})
	if s.BaseURL != "https://api.deepseek.com" || s.Dialect != DialectDeepSeek ||
		s.FirstByteTimeout != 5*time.Minute || s.IdleTimeout != 5*time.Minute ||
		s.TokenIdleTimeout != 5*time.Minute || s.TotalTimeout != 2*time.Hour {
		t.Errorf("defaults = %+v", s.Options)
	}
	if s = checked(t, Options{IdleTimeout: time.Second, FirstByteTimeout: -1}); s.TokenIdleTimeout != time.Second || s.FirstByteTimeout != -1 {
		t.Errorf("timeouts = %+v", s.Options)
	}
}

func TestDialectByHost(t *testing.T) {
	for url, want := range map[string]Dialect{
		"https://api.deepseek.com/beta":   DialectDeepSeek,
		"https://API.DeepSeek.com":        DialectDeepSeek,
		"https://notdeepseek.com":         DialectGeneric,
		"https://api.openai.com/v1":       DialectOpenAI,
		"https://x.openai.azure.com/v1":   DialectOpenAI,
		"http://127.0.0.1:8080/v1":        DialectGeneric,
		"https://openrouter.ai/api/v1":    DialectGeneric,
		"https://deepseek.com.evil.io/v1": DialectGeneric,
	} {
		if got := checked(t, Options{BaseURL: url}).Dialect; got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	if got := checked(t, Options{Dialect: DialectOpenAI}).Dialect; got != DialectOpenAI {
		t.Errorf("given: %s", got)
	}
}

// Every problem is told at once.
func TestProblems(t *testing.T) {
	_, err := New(Options{
		BaseURL:         "ftp://x",
		APIKey:          "key\n",
		Dialect:         "klingon",
		Truncated:       "never",
		ExtraBody:       map[string]any{"messages": 1, "f": func() {}},
		Headers:         http.Header{"Bad Name": {"v"}, "X-Bad": {"a\r\nb"}},
		InitiatorHeader: "x y",
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"ftp://x", "API key", "klingon", "never", `"messages"`, `"f"`, "Bad Name", "X-Bad", "x y"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	for _, url := range []string{"https://user:pass@x", "https://x?key=pass", "https://pass\x7f", "x/v1", "https://"} {
		if _, err := New(Options{BaseURL: url}); err == nil || strings.Contains(err.Error(), "pass") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestModel(t *testing.T) {
	p := newProvider(t, Options{Models: map[string]llm.Model{"m": {ContextWindow: 7}}})
	if p.Model("m").ContextWindow != 7 || p.Model("other") != (llm.Model{}) {
		t.Error(p.Model("m"), p.Model("other"))
	}
}

func TestHeaders(t *testing.T) {
	srv := llmtest.NewServer(t, llmtest.Text("a"), llmtest.Text("a"))
	p := newProvider(t, Options{
		BaseURL: srv.URL, APIKey: "key", Headers: http.Header{"x-team": {"a", "b"}}, InitiatorHeader: "X-Initiator",
	})
	collect(t, p.Stream(t.Context(), request()))
	ctx := dsh.WithInitiator(t.Context(), dsh.Initiator{Agent: "a/ü\n", Session: "s", Parent: "p", Root: "r", Depth: 2})
	collect(t, p.Stream(ctx, request()))
	plain, told := srv.Requests()[0].Header, srv.Requests()[1].Header
	if plain.Get("Authorization") != "Bearer key" || strings.Join(plain.Values("X-Team"), " ") != "a b" ||
		plain.Get("Content-Type") != "application/json" || plain.Get("X-Initiator") != "" {
		t.Errorf("headers = %v", plain)
	}
	if got := told.Get("X-Initiator"); got != "agent=a%2F%C3%BC%0A&depth=2&parent=p&root=r&session=s" {
		t.Errorf("initiator = %s", got)
	}
}

// go-openai refuses these names, or parameters with them; an endpoint of
// one's own may have them.
func TestModelNamesAreNotRefused(t *testing.T) {
	for _, name := range []string{"o1-mini", "o3", "o4-local", "gpt-5", "gpt-6-astra", "text-davinci-003", "", "<m>"} {
		req := request()
		req.Header.Config = dsh.CallConfig{Model: name, MaxTokens: 5, Temperature: ptr(0.5), ReasoningEffort: "none"}
		srv := llmtest.NewServer(t, llmtest.Text("a"))
		collect(t, newProvider(t, Options{BaseURL: srv.URL}).Stream(t.Context(), req)).
			want(t, dsh.FinishStop, dsh.Text{Text: "a"})
		var sent struct{ Model string }
		if srv.Requests()[0].Decode(t, &sent); sent.Model != name {
			t.Errorf("model %q, want %q", sent.Model, name)
		}
	}
}
