package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// killChildren kills the processes that tools have started and that are still
// there, each with its group. It is for a process that quits without waiting
// for them: what a turn ends in order is not left to this.
func killChildren() {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		raw, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(raw)) {
			pid, err := strconv.Atoi(field)
			if err != nil || pid <= 1 {
				continue
			}
			if group, err := syscall.Getpgid(pid); err == nil && group == pid {
				_ = syscall.Kill(-pid, syscall.SIGKILL)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
