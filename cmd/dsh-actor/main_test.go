package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// buffer is a bytes.Buffer that goroutines share.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// A shot is one execution in this process.
type shot struct {
	t       *testing.T
	quiet   time.Duration
	hooks   []any
	env     map[string]string
	stdin   io.Reader
	stdout  io.Writer // instead of out
	stderr  io.Writer // instead of err
	out     buffer
	err     buffer
	signals chan os.Signal
	code    chan int
}

// newShot makes one whose goroutines must be gone when the test ends.
func newShot(t *testing.T) *shot {
	t.Helper()
	return shotIn(t, newHome(t))
}

// newHome makes a home directory, which is removed when all goroutines of the
// test are gone.
func newHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	return home
}

// shotIn makes one in a home directory.
func shotIn(t *testing.T, home string) *shot {
	return &shot{
		t: t, env: map[string]string{envHome: home}, stdin: strings.NewReader(""),
		signals: make(chan os.Signal, 4), code: make(chan int, 1),
	}
}

// begin starts the command.
func (s *shot) begin(args ...string) *shot {
	s.t.Helper()
	if s.stdout == nil {
		s.stdout = &s.out
	}
	if s.stderr == nil {
		s.stderr = &s.err
	}
	a := newApp(s.stdin, s.stdout, s.stderr, func(name string) string { return s.env[name] })
	a.pace = 0
	if s.quiet != 0 {
		a.quiet = s.quiet
	}
	a.hooks = s.hooks
	go func() { s.code <- a.execute(s.t.Context(), args, s.signals) }()
	return s
}

// end waits for the exit code.
func (s *shot) end() int {
	s.t.Helper()
	select {
	case code := <-s.code:
		return code
	case <-time.After(patience):
		s.t.Fatalf("the command does not end\nstdout:\n%s\nstderr:\n%s", s.out.String(), s.err.String())
		return -1
	}
}

// want runs a command and checks its exit code.
func (s *shot) want(code int, args ...string) *shot {
	s.t.Helper()
	if got := s.begin(args...).end(); got != code {
		s.t.Fatalf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", got, code, s.out.String(), s.err.String())
	}
	return s
}

// says checks what one of the outputs holds.
func (s *shot) says(b *buffer, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(b.String(), text) {
			s.t.Errorf("output lacks %q:\n%s", text, b.String())
		}
	}
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// remote returns the flags that make a scripted server the provider.
func remote(srv *llmtest.Server, more ...string) []string {
	return append([]string{"run", "--provider", "openai", "--base-url", srv.URL, "--model", "m"}, more...)
}

// stream parses the lines of stream-json of a new session.
func stream(t *testing.T, out string) (events []dsh.Event, last result) {
	t.Helper()
	return streamFrom(t, 0, out)
}

// streamFrom parses those of one that has so many events.
func streamFrom(t *testing.T, next dsh.Seq, out string) (events []dsh.Event, last result) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for i, line := range lines {
		var head struct {
			Version int
			Type    string
			Event   json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &head); err != nil || head.Version != 1 {
			t.Fatalf("line %d: %v: %s", i, err, line)
		}
		want := "event"
		switch i {
		case 0:
			want = "start"
		case len(lines) - 1:
			want = "result"
		}
		if head.Type != want {
			t.Fatalf("line %d is a %q, want a %q: %s", i, head.Type, want, line)
		}
		switch head.Type {
		case "event":
			var ev dsh.Event
			if err := json.Unmarshal(head.Event, &ev); err != nil {
				t.Fatalf("line %d: %v: %s", i, err, line)
			}
			if ev.Seq != next {
				t.Fatalf("line %d holds event %d, want %d", i, ev.Seq, next)
			}
			next += ev.Span()
			events = append(events, ev)
		case "result":
			if err := json.Unmarshal([]byte(line), &last); err != nil {
				t.Fatal(err)
			}
		}
	}
	return events, last
}

// has reports whether an event of this type is among the lines so far.
func (s *shot) has(eventType string) bool {
	return strings.Contains(s.out.String(), `"event":{"type":"`+eventType+`"`)
}

var masks = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`"(time|createdAt)":\d+`), `"$1":0`},
	{regexp.MustCompile(`(duration_ms|durationMs)(\\?":)\d+`), "${1}${2}0"},
	{regexp.MustCompile(`\b\d+ ms\b|\b\d+(\.\d)? s\b`), "N ms"},
	{regexp.MustCompile(`"description":"[^"]*","parameters":\{.*?"additionalProperties":false\}`), `"description":"…","parameters":{}`},
	{regexp.MustCompile(`http://127\.0\.0\.1:\d+`), "http://SERVER"},
}

var counts = regexp.MustCompile(`("(?:input|output|cache_read)_tokens":|"(?:input|output|cacheRead)Tokens":|"cache_hit_ratio":)[\d.]+|[\d,]+ tokens in.* out`)

// golden compares text with a file, or writes it with UPDATE=1.
func golden(t *testing.T, name, text string, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		text = strings.ReplaceAll(text, dir, "DIR")
	}
	for _, m := range masks {
		text = m.what.ReplaceAllString(text, m.with)
	}
	if strings.HasPrefix(name, "demo.") { // which counts the bytes of DIR
		text = counts.ReplaceAllString(text, "${1}N")
	}
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs (UPDATE=1 rewrites it):\n%s\nwant:\n%s", path, text, want)
	}
}

// project makes a directory with two files.
func project(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"a.txt": "one\ntwo\n", "b.md": "# Head\n\ntext\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// matches checks text against an expression.
func matches(t *testing.T, text, expression string) {
	t.Helper()
	if !regexp.MustCompile(expression).MatchString(text) {
		t.Errorf("nothing matches %s:\n%s", expression, text)
	}
}
