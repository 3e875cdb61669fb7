package toolset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/tool"
)

type shell struct {
	*workspace
	program          string
	allowEnv         []string
	timeout, maxTime time.Duration
	killDelay        time.Duration
	maxOutput        int
}

type shellArgs struct {
	Command string `json:"command" jsonschema:"the command line"`
	Timeout int    `json:"timeout_seconds,omitempty" jsonschema:"the time that the command may take, in seconds"`
}

// newShell returns the tool that runs commands. It cannot be confined by
// path: a command reads and writes whatever the process can.
func newShell(w *workspace, o Options) tool.Tool {
	s := shell{
		workspace: w, program: o.Shell, allowEnv: o.AllowEnv,
		timeout: o.ShellTimeout, maxTime: o.MaxShellTimeout, killDelay: o.KillDelay, maxOutput: o.MaxOutput,
	}
	return tool.FuncResult(Shell, fmt.Sprintf("Runs a command with %s -c in the working directory and shows its output and exit status. There is no input. "+
		"A command has %v unless timeout_seconds says otherwise, at most %v. Every call is a shell of its own: a changed directory or variable is forgotten. "+
		"Background processes end with the command, unless started with setsid and their output redirected. "+
		"Of an output over %d bytes the beginning and the end are shown.", path.Base(o.Shell), o.ShellTimeout, o.MaxShellTimeout, o.MaxOutput), s.run)
}

// errOutOfTime is the cause of a command's context when its time is over.
var errOutOfTime = errors.New("toolset: the command is out of time")

func (s shell) run(ctx context.Context, in shellArgs) (tool.Result, error) {
	if strings.TrimSpace(in.Command) == "" {
		return tool.Result{}, badArgs("command is empty.")
	}
	if in.Timeout < 0 {
		return tool.Result{}, badArgs("timeout_seconds is negative.")
	}
	limit := s.timeout
	if in.Timeout > 0 {
		limit = s.maxTime
		if in.Timeout < int(s.maxTime/time.Second) {
			limit = time.Duration(in.Timeout) * time.Second
		}
	}
	timed, cancel := context.WithTimeoutCause(ctx, limit, errOutOfTime)
	defer cancel()
	c, err := s.execute(timed, in.Command)
	if err != nil {
		return tool.Result{}, err
	}
	switch {
	case c.err == nil || timed.Err() == nil:
		return c.result(), nil
	case ctx.Err() == nil:
		return tool.Result{}, &tool.Error{
			Code: CodeTimeout, Cause: errOutOfTime,
			Message: fmt.Sprintf("The command was stopped after %v, the time that it had. Ask for more with timeout_seconds (at most %d), or do less at once.\n%s",
				limit, int(s.maxTime/time.Second), c.output()),
		}
	}
	return tool.Result{}, &tool.Error{
		Name: dsh.ToolAborted.Name, Code: dsh.ToolAborted.Code, Cause: ctx.Err(),
		Message: "The command was stopped because the turn was cancelled.\n" + c.output(),
	}
}

// A command is one that has ended.
type command struct {
	out      *headTail
	state    *os.ProcessState
	err      error // of Wait
	took     time.Duration
	leftOver bool // background processes had to be ended
	held     bool // somebody outside the group still holds the output
}

// drain is how long the output of a command is read after its processes have
// ended. Only a process that left the group can make it wait.
const drain = time.Second

// execute runs a command in a process group of its own and returns when every
// process of the group has ended or was killed. Cancelling ctx sends SIGTERM to
// the group, and SIGKILL after the delay.
//
// The output is read from a pipe of ours rather than by os/exec, whose Wait
// would not return while a background process holds the pipe.
func (s shell) execute(ctx context.Context, line string) (*command, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	defer r.Close()
	cmd := exec.CommandContext(ctx, s.program, "-c", line)
	cmd.Dir = s.dir
	cmd.Env = append(s.environ(os.Environ()), "PWD="+s.dir)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.WaitDelay = s.killDelay // then the shell itself is killed
	ownGroup(cmd)
	start := time.Now()
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		return nil, s.notStarted(ctx, err)
	}
	c := &command{out: newHeadTail(s.maxOutput)}
	read := make(chan error, 1)
	go func() {
		_, err := io.Copy(c.out, r)
		read <- err
	}()
	c.err = cmd.Wait()
	c.leftOver = endGroup(cmd.Process.Pid, s.killDelay)
	_ = r.SetReadDeadline(time.Now().Add(drain))
	c.held = errors.Is(<-read, os.ErrDeadlineExceeded)
	c.state, c.took = cmd.ProcessState, time.Since(start)
	return c, nil
}

func (s shell) notStarted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fileError(s.program+" in "+s.dir, err)
}

// environ returns the variables without those that look like secrets.
func (s shell) environ(all []string) []string {
	return slices.DeleteFunc(all, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "PWD" || secret(name) && !slices.Contains(s.allowEnv, name)
	})
}

func secret(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasSuffix(name, "_API_KEY") || strings.HasSuffix(name, "_TOKEN") ||
		strings.Contains(name, "SECRET") || strings.Contains(name, "PASSWORD")
}

func (c *command) result() tool.Result {
	text := c.output()
	m := shellMeta{
		ExitCode: c.state.ExitCode(), Signal: signalOf(c.state), DurationMs: c.took.Milliseconds(),
		OutputBytes: c.out.total, DroppedBytes: c.out.dropped(),
	}
	if c.leftOver {
		text += "[Background processes were ended with the command.]\n"
	}
	if c.held {
		text += "[A process that goes on keeps the output open; what it writes is lost.]\n"
	}
	if m.Signal != "" {
		text += fmt.Sprintf("[ended by signal: %s]", m.Signal)
	} else {
		text += fmt.Sprintf("[exit status %d]", m.ExitCode)
	}
	res := tool.Text(text)
	res.Meta = meta(m)
	return res
}

// output is the text, ending with a line end if there is any.
func (c *command) output() string {
	text := c.out.String()
	if text == "" {
		return "(no output)\n"
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

type shellMeta struct {
	ExitCode     int    `json:"exitCode"` // -1 if ended by a signal
	Signal       string `json:"signal,omitempty"`
	DurationMs   int64  `json:"durationMs"`
	OutputBytes  int64  `json:"outputBytes"`
	DroppedBytes int64  `json:"droppedBytes,omitempty"`
}
