package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
)

// log is an agent that keeps what is appended.
type log struct {
	hook.Agent
	facts []dsh.Fact
	err   error
}

func (*log) Session() dsh.SessionID { return "s" }

func (l *log) Append(_ context.Context, f dsh.Fact, _ dsh.SurfaceOp, _ *dsh.Sources) (dsh.Seq, error) {
	if l.err != nil {
		return 0, l.err
	}
	l.facts = append(l.facts, f)
	return 0, nil
}

func no(context.Context, hook.FailedRequest) (bool, error) { return false, nil }

func ms(n int64) *int64 { return &n }

func TestDelay(t *testing.T) {
	half := Options{Initial: 100 * time.Millisecond, Max: time.Second, Rand: func() float64 { return 0.5 }}
	always := half
	always.Mode = Always
	for _, tc := range []struct {
		name    string
		opts    Options
		failure dsh.Failure
		n       int
		want    time.Duration
		ok      bool
	}{
		{"the first wait is the initial one", half, dsh.Failure{Code: dsh.CodeServer}, 1, 100 * time.Millisecond, true},
		{"each doubles", half, dsh.Failure{Code: dsh.CodeServer}, 3, 400 * time.Millisecond, true},
		{"up to the cap", half, dsh.Failure{Code: dsh.CodeServer}, 5, time.Second, true},
		{"five times", half, dsh.Failure{Code: dsh.CodeServer}, 6, 0, false},
		{"a code outside the policy stands", half, dsh.Failure{Code: dsh.CodeAuth}, 1, 0, false},
		{"quota is no rate limit", half, dsh.Failure{Code: dsh.CodeQuota}, 1, 0, false},
		{
			"the provider's wait replaces ours", half,
			dsh.Failure{Code: dsh.CodeRateLimit, ProviderRetryAfterMs: ms(7)}, 3, 7 * time.Millisecond, true,
		},
		{
			"above the cap the failure stands", half,
			dsh.Failure{Code: dsh.CodeRateLimit, ProviderRetryAfterMs: ms(1001)}, 1, time.Second, false,
		},
		{"always takes any code", always, dsh.Failure{Code: dsh.CodeAuth}, 1, 100 * time.Millisecond, true},
		{"always has no bound", always, dsh.Failure{Code: dsh.CodeAuth}, 1000, time.Second, true},
		{
			"always waits the cap at most", always,
			dsh.Failure{Code: dsh.CodeServer, ProviderRetryAfterMs: ms(90_000)}, 1, time.Second, true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := New(tc.opts).delay(&tc.failure, tc.n)
			if ok != tc.ok || ok && got != tc.want {
				t.Errorf("delay = %v, %v, want %v, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}

func TestJitterStaysWithinItsPart(t *testing.T) {
	for _, sample := range []float64{0, 0.25, 0.999} {
		p := New(Options{Rand: func() float64 { return sample }})
		d, _ := p.delay(&dsh.Failure{Code: dsh.CodeServer}, 1)
		if d < 450*time.Millisecond || d > 550*time.Millisecond {
			t.Errorf("sample %v: delay %v is more than 10 %% off 500ms", sample, d)
		}
	}
}

func TestRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &log{}
		f := hook.FailedRequest{
			Agent: agent, Pos: dsh.Pos{Turn: 2, Step: 3, Attempt: 1}, Provider: "p",
			Failure: &dsh.Failure{Code: dsh.CodeServer, Message: "down"},
		}
		start := time.Now()
		retry, err := New(Options{Jitter: -1}).RequestError(t.Context(), f, no)
		if !retry || err != nil {
			t.Fatalf("RequestError = %v, %v", retry, err)
		}
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("the second retry waited %v, want 1s", waited)
		}
		scheduled, ok := agent.facts[0].(dsh.RetryScheduled)
		if !ok || scheduled.Retry != 2 || scheduled.DelayMs != 1000 || *scheduled.MaxRetries != 5 {
			t.Errorf("first fact: %+v", agent.facts[0])
		}
		if started, ok := agent.facts[1].(dsh.RetryStarted); !ok || started.RetryID != scheduled.RetryID {
			t.Errorf("second fact: %+v", agent.facts[1])
		}
	})
}

func TestCancelEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &log{}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		start := time.Now()
		retry, err := New(Options{}).RequestError(ctx, hook.FailedRequest{
			Agent: agent, Failure: &dsh.Failure{Code: dsh.CodeServer},
		}, no)
		if retry || err != nil {
			t.Errorf("RequestError = %v, %v", retry, err)
		}
		if waited := time.Since(start); waited != time.Millisecond {
			t.Errorf("waited %v after the cancel", waited-time.Millisecond)
		}
		if len(agent.facts) != 1 {
			t.Errorf("logged %d facts, want the schedule alone", len(agent.facts))
		}
	})
}

func TestRepairNeedsNoWait(t *testing.T) {
	agent := &log{}
	yes := func(context.Context, hook.FailedRequest) (bool, error) { return true, nil }
	retry, err := New(Options{}).RequestError(t.Context(), hook.FailedRequest{
		Agent: agent, Failure: &dsh.Failure{Code: dsh.CodeServer},
	}, yes)
	if !retry || err != nil || len(agent.facts) != 0 {
		t.Errorf("RequestError = %v, %v with %d facts", retry, err, len(agent.facts))
	}
}

func TestNoRetryWithoutARecord(t *testing.T) {
	gone := errors.New("agent is gone")
	retry, err := New(Options{}).RequestError(t.Context(), hook.FailedRequest{
		Agent: &log{err: gone}, Failure: &dsh.Failure{Code: dsh.CodeServer},
	}, no)
	if retry || !errors.Is(err, gone) {
		t.Errorf("RequestError = %v, %v", retry, err)
	}
}
