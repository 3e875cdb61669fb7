//go:build unix

package toolset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/tool"
)

// soon bounds what should take no time but may on a busy machine.
const soon = 20 * time.Second

func TestShell(t *testing.T) {
	k := newKit(t, Options{})
	for _, c := range []struct{ command, want string }{
		{"echo out; echo err >&2", "out\nerr\n[exit status 0]"},
		{"exit 3", "(no output)\n[exit status 3]"},
		{"printf x; false", "x\n[exit status 1]"},
		{"no-such-command-here 2>/dev/null", "(no output)\n[exit status 127]"},
		{"kill -9 $$", "(no output)\n[ended by signal: killed]"},
		{"cat", "(no output)\n[exit status 0]"}, // there is no input
		{`printf 'caf\351'`, "caf\uFFFD\n[exit status 0]"},
	} {
		if got := k.want(Shell, args{"command": c.command}); got != c.want {
			t.Errorf("%s: %q", c.command, got)
		}
	}
	dir, err := filepath.EvalSymlinks(k.dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := k.want(Shell, args{"command": "pwd; echo $PWD"}); got != dir+"\n"+dir+"\n[exit status 0]" {
		t.Errorf("directory: %q", got)
	}
	res, err := k.call(t.Context(), Shell, args{"command": "printf abc; exit 5"})
	var m shellMeta
	if err != nil || json.Unmarshal(res.Meta, &m) != nil || m.ExitCode != 5 || m.OutputBytes != 3 || m.DroppedBytes != 0 {
		t.Errorf("meta %s %v", res.Meta, err)
	}
}

func TestShellRefuses(t *testing.T) {
	k := newKit(t, Options{})
	k.refuse("INVALID_ARGS", Shell, args{"command": " "}, "empty")
	k.refuse("INVALID_ARGS", Shell, args{"command": "true", "timeout_seconds": -1}, "negative")
	k.refuse("INVALID_ARGS", Shell, args{}, "command: missing")
	none := newKit(t, Options{Shell: "/no/such/shell"})
	none.refuse(CodeNotFound, Shell, args{"command": "true"}, "/no/such/shell")
	gone := newKit(t, Options{Root: filepath.Join(mkdir(t, "x"), ".")})
	if err := os.Remove(gone.dir); err != nil {
		t.Fatal(err)
	}
	gone.refuse(CodeNotFound, Shell, args{"command": "true"}, gone.dir)
	gone.refuse(CodeNotFound, ReadFile, args{"path": "a"})
}

func mkdir(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestShellEnvironment(t *testing.T) {
	t.Setenv("DEEPSEEK_API_KEY", "k1")
	t.Setenv("GITHUB_TOKEN", "k2")
	t.Setenv("My_Secret_Thing", "k3")
	t.Setenv("DB_PASSWORD_FILE", "k4")
	t.Setenv("HARMLESS", "yes")
	t.Setenv("TOKENIZER", "yes")
	k := newKit(t, Options{AllowEnv: []string{"GITHUB_TOKEN"}})
	const command = "echo $DEEPSEEK_API_KEY,$GITHUB_TOKEN,$My_Secret_Thing,$DB_PASSWORD_FILE,$HARMLESS,$TOKENIZER"
	if got := k.want(Shell, args{"command": command}); got != ",k2,,,yes,yes\n[exit status 0]" {
		t.Errorf("%q", got)
	}
}

func TestShellTimeout(t *testing.T) {
	k := newKit(t, Options{ShellTimeout: 800 * time.Millisecond, MaxShellTimeout: time.Second, KillDelay: 200 * time.Millisecond})
	start := time.Now()
	k.refuse(CodeTimeout, Shell, args{"command": "echo begun; sleep 100"}, "stopped after 800ms", "begun\n", "at most 1")
	k.refuse(CodeTimeout, Shell, args{"command": "sleep 100", "timeout_seconds": 5000}, "stopped after 1s")
	// One that ignores SIGTERM is killed.
	k.refuse(CodeTimeout, Shell, args{"command": "trap '' TERM; while :; do sleep 0.05; done"}, "stopped after 800ms")
	if took := time.Since(start); took > soon {
		t.Errorf("took %v", took)
	}
}

// pids reads the numbers that a command wrote, once there are n of them.
func (k *kit) pids(name string, n int) []int {
	k.t.Helper()
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		content, _ := os.ReadFile(k.path(name))
		fields := strings.Fields(string(content))
		if len(fields) < n || !bytes.HasSuffix(content, []byte("\n")) {
			continue
		}
		var pids []int
		for _, f := range fields {
			pid, err := strconv.Atoi(f)
			if err != nil {
				k.t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		return pids
	}
	k.t.Fatal("the command wrote no process numbers")
	return nil
}

// gone waits until a process has ended; one that nobody waited for has.
func (k *kit) gone(pid int) {
	k.t.Helper()
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err == nil && bytes.Contains(stat, []byte(") Z ")) {
			return
		}
	}
	k.t.Errorf("process %d goes on", pid)
}

func TestShellCancelLeavesNoProcess(t *testing.T) {
	for name, command := range map[string]string{
		"obedient": "sleep 100 & echo $! >pids; sleep 100 & echo $! $$ >>pids; wait",
		"deaf":     "trap '' TERM; sleep 100 & echo $! >pids; sleep 100 & echo $! $$ >>pids; while :; do wait; sleep 0.05; done",
		"nested":   "sh -c 'sleep 100 & echo $! >pids; sleep 100 & echo $! $$ >>pids; wait' & wait",
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, Options{KillDelay: 300 * time.Millisecond})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := k.call(ctx, Shell, args{"command": command})
				done <- err
			}()
			pids := k.pids("pids", 3)
			start := time.Now()
			cancel()
			select {
			case err := <-done:
				var own *tool.Error
				if !errors.As(err, &own) || own.Failure() != dsh.ToolAborted || !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			case <-time.After(soon):
				t.Fatal("the call goes on")
			}
			t.Logf("ended %v after the cancel", time.Since(start))
			for _, pid := range pids {
				k.gone(pid)
			}
		})
	}
}

// A background process ends with the command and does not hold it up.
func TestShellBackground(t *testing.T) {
	k := newKit(t, Options{KillDelay: 300 * time.Millisecond})
	start := time.Now()
	for _, command := range []string{
		"sleep 100 & echo $! >pids; echo started",
		"sleep 100 >/dev/null 2>&1 & echo $! >pids; echo started",
		"(sleep 0 & echo $! >pids); sleep 100 & echo started",
	} {
		got := k.want(Shell, args{"command": command})
		if got != "started\n[Background processes were ended with the command.]\n[exit status 0]" {
			t.Errorf("%s: %q", command, got)
		}
		k.gone(k.pids("pids", 1)[0])
	}
	if took := time.Since(start); took > soon {
		t.Errorf("took %v", took)
	}
}

// One that has ended already is not worth a word.
func TestShellEndedBackground(t *testing.T) {
	k := newKit(t, Options{KillDelay: time.Minute})
	start := time.Now()
	if got := k.want(Shell, args{"command": "(sleep 0 & echo $! >pids); sleep 0.3; echo done"}); got != "done\n[exit status 0]" {
		t.Errorf("%q", got)
	}
	if took := time.Since(start); took > soon {
		t.Errorf("took %v", took)
	}
}

// One that left the group and holds the output cannot hold up the call.
func TestShellEscapedProcess(t *testing.T) {
	k := newKit(t, Options{KillDelay: 300 * time.Millisecond})
	if strings.Contains(k.want(Shell, args{"command": "command -v setsid || echo none"}), "none") {
		t.Skip("no setsid")
	}
	start := time.Now()
	got := k.want(Shell, args{"command": "setsid sh -c 'echo $$ >pids; exec sleep 100' & while [ ! -s pids ]; do sleep 0.01; done; echo started"})
	pid := k.pids("pids", 1)[0]
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	if !strings.HasPrefix(got, "started\n[A process that goes on keeps the output open") {
		t.Errorf("%q", got)
	}
	if took := time.Since(start); took > soon {
		t.Errorf("took %v", took)
	}
}

// An endless output costs no more memory than is kept of it.
func TestShellBoundedOutput(t *testing.T) {
	k := newKit(t, Options{ShellTimeout: time.Second, KillDelay: 300 * time.Millisecond, MaxOutput: 1000})
	_, err := k.call(t.Context(), Shell, args{"command": "echo first; yes"})
	var own *tool.Error
	if !errors.As(err, &own) || own.Code != CodeTimeout || len(own.Message) > 1300 || !strings.Contains(own.Message, "first\ny\n") ||
		!strings.Contains(own.Message, "bytes dropped") {
		t.Errorf("got %v", err)
	}
	k = newKit(t, Options{MaxOutput: 1000})
	res, err := k.call(t.Context(), Shell, args{"command": "echo first; yes | head -n 100000; echo last"})
	if err != nil {
		t.Fatal(err)
	}
	text := dsh.TextOf(res.Content)
	if !strings.HasPrefix(text, "first\ny\n") || !strings.HasSuffix(text, "y\nlast\n[exit status 0]") || !strings.Contains(text, "[… 199011 bytes dropped …]") {
		t.Errorf("got %q", text)
	}
	var m shellMeta
	if json.Unmarshal(res.Meta, &m) != nil || m.OutputBytes != 200_011 || m.DroppedBytes != 199_011 {
		t.Errorf("meta %s", res.Meta)
	}
}

func TestHeadTail(t *testing.T) {
	const all = "abcdefghijklmnopqrstuvwxyz"
	for limit := range 30 {
		for chunk := 1; chunk <= len(all); chunk++ {
			h := newHeadTail(limit)
			for rest := all; rest != ""; {
				n := min(chunk, len(rest))
				_, _ = h.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			want := all
			if limit < len(all) {
				head, tail := limit-limit/2, limit/2
				want = all[:head] + "\n[… " + strconv.Itoa(len(all)-limit) + " bytes dropped …]\n" + all[len(all)-tail:]
			}
			if got := h.String(); got != want {
				t.Fatalf("limit %d, chunks of %d: %q", limit, chunk, got)
			}
		}
	}
}
