//go:build unix

package toolset

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// ownGroup makes cmd the leader of a process group, which SIGTERM is sent to
// when its context is cancelled.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// endGroup ends what is left of the group whose leader was waited for: with
// SIGTERM, and after the delay with SIGKILL. It reports whether anything was
// left. The number of a group with members is not given to another process.
func endGroup(leader int, delay time.Duration) (left bool) {
	if syscall.Kill(-leader, syscall.SIGTERM) != nil {
		return false
	}
	deadline := time.Now().Add(delay)
	for pause := time.Millisecond; time.Now().Before(deadline); pause = min(2*pause, 50*time.Millisecond) {
		time.Sleep(pause)
		if syscall.Kill(-leader, 0) != nil {
			return true
		}
	}
	_ = syscall.Kill(-leader, syscall.SIGKILL)
	return true
}

// signalOf names the signal that ended a process, if one did.
func signalOf(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal().String()
	}
	return ""
}
