//go:build unix

package toolset

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// ownGroup makes cmd the leader of a process group, which SIGTERM is sent to
// when its context is cancelled.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) != nil {
			return os.ErrProcessDone // it ended by itself just now
		}
		return nil
	}
}

// endGroup ends what is left of the group whose leader was waited for: with
// SIGTERM, and after the delay with SIGKILL. It reports whether anything was
// left. The number of a group with members is not given to another process.
func endGroup(leader int, delay time.Duration) (left bool) {
	if !alive(leader) || syscall.Kill(-leader, syscall.SIGTERM) != nil {
		return false
	}
	deadline := time.Now().Add(delay)
	for pause := time.Millisecond; time.Now().Before(deadline); pause = min(2*pause, 50*time.Millisecond) {
		time.Sleep(pause)
		if !alive(leader) {
			return true
		}
	}
	_ = syscall.Kill(-leader, syscall.SIGKILL)
	return true
}

// alive reports whether a group has a member that runs. Where the first
// process of a container waits for nobody, ended ones stay members for ever;
// waiting for those would cost every command the whole delay.
func alive(group int) bool {
	return syscall.Kill(-group, 0) == nil && !onlyZombies(group)
}

// onlyZombies looks at the members of a group in /proc. Where there is none it
// reports false.
func onlyZombies(group int) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	zombies := 0
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it is gone by now
		}
		// pid (name) state parent group …; the name may hold anything
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 3 || string(fields[2]) != strconv.Itoa(group) {
			continue
		}
		if string(fields[0]) != "Z" {
			return false
		}
		zombies++
	}
	return zombies > 0
}

// signalOf names the signal that ended a process, if one did.
func signalOf(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal().String()
	}
	return ""
}
