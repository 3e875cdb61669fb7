package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/runtime"
)

// What a run does unless it is told otherwise.
const (
	someKills = 40
	someTime  = 12 * time.Second
	perStore  = 8 // kills, before a new store
)

// TestKills kills a process at random moments, again and again.
// DSH_ACTOR_KILLS=n sets how often, however long that takes; without it the
// test ends after some seconds. DSH_ACTOR_SEED=n draws the same moments again,
// which the machine may still answer with others.
func TestKills(t *testing.T) {
	kills, deadline := someKills, time.Now().Add(someTime)
	if n, err := strconv.Atoi(os.Getenv("DSH_ACTOR_KILLS")); err == nil {
		kills, deadline = n, time.Time{}
	} else if testing.Short() {
		kills = perStore
	}
	seed, err := strconv.ParseUint(os.Getenv("DSH_ACTOR_SEED"), 10, 63)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("DSH_ACTOR_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var total counts
	done, round := 0, 0
	goOn := func() bool { return done < kills && (deadline.IsZero() || time.Now().Before(deadline)) }
	for ; goOn(); round++ {
		p := plan{
			Dir: t.TempDir(), Seed: rng.Uint64(),
			Raw: round%4 > 1, Each: round%3 == 1, Forgetful: round%2 == 1,
		}
		w := newWitness(p)
		for i := 0; i < perStore && goOn(); i++ {
			if err := w.live(t.Context(), rng, true); err != nil {
				t.Fatalf("kill %d, store %+v: %v", done+1, w.plan, err)
			}
			done++
		}
		if err := w.live(t.Context(), rng, false); err != nil {
			t.Fatalf("closed after kill %d, store %+v: %v", done, w.plan, err)
		}
		total.add(w.count)
	}
	t.Logf("%d kills survived on %d stores: looked at %d events, %d requests, %d tool bodies, %d closers, %d torn logs, %d of them never synced; "+
		"%d messages acknowledged and none lost; %d children, %d of them interrupted, parents told %d times",
		done, round, total.events, total.requests, total.bodies, total.closers, total.torn, total.unmade, total.acknowledged,
		total.children, total.interrupted, total.notices)
	if total.events == 0 || total.requests == 0 || total.bodies == 0 || total.acknowledged == 0 || total.children == 0 {
		t.Error("nothing happened that could have gone wrong")
	}
}

func (c *counts) add(d counts) {
	c.events += d.events
	c.requests += d.requests
	c.bodies += d.bodies
	c.closers += d.closers
	c.torn += d.torn
	c.unmade += d.unmade
	c.acknowledged += d.acknowledged
	c.children += d.children
	c.interrupted += d.interrupted
	c.notices += d.notices
}

// live runs a process until it is killed, or for a while, and looks at what it
// leaves. Every other time the sessions are resumed here, as far as that goes
// without a crash, before the next process resumes them.
func (w *witness) live(ctx context.Context, rng *rand.Rand, kill bool) error {
	w.Life++
	if err := w.process(ctx, rng, kill); err != nil {
		return err
	}
	for _, id := range w.ids() {
		never := w.neverSynced(id)
		torn, err := w.tear(id, rng)
		if err != nil {
			return err
		}
		if torn {
			w.count.torn++
		}
		if torn && never {
			w.count.unmade++
		}
	}
	if err := w.look(ctx); err != nil {
		return err
	}
	if w.Life%2 == 1 {
		return nil
	}
	w.Life++
	if err := w.resume(ctx); err != nil {
		return fmt.Errorf("resumed: %w", err)
	}
	w.settled = true
	defer func() { w.settled = false }()
	return w.look(ctx)
}

func (w *witness) process(ctx context.Context, rng *rand.Rand, kill bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	text, err := json.Marshal(w.plan)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childPlan+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	early, moment := rng.IntN(5) == 0, time.Duration(rng.IntN(80_000))*time.Microsecond
	end := func() {
		if kill {
			_ = cmd.Process.Kill()
		} else {
			_ = in.Close()
		}
	}
	var timer *time.Timer
	if early {
		timer = time.AfterFunc(moment, end)
	}
	closed := false
	var problems []error
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "ready" && timer == nil {
			timer = time.AfterFunc(moment, end)
		}
		closed = closed || lines.Text() == "closed"
		problems = append(problems, w.hear(lines.Text()))
	}
	if timer != nil {
		timer.Stop()
	}
	err = cmd.Wait()
	if !kill && (err != nil || !closed) {
		problems = append(problems, fmt.Errorf("the process ended by itself: %w", errors.Join(err, ctx.Err())))
	}
	return errors.Join(append(problems, ctx.Err())...)
}

// resume resumes every session twice, with a prompt in between.
func (w *witness) resume(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for pass := range 2 {
		l := newLife(w.plan)
		l.reliable = true
		rt, err := l.runtime()
		if err != nil {
			return err
		}
		var problems []error
		for i := range agents {
			a, err := l.agent(ctx, rt, i)
			if err == nil {
				err = w.finds(ctx, a)
			}
			if err == nil && pass == 0 {
				id := dsh.MessageID(fmt.Sprintf("%s/%d/resumed", a.Session(), w.Life))
				s := w.said[a.Session()]
				s.sent = append(s.sent, id)
				var o runtime.Outcome
				if o, err = a.RunMessage(ctx, message(string(id))); err == nil {
					err = o.Err()
				}
				s.acknowledged[id], s.done[id] = true, true
			}
			problems = append(problems, err)
		}
		if err := errors.Join(append(problems, rt.Close(ctx))...); err != nil {
			return err
		}
	}
	return nil
}
