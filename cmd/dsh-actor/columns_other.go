//go:build !unix

package main

import "io"

// columns returns 0: it is not known how wide a terminal is.
func columns(io.Writer) int { return 0 }
