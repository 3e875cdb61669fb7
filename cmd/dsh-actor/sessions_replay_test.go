package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/llm"
	scripted "github.com/dsh-actor/dsh-actor/actors/llm/script"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/policy/audit"
	"github.com/dsh-actor/dsh-actor/runtime"
)

const sampleID = "main-session-00000000-0000-4000-8000-000000000001"

// sampleSession puts the sample of the format into a directory of sessions,
// changed, and returns the directory.
func sampleSession(t *testing.T, change func([]byte) []byte) string {
	t.Helper()
	data, err := os.ReadFile("../../actors/session/jsonl/testdata/a.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "--srv-demo--", sampleID, "session.jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		changed := change(data)
		if bytes.Equal(changed, data) {
			t.Fatal("nothing was changed")
		}
		data = changed
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReplay(t *testing.T) {
	dir := sampleSession(t, nil)
	want := "1.1.0  1 message   124 tokens in (64 cached, 52 %), 21 out  answered  ok\n" +
		"1.2.0  3 messages  168 tokens in (128 cached, 76 %), 3 out  answered  ok\n" +
		"2 requests derived, 2 as logged, 0 by digest\n"
	if got := newShot(t).want(exitOK, "sessions", "replay", "main-session", "--dir", dir).out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	// Somebody who owns the session is no hindrance.
	store, err := jsonl.Open(dir, jsonl.Options{Encoding: jsonl.Raw})
	if err != nil {
		t.Fatal(err)
	}
	log, err := store.Open(t.Context(), sampleID)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if got := newShot(t).want(exitOK, "sessions", "replay", sampleID, "--dir", dir).out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestReplayFinds(t *testing.T) {
	dir := sampleSession(t, func(data []byte) []byte {
		return bytes.Replace(data, []byte(`"content":[{"type":"text","text":"Three lines."}]`),
			[]byte(`"content":[{"type":"text","text":"Four\u001b[2J\nlines."}]`), 1)
	})
	s := newShot(t).want(exitFailed, "sessions", "replay", sampleID, "--dir", dir)
	s.says(&s.out, "1 finding\n"+
		`event 30, 1.2.0: answer: its content is not what its chunks make: block 0 is the text "Four\x1b[2J\nlines." where the text "Three lines." is due`+
		"\n2 requests derived, 1 as logged, 0 by digest, 1 finding\n")
	if s.err.String() != "" {
		t.Errorf("stderr: %s", s.err.String())
	}
	s = newShot(t).want(exitFailed, "sessions", "replay", sampleID, "--dir", dir, "--json")
	want := []string{
		`{"version":1,"type":"request","n":1,"turn":1,"step":1,"attempt":0,"seq":7,"through":6,"provider":"deepseek","model":"deepseek-v4-pro",` +
			`"messages":1,"tools":1,"outcome":"answered","usage":{"input_tokens":60,"output_tokens":21,"cache_read_tokens":64,"reasoning_tokens":4,"cache_hit_ratio":0.5161},"answer":19,"findings":0}`,
		`{"version":1,"type":"request","n":2,"turn":1,"step":2,"attempt":0,"seq":24,"through":23,"provider":"deepseek","model":"deepseek-v4-pro",` +
			`"messages":3,"tools":1,"outcome":"answered","usage":{"input_tokens":40,"output_tokens":3,"cache_read_tokens":128,"cache_hit_ratio":0.7619},"answer":30,"findings":1}`,
		`{"version":1,"type":"finding","kind":"answer","seq":30,"turn":1,"step":2,"text":"its content is not what its chunks make: block 0 is the text \"Four\\x1b[2J\\nlines.\" where the text \"Three lines.\" is due"}`,
		`{"version":1,"type":"summary","session":"` + sampleID + `","events":33,"requests":2,"as_logged":1,"by_digest":0,"findings":1,"open":false,"torn_bytes":0}`,
	}
	if got := s.out.String(); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("got\n%swant\n%s", got, strings.Join(want, "\n"))
	}
}

// What a crash left is replayed as far as it is whole.
func TestReplayOfTornLog(t *testing.T) {
	dir := sampleSession(t, func(data []byte) []byte {
		lines := bytes.SplitAfter(data, []byte("\n"))
		return append(bytes.Join(lines[:18], nil), lines[18][:40]...)
	})
	s := newShot(t).want(exitOK, "sessions", "replay", sampleID, "--dir", dir)
	s.says(&s.out, "answered  ok\n1 request derived, 1 as logged, 0 by digest\n",
		"The log ends inside a turn: it is being written, or a crash left it so.\n",
		"40 bytes behind the last whole write were not replayed.\n")
}

// A transcript of the same events comes before what the replay yields.
func TestReplayTranscript(t *testing.T) {
	dir := sampleSession(t, nil)
	s := newShot(t).want(exitOK, "sessions", "replay", sampleID, "--dir", dir, "--transcript")
	told, sums, _ := strings.Cut(s.out.String(), "\n1.1.0  1 message")
	for _, part := range []string{"session " + sampleID, "How many lines does a.txt have?", "count_lines", "Three lines."} {
		if !strings.Contains(told, part) {
			t.Errorf("the transcript lacks %q:\n%s", part, told)
		}
	}
	if !strings.HasSuffix(sums, "2 requests derived, 2 as logged, 0 by digest\n") {
		t.Errorf("behind the transcript: %s", sums)
	}
	newShot(t).want(exitUsage, "sessions", "replay", sampleID, "--dir", dir, "--transcript", "--json")
}

func TestReplayRequests(t *testing.T) {
	dir := sampleSession(t, nil)
	for which, want := range map[string]string{
		"all": "1 2", "1": "1", "2": "2", "1.1": "1", "1.2.0": "2", "1.2": "2",
	} {
		s := newShot(t).want(exitOK, "sessions", "replay", sampleID, "--dir", dir, "--requests", which)
		var got []string
		for line := range strings.Lines(s.out.String()) {
			var r struct {
				Version  int
				Type     string
				N        json.Number
				Header   dsh.Header
				Messages []*dsh.Message
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			got = append(got, r.N.String())
			if r.Version != 1 || r.Type != "derived" || r.Header.System != "You answer briefly." || len(r.Header.Tools) != 1 ||
				r.N == "1" && len(r.Messages) != 1 || r.N == "2" && len(r.Messages) != 3 {
				t.Errorf("%s: %s", which, line)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("--requests %s writes %q, want %q", which, got, want)
		}
	}
	s := newShot(t).want(exitFailed, "sessions", "replay", sampleID, "--dir", dir, "--requests", "3.1")
	s.says(&s.err, "the log tells of 2 requests, and none is the one that is asked for")
	for _, bad := range []string{"0", "x", "1.2.3.4", "-1", "1.", ".1", "1.x"} {
		s := newShot(t).want(exitUsage, "sessions", "replay", sampleID, "--dir", dir, "--requests", bad)
		s.says(&s.err, "--requests \""+bad+"\" is not N (from 1)")
	}
	newShot(t).want(exitUsage, "sessions", "replay", sampleID, "--dir", dir, "--requests", "1", "--json")
}

func TestReplayRefuses(t *testing.T) {
	dir := sampleSession(t, nil)
	s := newShot(t).want(exitUsage, "sessions", "replay", "--dir", dir)
	s.says(&s.err, "the ID of a session is needed")
	newShot(t).want(exitUsage, "sessions", "replay", "nobody", "--dir", dir)
	dir = sampleSession(t, func(data []byte) []byte { return bytes.Replace(data, []byte(`"seq":20`), []byte(`"seq":21`), 1) })
	s = newShot(t).want(exitFailed, "sessions", "replay", sampleID, "--dir", dir)
	s.says(&s.err, "jsonl: read "+sampleID)
}

// An audited agent's requests are compared with what was sent, also of those
// with parameters.
func TestReplayOfAuditedSession(t *testing.T) {
	dir := t.TempDir()
	store, err := jsonl.Open(dir, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.New(runtime.Options{
		Store: store, Hooks: []any{audit.Witness{}},
		Providers: map[string]llm.Provider{"p": scripted.New(scripted.Options{}, scripted.Text("done", 1), scripted.Error(&dsh.Failure{Code: dsh.CodeAuth, Message: "no"}))},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close(context.Background()) }()
	a, err := rt.Create(t.Context(), runtime.Spec{ID: "a", Session: "audited", Provider: "p", Model: "m", Seed: new(int64)})
	if err != nil {
		t.Fatal(err)
	}
	for _, prompt := range []string{"go", "go on"} {
		if _, err := a.Run(t.Context(), prompt); err != nil {
			t.Fatal(err)
		}
	}
	if err := rt.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newShot(t).want(exitOK, "sessions", "replay", "audited", "--dir", dir)
	s.says(&s.out, "1.1.0  1 message   no count  answered     ok, by digest\n2.1.0  3 messages  no count  failed AUTH  ok, by digest\n",
		"2 requests derived, 2 as logged, 2 by digest\n")
	s = newShot(t).want(exitOK, "sessions", "replay", "audited", "--dir", dir, "--requests", "1")
	s.says(&s.out, `"parameters":{"seed":0}`)
	s = newShot(t).want(exitOK, "sessions", "replay", "audited", "--dir", dir, "--json")
	s.says(&s.out, `"digest":"same"`, `"error":{"code":"AUTH","message":"no"}`, `"by_digest":2`)
}

// An audit is asked for by a flag, a file or the environment; a replay then
// compares what was sent.
func TestRunAudited(t *testing.T) {
	dir := project(t)
	if err := os.MkdirAll(filepath.Join(dir, ".dsh-actor"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args    []string
		env     string
		project string
		want    string
	}{
		"a flag":          {args: []string{"--audit"}, want: "2 by digest"},
		"the environment": {env: "true", want: "2 by digest"},
		"a project":       {project: "audit: true\n", want: "2 by digest"},
		"a flag is over":  {args: []string{"--audit=false"}, project: "audit: true\n", want: "0 by digest"},
		"nobody":          {want: "0 by digest"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(dir, ".dsh-actor", "config.yaml"), []byte(tt.project), 0o600); err != nil {
				t.Fatal(err)
			}
			home := newHome(t)
			s := shotIn(t, home)
			s.env["DSH_ACTOR_AUDIT"] = tt.env
			s.want(exitOK, append([]string{"run", "--provider", "demo", "--cwd", dir, "-o", "json", "List the files"}, tt.args...)...)
			id := string(resultOf(t, s).Session)
			s = shotIn(t, home).want(exitOK, "sessions", "replay", id)
			s.says(&s.out, "2 requests derived, 2 as logged, "+tt.want+"\n")
		})
	}
}
