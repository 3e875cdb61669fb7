package pebble

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// childDir tells a second process of this test which store to open.
const childDir = "PEBBLE_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// child owns the log "a" until it is killed, and makes a turn durable each time
// that it is asked for one.
func child(dir string) {
	s, err := Open(dir)
	if err != nil {
		fmt.Println("error", err)
		return
	}
	ctx := context.Background()
	log, err := s.Create(ctx, sessiontest.Header("a"))
	if errors.Is(err, session.ErrExists) {
		log, err = s.Open(ctx, "a")
	}
	if err != nil {
		fmt.Println("error", err)
		return
	}
	events, err := log.Read(ctx, 0, 0)
	if err != nil {
		fmt.Println("error", err)
		return
	}
	next := after(events)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		turn := sessiontest.Turn(1, next)
		if err := errors.Join(session.Extend(ctx, log, turn), log.Sync(ctx)); err != nil {
			fmt.Println("error", err)
			return
		}
		next = after(turn)
		fmt.Println("stored", next)
	}
}

// other is a second process that runs child.
type other struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startOther(t *testing.T, dir string) *other {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := &other{cmd: exec.Command(exe)}
	o.cmd.Env = append(os.Environ(), childDir+"="+dir)
	o.cmd.Stderr = os.Stderr
	if o.in, err = o.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.out = bufio.NewScanner(out)
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.kill() })
	return o
}

// turn has the process make a turn durable.
func (o *other) turn(t *testing.T) (next dsh.Seq) {
	t.Helper()
	if _, err := fmt.Fprintln(o.in, "turn"); err != nil {
		t.Fatal(err)
	}
	o.out.Scan()
	if _, err := fmt.Sscanf(o.out.Text(), "stored %d", &next); err != nil {
		t.Fatalf("the other process says %q", o.out.Text())
	}
	return next
}

func (o *other) kill() {
	_ = o.cmd.Process.Kill()
	_ = o.cmd.Wait()
}

// A store has one process. The next one finds what was durable when that was
// killed.
func TestOtherProcess(t *testing.T) {
	dir := t.TempDir()
	o := startOther(t, dir)
	var next dsh.Seq
	for range 5 {
		next = o.turn(t)
	}
	_, err := Open(dir)
	if !errors.Is(err, session.ErrInUse) || !strings.Contains(fmt.Sprint(err), "another process") {
		t.Errorf("while it runs: got %v", err)
	}
	o.kill()
	log, err := openStore(t, dir).Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	events, err := log.Read(t.Context(), 0, 0)
	if err != nil || after(events) != next {
		t.Errorf("it made %d events durable; there are %d (%v)", next, after(events), err)
	}
	if err := session.Extend(t.Context(), log, sessiontest.Turn(2, next)); err != nil {
		t.Error(err)
	}
	second := startOther(t, dir)
	second.out.Scan()
	if got := second.out.Text(); !strings.Contains(got, "another process has "+dir+" open") {
		t.Errorf("the other process says %q", got)
	}
}

// after returns the number behind events.
func after(events []dsh.Event) dsh.Seq {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].Last() + 1
}
