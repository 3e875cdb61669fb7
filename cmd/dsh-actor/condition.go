package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// What is the matter with a log has one word in all commands: a verdict for
// people, and the same as a code for programs.

// codeOf returns a verdict as a code: OTHER_ENCODING.
func codeOf(v jsonl.Verdict) string {
	return strings.ToUpper(strings.ReplaceAll(string(v), " ", "_"))
}

// inWords returns the verdict that a code stands for.
func inWords(code string) string { return strings.ToLower(strings.ReplaceAll(code, "_", " ")) }

// verdictOf returns what is the matter with a log that cannot be opened.
func verdictOf(err error) jsonl.Verdict {
	switch {
	case errors.Is(err, session.ErrInUse):
		return jsonl.InUse
	case errors.Is(err, dsh.ErrVersion):
		return jsonl.Newer
	case errors.Is(err, jsonl.ErrEncoding):
		return jsonl.Foreign
	case errors.Is(err, dsh.ErrUnknownEvent):
		return jsonl.Unknown
	case errors.Is(err, jsonl.ErrCorrupt):
		return jsonl.Corrupt
	}
	return jsonl.Unreadable
}

// logProblem returns why a log cannot be opened.
func logProblem(err error) *problem { return &problem{codeOf(verdictOf(err)), err.Error()} }

// tornProblem tells of what a crash left.
func tornProblem(t jsonl.Tail) *problem { return &problem{codeOf(jsonl.Torn), torn(t)} }

// torn says the same in words.
func torn(t jsonl.Tail) string {
	said := fmt.Sprintf("its last write was torn by a crash: %s at line %d", plural(int(t.Bytes), "byte"), t.Line)
	if t.Recoverable > 0 {
		said += ", of which " + plural(t.Recoverable, "event") + " can be recovered"
	}
	return said + "; continuing the session repairs it"
}

// usedBy says who owns a session.
func usedBy(h *jsonl.Holder) string {
	if h.PID == 0 {
		return "in use"
	}
	if host, err := os.Hostname(); err == nil && h.Host != host {
		return fmt.Sprintf("in use by process %d on %s", h.PID, h.Host)
	}
	return fmt.Sprintf("in use by process %d", h.PID)
}

// explain says what to do about a session that cannot be opened.
func explain(err error, id dsh.SessionID) error {
	switch verdictOf(err) {
	case jsonl.InUse:
		return failed(fmt.Errorf("%w; wait until that has ended, or go on in a copy with --fork %s", inUse(err), id))
	case jsonl.Corrupt, jsonl.Newer, jsonl.Foreign, jsonl.Unknown:
		return failed(fmt.Errorf("%w; 'dsh-actor sessions check %s' tells more", err, shellWord(string(id))))
	default:
		return err
	}
}

// inUse returns the part of an error that says who has a session, if there is one.
func inUse(err error) error {
	var held *jsonl.InUseError
	if errors.As(err, &held) {
		return held
	}
	return err
}

// shellWord returns text as one word of a shell.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/@", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// spoilt reports whether an error is about what a log holds.
func spoilt(err error) bool {
	v := verdictOf(err)
	return v != jsonl.InUse && v != jsonl.Unreadable
}
