// Command dsh-actor runs an LLM agent from the command line.
//
//	dsh-actor run "List the files here and summarise README.md"
//
// See dsh-actor help for everything else.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A closed pipe is an error of the write, not the end of the process. The
	// signal is caught rather than ignored: commands that tools start would
	// inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv, signals))
}
