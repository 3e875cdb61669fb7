package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
)

// maxPrompt bounds what is read as a prompt, in bytes.
const maxPrompt = 16 << 20

// prompt returns the prompt from its one source, or "" for a session in which
// input is pending and goes on without one. A signal while it is read ends the
// command: nothing has begun.
func (a *app) prompt(file string, args []string, p *past) (string, error) {
	var text, from string
	var err error
	optional := p != nil && !p.fork && file == "" && len(args) == 0
	switch {
	case optional && isTerminal(a.stdin):
	case file != "" && len(args) > 0:
		return "", usagef("the prompt comes from the argument or from -f, not from both")
	case file != "":
		from = "in " + file
		text, err = readFile(file)
	case len(args) == 1 && args[0] != "-":
		text = args[0]
	case len(args) == 0 && isTerminal(a.stdin):
		return "", usagef("a prompt is needed: as an argument, with -f FILE, or piped in ('-' reads the terminal)")
	default:
		from = "on stdin"
		text, err = a.readStdin()
	}
	switch {
	case err != nil:
		return "", err
	case a.code != exitOK:
		return "", nil
	case optional && strings.TrimSpace(text) == "":
		if p.pending == 0 && !p.torn {
			return "", usagef("nothing is pending in session %s, so a prompt is needed: as an argument, with -f FILE, or piped in", p.id)
		}
		return "", nil
	case strings.TrimSpace(text) == "":
		return "", usagef("the prompt is empty%s", strings.TrimRight(" "+from, " "))
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil
}

func readFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", usagef("-f: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := readAll(f)
	if err != nil {
		return "", usagef("-f %s: %w", name, err)
	}
	return text, nil
}

func readAll(r io.Reader) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxPrompt+1))
	if err == nil && len(raw) > maxPrompt {
		err = errors.New("a prompt of more than 16 MiB is not read")
	}
	return strings.TrimRight(string(raw), "\r\n"), err
}

// canAsk reports whether somebody at a terminal can answer.
func (a *app) canAsk() bool { return isTerminal(a.stdin) && a.stderr.terminal }

// ask asks for a yes; anything else is a no. A signal meanwhile sets the exit
// code.
func (a *app) ask(question string) (yes bool, err error) {
	if _, err := a.stderr.WriteString(question + " [y/N] "); err != nil {
		return false, err
	}
	line, err := a.await(func() (string, error) {
		text, err := bufio.NewReader(a.stdin).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return text, err
	})
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", err
}

// readStdin reads until the end, or until a signal.
func (a *app) readStdin() (string, error) {
	text, err := a.await(func() (string, error) { return readAll(a.stdin) })
	if err != nil {
		return "", usagef("stdin: %w", err)
	}
	return text, nil
}

// await waits for what read returns or for a signal: that sets the exit code,
// and whoever reads is left behind.
func (a *app) await(read func() (string, error)) (string, error) {
	type input struct {
		text string
		err  error
	}
	done := make(chan input, 1)
	go func() {
		text, err := read()
		done <- input{text, err}
	}()
	select {
	case in := <-done:
		return in.text, in.err
	case <-a.stop.soft:
		a.code = a.stop.code()
		return "", nil
	}
}
