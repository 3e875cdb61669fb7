package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/policy/retry"
)

// place is a project and a home with files.
type place struct {
	t    *testing.T
	cwd  string
	home string
	env  map[string]string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, cwd: t.TempDir(), home: t.TempDir(), env: map[string]string{}}
	p.env["HOME"] = p.home
	return p
}

func (p *place) write(dir, text string) *place {
	p.t.Helper()
	dir = filepath.Join(dir, Dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, File), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return p
}

func (p *place) load(flags map[string]any) (*Loaded, error) {
	return Load(Sources{CWD: p.cwd, Env: func(name string) string { return p.env[name] }, Flags: flags})
}

func (p *place) must(flags map[string]any) *Loaded {
	p.t.Helper()
	l, err := p.load(flags)
	if err != nil {
		p.t.Fatal(err)
	}
	return l
}

// Each layer is over those before it: default, user, project, environment,
// flag. Lists are replaced, maps are merged.
func TestLayers(t *testing.T) {
	p := newPlace(t)
	if l := p.must(nil); l.Model != "" || l.Providers[DeepSeek].DefaultModel != DeepSeekModel || len(l.Files) != 0 {
		t.Errorf("defaults %+v", l.Config)
	}
	p.write(p.home, "model: user\nmax_tokens: 1\ntemperature: 0\nproviders:\n  deepseek:\n    default_model: mine\n  other:\n    base_url: http://o/v1\n    models: {qwen2.5: {context_window: 5}}\n")
	l := p.must(nil)
	if l.Model != "user" || *l.Temperature != 0 || l.Providers[DeepSeek].BaseURL != DeepSeekURL ||
		l.Providers[DeepSeek].DefaultModel != "mine" || l.Providers["other"].Models["qwen2.5"].ContextWindow != 5 {
		t.Errorf("user %+v", l.Config)
	}
	p.write(p.cwd, "model: project\nmax_tokens: 2\nretry: {truncated: never, max_retries: 0}\nstop: [a, b]\n")
	if l = p.must(nil); l.Model != "project" || l.MaxTokens != 2 || len(l.Files) != 2 || *l.Retry.MaxRetries != 0 {
		t.Errorf("project %+v", l.Config)
	}
	p.env["DSH_ACTOR_MODEL"], p.env["DSH_ACTOR_RETRY_MAX"], p.env["DSH_ACTOR_TEMPERATURE"] = "env", "3s", "0.5"
	if l = p.must(nil); l.Model != "env" || l.Retry.Max != 3*time.Second || *l.Temperature != 0.5 {
		t.Errorf("environment %+v", l.Config)
	}
	if l = p.must(map[string]any{"model": "flag"}); l.Model != "flag" || l.MaxTokens != 2 || len(l.Stop) != 2 {
		t.Errorf("flags %+v", l.Config)
	}
	if o := l.Retry.Options(); o.MaxRetries != -1 || o.MaxEmpty != 0 || o.Truncated != retry.TruncatedNever || o.Max != 3*time.Second {
		t.Errorf("retry %+v", o)
	}
	p.env["DSH_ACTOR_HOME"] = filepath.Join(p.cwd, "elsewhere")
	if l = p.must(nil); len(l.Files) != 1 {
		t.Errorf("files %v", l.Files)
	}
}

// What is wrong is told with file and line, the nearest key, and never the
// text of what may be a key.
func TestProblems(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unknown", "model: a\nmodle: b\n", "config.yaml:2: there is no key modle; did you mean model?"},
		{"deep", "providers:\n  x:\n    limits:\n      concurency: 1\n", "config.yaml:4: there is no key providers.x.limits.concurency; did you mean concurrency?"},
		{"far from all", "retry:\n  zzz: 1\n", "there is no key retry.zzz; the nearest is max"},
		{"a key", "providers:\n  x:\n    api_key: sk-verysecret\n", "config.yaml:3: providers.x.api_key: keys are never read from a file; put the key into an environment variable and name it with api_key_env"},
		{"a key as a name", "providers:\n  x:\n    api_key_env: sk-verysecret\n", "config.yaml:3: providers.x.api_key_env holds something that is no name of an environment variable"},
		{"number", "max_tokens: many\n", `config.yaml:1: max_tokens: "many" is no whole number`},
		{"negative", "max_tokens: -1\n", "must not be negative"},
		{"time", "retry: {max: 5}\n", `retry.max: "5" is no time such as 90s or 5m`},
		{"one of", "retry: {truncated: maybe}\n", `"maybe" is not one of never, unseen, always`},
		{"another one of", "providers: {x: {truncated: always}}\n", `"always" is not one of require-done, accept-finish`},
		{"dialect", "providers: {x: {dialect: klingon}}\n", "is not one of auto, deepseek"},
		{"shape", "providers: [a]\n", "providers does not hold keys"},
		{"a store", "store: disk\n", `config.yaml:1: store: "disk" is not one of jsonl, memory`},
		{"a relative path", "sessions: {dir: here}\n", `sessions.dir: "here" is neither a whole path nor one that begins with ~/`},
		{"no value", "model:\n", "model is empty; leave the key out"},
		{"a list", "model: [a]\n", "model is not one value"},
		{"no YAML", "a: [\n", "config.yaml: "},
		{"two at once", "a: 1\nb: 2\n", "config.yaml:2: there is no key b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			_, err := p.write(p.home, tt.text).load(nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "verysecret") {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
	p := newPlace(t)
	p.env["DSH_ACTOR_MAX_TOKENS"] = "x"
	if _, err := p.load(nil); err == nil || !strings.Contains(err.Error(), "DSH_ACTOR_MAX_TOKENS") {
		t.Errorf("environment: %v", err)
	}
	p = newPlace(t)
	if _, err := p.write(p.cwd, "# nothing\n").load(nil); err != nil {
		t.Error(err)
	}
}

// A project's file came with the project: it gets no key.
func TestAProjectIsNotTrusted(t *testing.T) {
	for name, tt := range map[string]struct {
		user, project string
		want          string // of the load or the build
	}{
		"names a variable": {"", "providers: {x: {base_url: 'http://h/v1', api_key_env: HOME}}\n", "may not say where keys are found"},
		"names a header":   {"", "providers: {x: {base_url: 'http://h/v1', headers_env: {X: HOME}}}\n", "may not say where secrets are found"},
		"moves a provider": {"", "providers: {deepseek: {base_url: 'https://evil.test'}}\n", "not trusted with your key"},
		"moves all":        {"", "base_url: https://evil.test\n", "not trusted with your key"},
		"hides sessions":   {"", "store: memory\n", "may not say what becomes of your sessions"},
		"moves sessions":   {"", "sessions: {dir: /tmp/theirs}\n", "may not say what becomes of your sessions"},
		"to this machine":  {"", "providers: {deepseek: {base_url: 'http://127.0.0.1:1/v1'}}\n", ""},
		"same as the user": {"providers: {deepseek: {base_url: 'https://mine.test'}}\n", "model: m\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.env["DEEPSEEK_API_KEY"] = "k"
			p.write(p.home, tt.user).write(p.cwd, tt.project)
			l, err := p.load(nil)
			if err == nil {
				var b Built
				if b, err = l.Build(DeepSeek, nil); err == nil {
					b.Release()
				}
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// What is configured arrives at the server.
// Sessions are where the user or the environment says.
func TestSessionsDir(t *testing.T) {
	p := newPlace(t)
	if got := p.must(nil).SessionsDir(); got != "" {
		t.Errorf("unset: %q", got)
	}
	p.write(p.home, "sessions: {dir: ~/elsewhere}\n")
	if got := p.must(nil).SessionsDir(); got != filepath.Join(p.home, "elsewhere") {
		t.Errorf("the user's file: %q", got)
	}
	p.env["DSH_ACTOR_SESSIONS_DIR"] = "/srv/sessions"
	if got := p.must(nil).SessionsDir(); got != "/srv/sessions" {
		t.Errorf("the environment: %q", got)
	}
}

// Without a project's directory there is no project, whatever the process's own
// directory holds.
func TestNoProject(t *testing.T) {
	p := newPlace(t)
	p.write(p.cwd, "model: project\n")
	t.Chdir(p.cwd)
	p.cwd = ""
	if l := p.must(nil); l.Model != "" || len(l.Files) != 0 {
		t.Errorf("loaded %v: %+v", l.Files, l.Config)
	}
}

// Home is where the user's own file is.
func TestHome(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{nil, ""},
		{map[string]string{"HOME": "/h", "USERPROFILE": "/u"}, filepath.Join("/h", Dir)},
		{map[string]string{"USERPROFILE": "/u"}, filepath.Join("/u", Dir)},
		{map[string]string{"HOME": "/h", "DSH_ACTOR_HOME": "/own"}, "/own"},
	} {
		if got := Home(func(name string) string { return tt.env[name] }); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.env, got, tt.want)
		}
	}
}

func TestBuild(t *testing.T) {
	srv := llmtest.NewServer(t)
	srv.Respond(func(llmtest.Request) llmtest.Response { return llmtest.Text("ok") })
	p := newPlace(t)
	p.env["K1"], p.env["K2"], p.env["TOKEN"] = "one-key", "two-key", "gateway-token"
	l := p.write(p.home, `
providers:
  mine:
    base_url: `+srv.URL+`
    api_key_env: [K1, UNSET, K2]
    headers: {X-Title: test}
    headers_env: {X-Token: TOKEN}
    extra_body: {top_k: 5, stream_options: null}
    limits: {concurrency: 3, requests_per_minute: 60}
    models:
      m.1: {context_window: 10, max_tokens: 7, reasoning_effort: low, price: {input: 1, output: 2, currency: EUR}}
`).must(nil)
	b, err := l.Build("mine", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	if b.Limits != (llm.Limits{Concurrency: 3, RequestsPerMinute: 60}) {
		t.Errorf("limits %+v", b.Limits)
	}
	m := b.Model("m.1")
	if m.ContextWindow != 10 || m.MaxTokens != 7 || m.Price != (llm.Price{Input: 1, Output: 2, Currency: "EUR"}) {
		t.Errorf("model %+v", m)
	}
	for range 2 {
		for _, err := range b.Stream(t.Context(), &dsh.Request{Header: &dsh.Header{Config: dsh.CallConfig{Model: "m.1"}}, Messages: []*dsh.Message{dsh.UserText("hi")}}) {
			if err != nil {
				t.Error(err)
			}
		}
	}
	var keys []string
	for _, r := range srv.Requests() {
		keys = append(keys, r.Header.Get("Authorization"))
		if r.Header.Get("X-Title") != "test" || r.Header.Get("X-Token") != "gateway-token" ||
			!strings.Contains(string(r.Body), `"top_k":5`) || strings.Contains(string(r.Body), "stream_options") {
			t.Errorf("request %v %s", r.Header, r.Body)
		}
	}
	if strings.Join(keys, ",") != "Bearer one-key,Bearer two-key" {
		t.Errorf("keys %v", keys)
	}
	p.env["TOKEN"] = ""
	if _, err := l.Build("mine", nil); err == nil || !strings.Contains(err.Error(), "TOKEN is not set") {
		t.Errorf("error %v", err)
	}
	p.env["DSH_ACTOR_API_KEY"] = "k"
	if got := l.Keys("mine"); len(got) != 1 || got[0] != "DSH_ACTOR_API_KEY" {
		t.Errorf("keys %v", got)
	}
}

// The example of the documentation is a whole, valid file.
func TestDocumentedExample(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(raw), "```yaml\n")
	text, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("docs/configuration.md has no example")
	}
	p := newPlace(t)
	p.env["GATEWAY_TOKEN"] = "t"
	l := p.write(p.home, text).must(nil)
	for _, name := range l.Names() {
		b, err := l.Build(name, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b.Release()
	}
	if !l.Providers["deepseek"].Models["deepseek-v4-pro"].Price.isSet() || l.Providers["gateway"].InitiatorHeader == "" || l.Retry.MaxEmpty == nil {
		t.Errorf("the example lacks something: %+v", l.Config)
	}
	for _, key := range allKeys() {
		if !strings.Contains(text, key+":") {
			t.Errorf("the example does not show %s", key)
		}
	}
}

func (p Price) isSet() bool { return p != Price{} }

// allKeys returns every key there is.
func allKeys() (keys []string) {
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			keys = append(keys, f.Tag.Get("koanf"))
			in := f.Type
			if in.Kind() == reflect.Map {
				in = in.Elem()
			}
			if in.Kind() == reflect.Struct {
				walk(in)
			}
		}
	}
	walk(reflect.TypeFor[Config]())
	return keys
}
