//go:build !unix

package pebble_test

import (
	"io/fs"
	"time"
)

func processorTime() time.Duration { return 0 }

func blocks(info fs.FileInfo) int64 { return info.Size() }

func diskWrites(string) int64 { return 0 }
