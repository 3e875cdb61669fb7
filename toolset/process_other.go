//go:build !unix

package toolset

import (
	"os"
	"os/exec"
	"time"
)

// There are no process groups here: cancelling kills the shell, and what it
// started goes on.
func ownGroup(*exec.Cmd) {}

func endGroup(int, time.Duration) (left bool) { return false }

func signalOf(*os.ProcessState) string { return "" }
