package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// defaultPager shows what fits on a screen without waiting for a key.
const defaultPager = "less -FRX"

// pager returns the command that shows long texts, nil for none: DSH_ACTOR_PAGER,
// PAGER or less, if it is there.
func (a *app) pager() []string {
	for _, name := range []string{"DSH_ACTOR_PAGER", "PAGER"} {
		command := strings.Fields(a.env(name))
		switch {
		case len(command) == 0:
			continue
		case len(command) == 1 && command[0] == "cat":
			return nil
		}
		return command
	}
	command := strings.Fields(defaultPager)
	if _, err := exec.LookPath(command[0]); err != nil {
		return nil
	}
	return command
}

// page hands what write writes to the pager or, if there is none or it fails,
// to stdout. Write may be called twice.
func (a *app) page(ctx context.Context, write func(io.Writer) error) error {
	command := a.pager()
	if command == nil {
		return write(a.stdout)
	}
	wrote, err := a.throughPager(ctx, command, write)
	if err == nil {
		return wrote
	}
	_, _ = fmt.Fprintf(a.stderr, "dsh-actor: pager %s: %v; it does without\n", command[0], err)
	return write(a.stdout)
}

// throughPager runs the pager. An error says that it has shown nothing; wrote is
// that of write. Until the pager ends Ctrl-C is its business.
func (a *app) throughPager(ctx context.Context, command []string, write func(io.Writer) error) (wrote, err error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = a.stdout.w, a.stderr.w
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it mends the terminal
	cmd.WaitDelay = time.Second
	if a.env("LESS") == "" {
		cmd.Env = append(os.Environ(), "LESS=FRX") // for a bare PAGER=less
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	a.stop.deaf.Store(true)
	defer a.stop.deaf.Store(false)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	wrote = write(in)
	if hungUp(wrote) {
		wrote = nil // whoever reads has seen enough
	}
	_ = in.Close()
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() != 1 && exit.ExitCode() != 126 && exit.ExitCode() != 127 {
		err = nil // it was quit in another way
	}
	return wrote, err
}

// hungUp reports whether an error of a write says that nobody reads any more.
func hungUp(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed)
}
