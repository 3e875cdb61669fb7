//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// A turn with tool calls over real HTTP and SSE.
func TestToolTurn(t *testing.T) {
	s := newShot(t)
	dir := project(t)
	srv := llmtest.NewServer(t,
		llmtest.Text("Let me ", "look.").Reasoning("which?").Usage(100, 0, 10).ToolCalls(
			dsh.ToolCall{ID: "c1", Name: "read_file", Arguments: `{"path":"a.txt"}`},
			dsh.ToolCall{ID: "c2", Name: "read_fil", Arguments: `{"path":"b.md"}`},
			dsh.ToolCall{ID: "c3", Name: "shell", Arguments: `{"command":"exit 3"}`},
		),
		llmtest.Text("Two ", "lines.\n").Usage(20, 110, 4),
	)
	s.want(exitOK, remote(srv, "--cwd", dir, "how long is a.txt?")...)
	golden(t, "tools.stdout", s.out.String(), dir)
	golden(t, "tools.stderr", s.err.String(), dir)
}

// However a stream fails, it does not look like an answer.
func TestFaults(t *testing.T) {
	again := func(r llmtest.Response) []llmtest.Response {
		return []llmtest.Response{r, r, r, r, r, r}
	}
	for _, tt := range []struct {
		name   string
		script []llmtest.Response
		code   int
		ends   dsh.EndKind
		err    string
		text   string
		tries  int
	}{
		{"cut, then well", []llmtest.Response{llmtest.Text("half an ans", "wer").CutAfter(2), llmtest.Text("whole")},
			exitOK, dsh.EndCompleted, "", "whole", 2},
		{"error in the stream", []llmtest.Response{llmtest.Text("half", "x").ErrorAfter(2, `{"message":"bad request in the stream","type":"invalid_request_error","code":"invalid_request_error"}`)},
			exitFailed, dsh.EndError, "INVALID_REQUEST", "", 1},
		{"401", []llmtest.Response{llmtest.Status(401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`)},
			exitFailed, dsh.EndError, "AUTH", "", 1},
		{"429, then well", []llmtest.Response{llmtest.RateLimitedFor(10 * time.Millisecond), llmtest.Text("fine")},
			exitOK, dsh.EndCompleted, "", "fine", 2},
		{"429 for too long", []llmtest.Response{llmtest.RateLimited("3600")}, exitFailed, dsh.EndError, "RATE_LIMIT", "", 1},
		{"429 for ever", again(llmtest.RateLimitedFor(time.Millisecond)), exitFailed, dsh.EndError, "RATE_LIMIT", "", 6},
		{"length", []llmtest.Response{llmtest.Text("long").Finish("length")}, exitLimit, dsh.EndMaxTokens, "MAX_TOKENS", "long", 1},
		{"half a call", []llmtest.Response{
			llmtest.ToolCalls(dsh.ToolCall{ID: "c", Name: "shell", Arguments: `{"command":"touch ran"}`}).EndAfter(3), llmtest.Text("fine"),
		}, exitOK, dsh.EndCompleted, "", "fine", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShot(t)
			dir := project(t)
			srv := llmtest.NewServer(t, tt.script...)
			s.want(tt.code, remote(srv, "--cwd", dir, "-o", "stream-json", "hi")...)
			events, last := stream(t, s.out.String())
			end, ok := events[len(events)-1].Data.(dsh.TurnEnd)
			if !ok || end.Reason.Kind != tt.ends || last.Ending != tt.ends || last.OK != (tt.code == exitOK) || last.ExitCode != tt.code {
				t.Errorf("end %+v, result %+v", end, last)
			}
			if tt.err != "" && (last.Error == nil || last.Error.Code != tt.err) || tt.err == "" && last.Error != nil {
				t.Errorf("error %+v, want %q", last.Error, tt.err)
			}
			if last.Text != tt.text {
				t.Errorf("text %q, want %q", last.Text, tt.text)
			}
			if got := len(srv.Requests()); got != tt.tries || last.Retries != tt.tries-1 {
				t.Errorf("%d requests and %d retries, want %d tries", got, last.Retries, tt.tries)
			}
			if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
				t.Error("half a call was run")
			}
		})
	}
}

// What a cut attempt has said is on stdout already; the next begins a line of
// its own, and stderr says why.
func TestRetryIsSaid(t *testing.T) {
	s := newShot(t)
	srv := llmtest.NewServer(t, llmtest.Text("half an ans", "wer").CutAfter(2), llmtest.Text("whole"))
	s.want(exitOK, remote(srv, "hi")...)
	if got := s.out.String(); got != "half an ans\nwhole\n" {
		t.Errorf("stdout: %q", got)
	}
	s.says(&s.err, "retry 1/5 in", "after TRANSPORT", "it starts again", "· 1 retry ·")
}

// Ctrl-C at each stage ends the turn in order: it is logged as the user's, and
// nothing is left.
func TestInterrupt(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	sleeper := `sleep 300 & echo $! >> ` + pids + `; echo $$ >> ` + pids + `; sleep 300`
	for _, tt := range []struct {
		name    string
		script  []llmtest.Response
		reached func(s *shot, srv *llmtest.Server) bool
		want    []string // the last events
	}{
		{"before the first byte", []llmtest.Response{llmtest.Text("a").StallAfter(0)},
			func(_ *shot, srv *llmtest.Server) bool { return len(srv.Requests()) == 1 },
			[]string{dsh.TypeRequestContext, dsh.TypeStepEnd, dsh.TypeTurnEnd}},
		{"in the text", []llmtest.Response{llmtest.Text("some", "more").StallAfter(2)},
			func(s *shot, _ *llmtest.Server) bool { return strings.Contains(s.out.String(), "text-delta") },
			[]string{dsh.TypeAssistantMessage, dsh.TypeStepEnd, dsh.TypeTurnEnd}},
		{"in a call's arguments", []llmtest.Response{llmtest.ToolCalls(dsh.ToolCall{ID: "c", Name: "shell", Arguments: `{}`}).StallAfter(2)},
			func(s *shot, _ *llmtest.Server) bool { return s.has(dsh.TypeAssistantChunk) },
			[]string{dsh.TypeAssistantChunk, dsh.TypeStepEnd, dsh.TypeTurnEnd}},
		{"in a tool", []llmtest.Response{llmtest.ToolCalls(
			dsh.ToolCall{ID: "c1", Name: "shell", Arguments: `{"command":` + strconv.Quote(sleeper) + `}`},
			dsh.ToolCall{ID: "c2", Name: "todo", Arguments: `{"todos":[]}`},
		)},
			func(*shot, *llmtest.Server) bool { return len(readPIDs(pids)) == 2 },
			[]string{dsh.TypeToolStarted, dsh.TypeToolFinished, dsh.TypeToolStarted, dsh.TypeToolFinished, dsh.TypeStepEnd, dsh.TypeTurnEnd}},
		{"in the wait for a retry", []llmtest.Response{llmtest.RateLimited("9")},
			func(s *shot, _ *llmtest.Server) bool { return s.has(dsh.TypeRetryScheduled) },
			[]string{dsh.TypeRetryScheduled, dsh.TypeStepEnd, dsh.TypeTurnEnd}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShot(t)
			srv := llmtest.NewServer(t, tt.script...)
			s.begin(remote(srv, "-o", "stream-json", "hi")...)
			await(t, tt.name, func() bool { return tt.reached(s, srv) })
			begun := time.Now()
			s.signals <- os.Interrupt
			if code := s.end(); code != exitInterrupted {
				t.Fatalf("exit code %d\n%s", code, s.err.String())
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			events, last := stream(t, s.out.String())
			end, ok := events[len(events)-1].Data.(dsh.TurnEnd)
			if !ok || end.Reason.Kind != dsh.EndAborted || end.Reason.Cause.Kind != dsh.CauseUser {
				t.Errorf("end %+v", end)
			}
			if last.OK || last.Ending != dsh.EndAborted || last.Cause != "user" || last.Error.Code != "INTERRUPTED" || last.ExitCode != exitInterrupted {
				t.Errorf("result %+v", last)
			}
			var types []string
			for _, ev := range events[max(0, len(events)-len(tt.want)):] {
				types = append(types, ev.Type())
			}
			if strings.Join(types, " ") != strings.Join(tt.want, " ") {
				t.Errorf("the log ends with %v, want %v", types, tt.want)
			}
			s.says(&s.err, "interrupted; ending the turn in order", "aborted: the turn was interrupted")
			for _, pid := range readPIDs(pids) {
				await(t, "the end of process "+itoa(pid), func() bool { return gone(pid) })
			}
			if n := len(srv.Requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// A second Ctrl-C quits at once, and takes the processes along.
func TestInterruptTwice(t *testing.T) {
	s := newShot(t)
	pids := filepath.Join(t.TempDir(), "pids")
	stubborn := `trap '' TERM; echo $$ > ` + pids + `; while :; do sleep 0.05; done`
	srv := llmtest.NewServer(t, llmtest.ToolCalls(dsh.ToolCall{ID: "c", Name: "shell", Arguments: `{"command":` + strconv.Quote(stubborn) + `}`}))
	s.begin(remote(srv, "hi")...)
	await(t, "the command", func() bool { return len(readPIDs(pids)) == 1 })
	s.signals <- os.Interrupt
	await(t, "the notice", func() bool { return strings.Contains(s.err.String(), "once more quits") })
	begun := time.Now()
	s.signals <- os.Interrupt
	if code := s.end(); code != exitInterrupted || time.Since(begun) > time.Second {
		t.Errorf("exit code %d after %v", code, time.Since(begun))
	}
	s.says(&s.err, "quit at once")
	pid := readPIDs(pids)[0]
	await(t, "the end of the command", func() bool { return gone(pid) })
}

// SIGTERM ends the turn in order, too, with the session's end as the cause.
func TestTerminate(t *testing.T) {
	for _, tt := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}} {
		t.Run(tt.signal.String(), func(t *testing.T) {
			s := newShot(t)
			srv := llmtest.NewServer(t, llmtest.Text("some", "more").StallAfter(2))
			s.begin(remote(srv, "-o", "stream-json", "hi")...)
			await(t, "text", func() bool { return strings.Contains(s.out.String(), "text-delta") })
			s.signals <- tt.signal
			if code := s.end(); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			_, last := stream(t, s.out.String())
			if last.Ending != dsh.EndAborted || last.Cause != "disposed" || last.Text != "some" {
				t.Errorf("result %+v", last)
			}
		})
	}
}

// A signal while the prompt is typed ends the command: nothing has begun.
func TestInterruptWhileReadingStdin(t *testing.T) {
	s := newShot(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdin = r
	s.begin("run", "-")
	s.signals <- os.Interrupt
	if code := s.end(); code != exitInterrupted || s.out.String() != "" {
		t.Errorf("exit code %d, stdout %q", code, s.out.String())
	}
	_ = w.Close() // frees who reads, who was left behind
	t.Cleanup(func() { _ = r.Close() })
}

// A reader that leaves ends the turn; nobody else is told.
func TestClosedOutput(t *testing.T) {
	s := newShot(t)
	srv := llmtest.NewServer(t, llmtest.Text("some", "more").StallAfter(2))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer func() { _ = w.Close() }()
	s.stdout = w
	if code := s.begin(remote(srv, "hi")...).end(); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	s.says(&s.err, "aborted: stdout was closed", "dsh-actor: stdout: write")
}

// A reader that is stuck holds up what is shown, not the interrupt.
func TestInterruptWhileOutputIsStuck(t *testing.T) {
	s := newShot(t)
	srv := llmtest.NewServer(t, llmtest.Text("some", "more").StallAfter(2))
	r, w := io.Pipe()
	t.Cleanup(func() { _ = r.Close() })
	s.stdout = w
	s.begin(remote(srv, "hi")...)
	await(t, "the request", func() bool { return len(srv.Requests()) == 1 })
	s.signals <- os.Interrupt
	await(t, "the notice", func() bool { return strings.Contains(s.err.String(), "once more quits") })
	s.signals <- os.Interrupt
	if code := s.end(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
}

// later is a hook that queues a message while a tool is about to run.
type later struct{}

func (later) PreTool(ctx context.Context, c hook.Call, next hook.PreToolFunc) (hook.Verdict, error) {
	if err := c.Agent.Followup(ctx, dsh.UserText("and then this")); err != nil {
		return hook.Verdict{}, err
	}
	return next(ctx, c)
}

// A message that nobody took is told of.
func TestPending(t *testing.T) {
	s := newShot(t)
	s.hooks = []any{later{}}
	srv := llmtest.NewServer(t, llmtest.ToolCalls(dsh.ToolCall{ID: "c", Name: "shell", Arguments: `{"command":"sleep 300"}`}))
	s.begin(remote(srv, "-o", "stream-json", "hi")...)
	await(t, "the call", func() bool { return strings.Contains(s.err.String(), "→ shell") })
	await(t, "the message", func() bool { return strings.Contains(s.out.String(), "and then this") })
	s.signals <- os.Interrupt
	if code := s.end(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if _, last := stream(t, s.out.String()); last.Pending != 1 {
		t.Errorf("result %+v", last)
	}
	s.says(&s.err, "1 message accepted and not processed: still pending in session ")
}

// What follows from a prompt belongs to the run.
func TestFollowupRuns(t *testing.T) {
	s := newShot(t)
	s.hooks = []any{later{}}
	srv := llmtest.NewServer(t,
		llmtest.ToolCalls(dsh.ToolCall{ID: "c", Name: "todo", Arguments: `{"todos":[]}`}), llmtest.Text("first"), llmtest.Text("second"))
	s.want(exitOK, remote(srv, "-o", "json", "hi")...)
	s.says(&s.out, `"turn":2,"ending":"completed","ok":true`, `"text":"second"`, `"steps":3`, `"pending":0`)
}

// closed is a hook that refuses every step.
type closed struct{}

func (closed) PreStep(context.Context, hook.Step, hook.PreStepFunc) (hook.Decision, error) {
	return hook.Decision{Reject: true}, nil
}

func TestBlocked(t *testing.T) {
	s := newShot(t)
	s.hooks = []any{closed{}}
	s.want(exitFailed, "run", "-o", "json", "hi")
	s.says(&s.out, `"ending":"blocked","ok":false,"exit_code":1`, `"error":{"code":"BLOCKED"`)
}

// The caller's context ends a run as SIGTERM does.
func TestContext(t *testing.T) {
	s := newShot(t)
	srv := llmtest.NewServer(t, llmtest.Text("some", "more").StallAfter(2))
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int)
	go func() {
		code <- execute(ctx, remote(srv, "--store", "memory", "hi"), strings.NewReader(""), &s.out, &s.err, func(string) string { return "" }, nil)
	}()
	await(t, "text", func() bool { return s.out.String() == "some" })
	cancel()
	if got := <-code; got != exitFailed || s.out.String() != "some\n" {
		t.Errorf("exit code %d, stdout %q", got, s.out.String())
	}
	s.says(&s.err, "aborted: the turn was aborted by disposed")
}
