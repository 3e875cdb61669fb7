package jsonl_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// childRoot tells a second process of this test which store to open.
const childRoot = "JSONL_TEST_CHILD_ROOT"

func TestMain(m *testing.M) {
	if root := os.Getenv(childRoot); root != "" {
		child(root)
		return
	}
	goleak.VerifyTestMain(m)
}

// child owns the log "a" until it is told to end, and writes a turn each time
// that it is asked for one.
func child(root string) {
	ctx := context.Background()
	s, err := jsonl.Open(root, jsonl.Options{})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	log, err := s.Create(ctx, sessiontest.Header("a"))
	if errors.Is(err, session.ErrExists) {
		log, err = s.Open(ctx, "a")
	}
	if err != nil {
		fmt.Println("error", err)
		return
	}
	next := dsh.Seq(0)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		events := sessiontest.Turn(1, next)
		if err := errors.Join(session.Extend(ctx, log, events), log.Sync(ctx)); err != nil {
			fmt.Println("error", err)
			return
		}
		next = events[len(events)-1].Last() + 1
		fmt.Println("stored", next)
	}
}

// Of two processes one owns the log. The other is told which and can read,
// also what is written later; when the owner is killed it can go on.
func TestTwoProcesses(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	root := t.TempDir()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childRoot+"="+root)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	answers := bufio.NewScanner(out)
	write := func() {
		t.Helper()
		fmt.Fprintln(in, "turn")
		if !answers.Scan() || !strings.HasPrefix(answers.Text(), "stored") {
			t.Fatalf("the other process says %q", answers.Text())
		}
	}
	write()
	s := open(t, root, jsonl.Options{})
	_, err = s.Open(ctx, "a")
	var used *jsonl.InUseError
	host, _ := os.Hostname()
	if !errors.As(err, &used) || !errors.Is(err, session.ErrInUse) || used.Holder.PID != cmd.Process.Pid ||
		used.Holder.Host != host || time.Since(used.Holder.Since) > time.Minute {
		t.Errorf("open: got %v", err)
	}
	r, err := s.OpenReader(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	count := func() int {
		t.Helper()
		events, err := r.Read(ctx, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return len(slices.Collect(dsh.Expand(events)))
	}
	one := count()
	write()
	if n := count(); n != 2*one || one == 0 {
		t.Errorf("read %d events, then %d", one, n)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	log, err := s.Open(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Extend(ctx, log, sessiontest.Turn(3, dsh.Seq(2*one))); err != nil {
		t.Error(err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	if n := count(); n != 3*one {
		t.Errorf("read %d events behind the change of owner", n)
	}
}
