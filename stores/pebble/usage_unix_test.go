//go:build unix

package pebble_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// blocks is what a file takes on disk.
func blocks(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return 0
}

// diskWrites is how many writes the disk that dir is on has completed, for
// whomever; 0 where that is not known.
func diskWrites(dir string) int64 {
	info, err := os.Stat(dir)
	if err != nil {
		return 0
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	stats, err := os.ReadFile("/proc/diskstats")
	if err != nil {
		return 0
	}
	device := uint64(s.Dev) // of another type elsewhere
	for line := range strings.Lines(string(stats)) {
		fields := strings.Fields(line)
		if len(fields) > 7 && fields[0] == fmt.Sprint(device>>8&0xfff) && fields[1] == fmt.Sprint(device&0xff) {
			var n int64
			_, _ = fmt.Sscan(fields[7], &n)
			return n
		}
	}
	return 0
}
