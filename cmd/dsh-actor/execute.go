package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/demo"
	"github.com/dsh-actor/dsh-actor/actors/llm/openai"
)

// Exit codes. They are part of what the command promises; a command that a
// signal interrupted exits with 128 and the signal's number.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitLimit       = 3
	exitInterrupted = 130
)

// execute runs the command line and returns the exit code. The first signal
// asks what runs to end, which is waited for; the second ends the waiting, and
// goroutines may be left behind.
func execute(
	ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer,
	env func(string) string, signals <-chan os.Signal,
) int {
	return newApp(stdin, stdout, stderr, env).execute(ctx, args, signals)
}

// An app is one execution of the command line.
type app struct {
	stdin  io.Reader
	stdout *outlet
	stderr *outlet
	env    func(string) string

	stop *interrupts
	code int // of a command that ran

	pace  time.Duration // of the demo
	quiet time.Duration // of silence before it is mentioned
	limit atomic.Int64  // when the adapter gives a silent request up, in Unix ms; 0 for none
	hooks []any         // besides the default ones
}

func newApp(stdin io.Reader, stdout, stderr io.Writer, env func(string) string) *app {
	return &app{
		stdin: stdin, stdout: newOutlet(stdout), stderr: newOutlet(stderr), env: env,
		pace: demo.DefaultPace, quiet: 10 * time.Second,
	}
}

func (a *app) execute(ctx context.Context, args []string, signals <-chan os.Signal) int {
	a.stop = watch(signals)
	defer a.stop.end()
	done := make(chan int, 1)
	go func() { done <- a.command(ctx, args) }()
	select {
	case code := <-done:
		return code
	case <-a.stop.hard:
	}
	killChildren()
	a.stderr.tell("dsh-actor: quit at once; what was running was not waited for\n")
	a.stdout.shut()
	a.stderr.shut()
	return a.stop.code()
}

// stalling notes how long a silent request has left.
func (a *app) stalling(_ context.Context, q openai.Quiet) {
	a.limit.Store(time.Now().Add(q.Left).UnixMilli())
}

// command runs the command that args name.
func (a *app) command(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var failed *failure
	switch {
	case err == nil:
		return a.code
	case errors.As(err, &failed):
		a.complain(failed)
		return exitFailed
	}
	a.complain(err)
	_, _ = fmt.Fprintf(a.stderr, "Run '%s --help' for usage.\n", cmd.CommandPath())
	return exitUsage
}

// complain writes an error, which may quote what a log or a server said.
func (a *app) complain(err error) {
	for line := range strings.Lines(strings.TrimSpace(err.Error())) {
		_, _ = fmt.Fprintf(a.stderr, "dsh-actor: %s\n", printable(strings.TrimSpace(line)))
	}
}

// failure is the error of a command that was used rightly. Any other error is
// one of usage.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// failed marks an error of a command that was used rightly.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &failure{err}
}
