package admission_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-actor/dsh-actor/actors/dispatch"
	"github.com/dsh-actor/dsh-actor/actors/llm"
	"github.com/dsh-actor/dsh-actor/actors/llm/admission"
	"github.com/dsh-actor/dsh-actor/actors/llm/openai"
	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/policy/retry"
	"github.com/dsh-actor/dsh-actor/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is an endpoint in fake time that lets so many requests through in
// each second and refuses the others.
type server struct {
	perSecond int
	latency   time.Duration
	after     string // Retry-After; empty for none

	mu      sync.Mutex
	second  int64
	inIt    int
	served  int
	refused int
	open    int
	most    int
	keys    map[string]int
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	_ = req.Body.Close()
	s.mu.Lock()
	if s.keys == nil {
		s.keys = map[string]int{}
	}
	s.keys[req.Header.Get("Authorization")]++
	if now := time.Now().Unix(); now != s.second {
		s.second, s.inIt = now, 0
	}
	s.inIt++
	if s.inIt > s.perSecond {
		s.refused++
		s.mu.Unlock()
		h := http.Header{}
		if s.after != "" {
			h.Set("Retry-After", s.after)
		}
		return &http.Response{StatusCode: 429, Header: h, Body: io.NopCloser(strings.NewReader(`{"error":{"message":"slow down"}}`)), Request: req}, nil
	}
	s.served++
	s.open++
	s.most = max(s.most, s.open)
	s.mu.Unlock()
	time.Sleep(s.latency)
	s.mu.Lock()
	s.open--
	s.mu.Unlock()
	return &http.Response{StatusCode: 200, Header: http.Header{}, Request: req, Body: io.NopCloser(strings.NewReader(
		"data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))}, nil
}

func (s *server) provider(t *testing.T, key string) llm.Provider {
	t.Helper()
	p, err := openai.New(openai.Options{BaseURL: "http://model.test/v1", APIKey: key, HTTPClient: &http.Client{Transport: s}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// crowd runs agents that each ask so often, with the default retry policy, and
// returns how many prompts failed and how long all took.
func crowd(t *testing.T, agents, prompts int, p llm.Provider, limits map[string]llm.Limits) (failed int, took time.Duration) {
	t.Helper()
	rt, err := runtime.New(runtime.Options{
		Providers: map[string]llm.Provider{"p": p}, Limits: limits, Hooks: []any{retry.New(retry.Options{})},
	})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	for range agents {
		a, err := rt.Create(t.Context(), runtime.Spec{Provider: "p", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for range prompts {
				if o, err := a.Run(context.Background(), "go"); err != nil || !o.OK() {
					mu.Lock()
					failed++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	took = time.Since(begun)
	if err := rt.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return failed, took
}

// 200 agents with three prompts each share a key that allows ten requests a
// second. Time is fake.
func TestTwoHundredAgentsOnOneKey(t *testing.T) {
	const agents, prompts = 200, 3
	for _, tt := range []struct {
		name   string
		limits map[string]llm.Limits
		after  string
		wasted int // at most
	}{
		{"limit configured", map[string]llm.Limits{"p": {RequestsPerMinute: 600}}, "1", 0},
		{"limit learned, Retry-After", map[string]llm.Limits{"p": {}}, "1", 30},
		{"limit learned, nothing told", map[string]llm.Limits{"p": {}}, "", 30},
		{"twice the limit configured", map[string]llm.Limits{"p": {RequestsPerMinute: 1200}}, "1", 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := &server{perSecond: 10, latency: 300 * time.Millisecond, after: tt.after}
				failed, took := crowd(t, agents, prompts, srv.provider(t, "k"), tt.limits)
				t.Logf("%d answers in %v, %d wasted 429s, %d prompts failed", srv.served, took, srv.refused, failed)
				if failed > 0 || srv.served != agents*prompts {
					t.Errorf("%d prompts failed, %d were served", failed, srv.served)
				}
				if srv.refused > tt.wasted {
					t.Errorf("%d wasted 429s, more than %d", srv.refused, tt.wasted)
				}
				if took > 3*time.Minute {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// Without the gate the same crowd wastes most of what it sends; this is what
// the gate is for.
func TestTheSameWithoutAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &server{perSecond: 10, latency: 300 * time.Millisecond, after: "1"}
		failed, took := crowd(t, 200, 3, srv.provider(t, "k"), nil)
		t.Logf("%d answers in %v, %d wasted 429s, %d prompts failed", srv.served, took, srv.refused, failed)
		if srv.refused < 1000 || failed == 0 {
			t.Errorf("%d refused, %d failed: the comparison says nothing", srv.refused, failed)
		}
	})
}

func TestConcurrencyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &server{perSecond: 1e6, latency: time.Second}
		failed, took := crowd(t, 50, 1, srv.provider(t, "k"), map[string]llm.Limits{"p": {Concurrency: 5}})
		if failed != 0 || srv.most != 5 || took != 10*time.Second {
			t.Errorf("%d failed, at most %d open, %v", failed, srv.most, took)
		}
	})
}

// A key that cools down is skipped: the other one serves.
func TestSeveralKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := &server{perSecond: 1e6, latency: 100 * time.Millisecond}
		used := &server{perSecond: 0, after: "3600"}
		keys := llm.NewKeys(used.provider(t, "used"), good.provider(t, "good"))
		failed, _ := crowd(t, 1, 20, keys, nil)
		if used.refused != 1 || good.served < 19 || failed > 1 {
			t.Errorf("%d asked of the used one, %d of the good one, %d failed", used.refused, good.served, failed)
		}
		even := &server{perSecond: 1e6, latency: 100 * time.Millisecond}
		crowd(t, 20, 5, llm.NewKeys(even.provider(t, "a"), even.provider(t, "b")), nil)
		if a, b := even.keys["Bearer a"], even.keys["Bearer b"]; a != 50 || b != 50 {
			t.Errorf("the keys were used %d and %d times", a, b)
		}
	})
}

// fake is a provider that serves with a function.
type fake func(ctx context.Context, req *dsh.Request, yield func(dsh.Chunk, error) bool)

func (fake) Model(string) llm.Model { return llm.Model{ContextWindow: 7} }

func (f fake) Stream(ctx context.Context, req *dsh.Request) iter.Seq2[dsh.Chunk, error] {
	return func(yield func(dsh.Chunk, error) bool) { f(ctx, req, yield) }
}

// gate starts a gate in a bubble.
func gate(t *testing.T, p llm.Provider, l llm.Limits) *admission.Provider {
	t.Helper()
	workers, system := dispatch.New(), dispatch.NewSystem(slog.New(slog.DiscardHandler))
	g := admission.Start(system.Root, p, l, workers.Mailbox())
	t.Cleanup(func() {
		g.Stop()
		synctest.Wait()
		system.Shutdown()
		workers.Close()
	})
	return g
}

func asking(agent string) context.Context {
	return dsh.WithInitiator(context.Background(), dsh.Initiator{Agent: dsh.AgentID(agent)})
}

func request() *dsh.Request { return &dsh.Request{Header: &dsh.Header{}} }

// Agents take turns, however much one of them has waiting.
func TestAgentsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		g := gate(t, fake(func(ctx context.Context, _ *dsh.Request, yield func(dsh.Chunk, error) bool) {
			i, _ := dsh.InitiatorFrom(ctx)
			mu.Lock()
			order = append(order, string(i.Agent))
			mu.Unlock()
			time.Sleep(time.Second)
			yield(dsh.Finish{}, nil)
		}), llm.Limits{Concurrency: 1})
		var all sync.WaitGroup
		for _, agent := range []string{"greedy", "greedy", "greedy", "greedy", "b", "c"} {
			all.Go(func() {
				for range g.Stream(asking(agent), request()) {
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if want := []string{"greedy", "greedy", "b", "c", "greedy", "greedy"}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
	})
}

// A cancelled request leaves the queue at once and gives back what it got.
func TestCancelEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		g := gate(t, fake(func(_ context.Context, _ *dsh.Request, yield func(dsh.Chunk, error) bool) {
			<-block
			yield(dsh.Finish{}, nil)
		}), llm.Limits{Concurrency: 1})
		var all sync.WaitGroup
		all.Go(func() {
			for range g.Stream(asking("a"), request()) {
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(asking("b"))
		var err error
		all.Go(func() {
			for _, err = range g.Stream(ctx, request()) {
			}
		})
		synctest.Wait()
		begun := time.Now()
		cancel()
		synctest.Wait()
		if !errors.Is(err, context.Canceled) || time.Since(begun) != 0 {
			t.Errorf("ended with %v after %v", err, time.Since(begun))
		}
		close(block)
		all.Wait()
		for c, err := range g.Stream(asking("c"), request()) { // the place is free
			if _, ok := c.(dsh.Finish); !ok || err != nil {
				t.Error(c, err)
			}
		}
	})
}

// A race of cancels and grants loses no place.
func TestPlacesAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, fake(func(ctx context.Context, _ *dsh.Request, yield func(dsh.Chunk, error) bool) {
			select {
			case <-time.After(3 * time.Millisecond):
				yield(dsh.Finish{}, nil)
			case <-ctx.Done():
				yield(nil, ctx.Err())
			}
		}), llm.Limits{Concurrency: 3})
		var all sync.WaitGroup
		for i := range 300 {
			ctx, cancel := context.WithTimeout(asking(strconv.Itoa(i%7)), time.Duration(i%40)*time.Millisecond)
			all.Go(func() {
				defer cancel()
				for range g.Stream(ctx, request()) {
				}
			})
		}
		all.Wait()
		for range 3 {
			all.Go(func() {
				for _, err := range g.Stream(asking("x"), request()) {
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		begun := time.Now()
		all.Wait()
		if took := time.Since(begun); took != 3*time.Millisecond {
			t.Errorf("three requests took %v: a place is lost", took)
		}
	})
}

// Tokens are counted by the usage; a request that used more than was thought
// makes the next wait.
func TestTokensPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cached := int64(500)
		g := gate(t, fake(func(_ context.Context, _ *dsh.Request, yield func(dsh.Chunk, error) bool) {
			_ = yield(dsh.Usage{InputTokens: 400, OutputTokens: 100, CacheReadTokens: &cached}, nil) && yield(dsh.Finish{}, nil)
		}), llm.Limits{TokensPerMinute: 6000})
		begun := time.Now()
		for range 13 {
			for range g.Stream(asking("a"), request()) {
			}
		}
		// The first thousand is there at once, the others come with 100 a second.
		if took := time.Since(begun).Round(time.Second); took < 110*time.Second || took > 125*time.Second {
			t.Errorf("13,000 tokens took %v", took)
		}
	})
}

// A server that asks for a pause gets it from everybody.
func TestCoolDownIsShared(t *testing.T) {
	for _, code := range []dsh.Code{dsh.CodeRateLimit, dsh.CodeServer} {
		synctest.Test(t, func(t *testing.T) {
			wait, calls := int64(7000), 0
			g := gate(t, fake(func(_ context.Context, _ *dsh.Request, yield func(dsh.Chunk, error) bool) {
				if calls++; calls == 1 {
					yield(nil, &dsh.Failure{Code: code, ProviderRetryAfterMs: &wait})
					return
				}
				yield(dsh.Finish{}, nil)
			}), llm.Limits{})
			begun := time.Now()
			for i := range 2 {
				for range g.Stream(asking(fmt.Sprint(i)), request()) {
				}
			}
			if took := time.Since(begun); took != 7*time.Second {
				t.Errorf("%s: another agent waited %v", code, took)
			}
			if g.Model("m").ContextWindow != 7 {
				t.Error("the model is not the provider's")
			}
		})
	}
}

// A model that thinks unseen for long does not hold up those behind it.
func TestSilenceIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &server{perSecond: 1e6, latency: 5 * time.Minute}
		_, took := crowd(t, 100, 1, srv.provider(t, "k"), map[string]llm.Limits{"p": {}})
		if took > 6*time.Minute {
			t.Errorf("100 requests of five minutes took %v", took)
		}
	})
}

// A pause of an hour is not slept through: who comes meanwhile is told.
func TestALongPauseIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait, calls := int64(3_600_000), 0
		g := gate(t, fake(func(_ context.Context, _ *dsh.Request, yield func(dsh.Chunk, error) bool) {
			calls++
			yield(nil, &dsh.Failure{Code: dsh.CodeRateLimit, ProviderRetryAfterMs: &wait})
		}), llm.Limits{})
		begun := time.Now()
		for i := range 3 {
			var last error
			for _, last = range g.Stream(asking(fmt.Sprint(i)), request()) {
			}
			if f := dsh.AsFailure(last); f.Code != dsh.CodeRateLimit || *f.ProviderRetryAfterMs != wait {
				t.Errorf("request %d: %v", i, last)
			}
		}
		if calls != 1 || time.Since(begun) != 0 {
			t.Errorf("%d requests, %v", calls, time.Since(begun))
		}
	})
}
