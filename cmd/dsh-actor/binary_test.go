//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// binary builds the command.
func binary(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the binary")
	}
	path := filepath.Join(t.TempDir(), "dsh-actor")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// A process is the binary as it runs.
type process struct {
	*exec.Cmd
	out, err buffer
}

// start runs the binary with nothing of this process's environment but what
// it needs, and kills it when the test waits too long.
func start(t *testing.T, path string, stdin io.Reader, stdout io.Writer, env []string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	p := &process{Cmd: exec.CommandContext(ctx, path, args...)}
	p.Env = append([]string{"PATH=" + os.Getenv("PATH"), envHome + "=" + t.TempDir()}, env...)
	p.Stdin, p.Stdout, p.Stderr = stdin, stdout, &p.err
	if stdout == nil {
		p.Stdout = &p.out
	}
	p.WaitDelay = time.Second
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// ends waits for the exit code.
func (p *process) ends(t *testing.T) int {
	t.Helper()
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

func TestBinary(t *testing.T) {
	path := binary(t)
	dir := project(t)

	t.Run("works without a key", func(t *testing.T) {
		p := start(t, path, nil, nil, nil, "run", "--cwd", dir, "list the files and run `env`")
		if code := p.ends(t); code != exitOK || !strings.Contains(p.out.String(), "2 files") {
			t.Errorf("exit code %d\n%s\n%s", code, p.out.String(), p.err.String())
		}
	})
	t.Run("reads a pipe", func(t *testing.T) {
		p := start(t, path, strings.NewReader("read a.txt\n"), nil, nil, "run", "--cwd", dir)
		if code := p.ends(t); code != exitOK || !strings.Contains(p.out.String(), "a.txt has 2 lines") {
			t.Errorf("exit code %d\n%s\n%s", code, p.out.String(), p.err.String())
		}
	})
	t.Run("refuses nothing", func(t *testing.T) {
		p := start(t, path, nil, nil, nil, "run")
		if code := p.ends(t); code != exitUsage {
			t.Errorf("exit code %d\n%s", code, p.err.String())
		}
	})
	t.Run("keeps keys to itself", func(t *testing.T) {
		srv := llmtest.NewServer(t, llmtest.ToolCalls(dsh.ToolCall{ID: "c", Name: "shell", Arguments: `{"command":"env"}`}), llmtest.Text("done"))
		p := start(t, path, nil, nil, []string{"OPENAI_API_KEY=sk-secret-1", "DSH_ACTOR_API_KEY=sk-secret-2"},
			remote(srv, "--verbose", "-o", "stream-json", "hi")...)
		if code := p.ends(t); code != exitOK || strings.Contains(p.out.String()+p.err.String(), "sk-secret") {
			t.Errorf("exit code %d\n%s\n%s", code, p.out.String(), p.err.String())
		}
	})
}

// Signals reach the process as they do from a terminal and from a supervisor.
func TestBinarySignals(t *testing.T) {
	path := binary(t)
	for _, tt := range []struct {
		name    string
		signals []os.Signal
		code    int
	}{
		{"Ctrl-C", []os.Signal{os.Interrupt}, exitInterrupted},
		{"Ctrl-C twice", []os.Signal{os.Interrupt, os.Interrupt}, exitInterrupted},
		{"SIGTERM", []os.Signal{syscall.SIGTERM}, 143},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pids := filepath.Join(t.TempDir(), "pids")
			line := `trap '' TERM; echo $$ > ` + pids + `; while :; do sleep 0.05; done`
			if len(tt.signals) == 1 {
				line = `sleep 300 & echo $! $$ > ` + pids + `; sleep 300`
			}
			srv := llmtest.NewServer(t, llmtest.ToolCalls(dsh.ToolCall{ID: "c", Name: "shell", Arguments: `{"command":` + strconv.Quote(line) + `}`}))
			p := start(t, path, nil, nil, nil, remote(srv, "hi")...)
			await(t, "the command", func() bool { return len(readPIDs(pids)) > 0 })
			for i, s := range tt.signals {
				if i > 0 {
					await(t, "the notice", func() bool { return strings.Contains(p.err.String(), "once more quits") })
				}
				if err := p.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			if code := p.ends(t); code != tt.code {
				t.Errorf("exit code %d, want %d\n%s", code, tt.code, p.err.String())
			}
			for _, pid := range readPIDs(pids) {
				await(t, "the end of process "+itoa(pid), func() bool { return gone(pid) })
			}
		})
	}
}

// A reader that leaves, as head does, ends the run without a signal's death.
func TestBinaryClosedPipe(t *testing.T) {
	path := binary(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, path, nil, w, nil, "run", "--tools", "none", "hello")
	_ = w.Close()
	first := make([]byte, 4)
	if _, err := io.ReadFull(r, first); err != nil || !bytes.Equal(first, []byte("This")) {
		t.Errorf("read %q: %v", first, err)
	}
	_ = r.Close()
	if code := p.ends(t); code != exitFailed {
		t.Errorf("exit code %d\n%s", code, p.err.String())
	}
	if got := p.err.String(); !strings.Contains(got, "stdout was closed") || strings.Contains(got, "goroutine") {
		t.Errorf("stderr: %s", got)
	}
}

// However a process ends, its session goes on: the turns are numbered on, and
// the model is told what became of the call that was running.
func TestBinaryGoesOn(t *testing.T) {
	path := binary(t)
	for _, tt := range []struct {
		name   string
		signal os.Signal
		told   string
		says   string
	}{
		{"kill -9", os.Kill, dsh.TextOutcomeUnknown, "turn 1 was interrupted before its end; it is closed, with an error as the result of 1 call"},
		{"SIGTERM", syscall.SIGTERM, "", ""},
		{"Ctrl-C", os.Interrupt, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home, dir := t.TempDir(), project(t)
			pids := filepath.Join(t.TempDir(), "pids")
			line := `echo $$ > ` + pids + `; exec sleep 300`
			srv := llmtest.NewServer(t,
				llmtest.ToolCalls(dsh.ToolCall{ID: "c", Name: "shell", Arguments: `{"command":` + strconv.Quote(line) + `}`}), llmtest.Text("I see"))
			env := []string{envHome + "=" + home, envBaseURL + "=" + srv.URL}
			p := start(t, path, nil, nil, env, "run", "--provider", "openai", "--model", "m", "--cwd", dir, "hi")
			await(t, "the command", func() bool { return len(readPIDs(pids)) > 0 })
			if err := p.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			p.ends(t)
			for _, pid := range readPIDs(pids) {
				_ = syscall.Kill(pid, syscall.SIGKILL) // nobody else ends it after kill -9
			}

			p = start(t, path, nil, nil, env, "run", "--continue", "--cwd", dir, "-o", "json", "what happened?")
			if code := p.ends(t); code != exitOK {
				t.Fatalf("exit code %d\n%s", code, p.err.String())
			}
			if got := p.out.String(); !strings.Contains(got, `"turn":2,`) || !strings.Contains(got, `"text":"I see"`) || !strings.Contains(got, `"resumed":true`) {
				t.Errorf("result %s", got)
			}
			if !strings.Contains(p.err.String(), tt.says) {
				t.Errorf("stderr lacks %q:\n%s", tt.says, p.err.String())
			}
			var b body
			srv.Requests()[1].Decode(t, &b)
			said := b.said()
			if !strings.HasPrefix(said, "user: hi\nassistant: \ntool: "+tt.told) || !strings.HasSuffix(said, "\nuser: what happened?") || b.Model != "m" {
				t.Errorf("%s was asked:\n%s", b.Model, said)
			}
		})
	}
}
