package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// wire is a transport without a network, for fake time: serve writes the body.
type wire func(w *io.PipeWriter)

func (serve wire) RoundTrip(req *http.Request) (*http.Response, error) {
	_ = req.Body.Close()
	r, w := io.Pipe()
	stop := context.AfterFunc(req.Context(), func() { _ = w.CloseWithError(req.Context().Err()) })
	go func() {
		serve(w)
		stop()
		_ = w.Close()
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: r, Header: http.Header{}, Request: req}, nil
}

func say(w io.Writer, lines ...string) {
	for _, l := range lines {
		_, _ = io.WriteString(w, l+"\n\n")
	}
}

var (
	token = "data: " + delta(`{"content":"a"}`)
	ended = []string{"data: " + finished("stop"), "data: [DONE]"}
)

// watch runs a stream in fake time. consume is called for each chunk.
func watch(t *testing.T, o Options, serve wire, consume func(dsh.Chunk)) (took time.Duration, last error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var server sync.WaitGroup
		o.HTTPClient = &http.Client{Transport: wire(func(w *io.PipeWriter) {
			server.Add(1)
			defer server.Done()
			serve(w)
		})}
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for c, err := range p.Stream(t.Context(), request()) {
			if last = err; err == nil && consume != nil {
				consume(c)
			}
		}
		took = time.Since(start)
		synctest.Wait()
		server.Wait()
	})
	return took, last
}

// Three minutes of silence are an answer that is thought about, six are none.
func TestSilence(t *testing.T) {
	after := func(d time.Duration, before ...string) wire {
		return func(w *io.PipeWriter) {
			say(w, before...)
			time.Sleep(d)
			say(w, token)
			say(w, ended...)
		}
	}
	tests := []struct {
		name  string
		o     Options
		serve wire
		fires time.Duration // 0: never
	}{
		{"first byte in time", Options{}, after(3 * time.Minute), 0},
		{"no first byte", Options{}, after(6 * time.Minute), 5 * time.Minute},
		{"silence in time", Options{}, after(3*time.Minute, token), 0},
		{"silence", Options{}, after(6*time.Minute, token), 5 * time.Minute},
		{"silence behind a keep-alive", Options{IdleTimeout: time.Minute}, after(2*time.Minute, ": hi"), time.Minute},
		{"shorter within the answer", Options{TokenIdleTimeout: time.Minute}, after(2*time.Minute, token), time.Minute},
		{"but not before it", Options{TokenIdleTimeout: time.Minute}, after(2*time.Minute, ": hi"), 0},
		{"no limit", Options{FirstByteTimeout: -1, IdleTimeout: -1, TotalTimeout: -1}, after(100 * time.Hour), 0},
		{"total", Options{FirstByteTimeout: -1}, after(3 * time.Hour), 2 * time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			took, err := watch(t, tt.o, tt.serve, nil)
			switch {
			case tt.fires == 0 && err != nil:
				t.Errorf("failed after %v: %v", took, err)
			case tt.fires > 0 && (!errors.Is(err, ErrStalled) || dsh.AsFailure(err).Code != dsh.CodeTimeout || took != tt.fires):
				t.Errorf("ended after %v with %v, want a stall after %v", took, err, tt.fires)
			}
		})
	}
}

func TestKeepAlivesAreLife(t *testing.T) {
	queue := func(n int) wire {
		return func(w *io.PipeWriter) {
			for range n {
				say(w, ": keep-alive")
				time.Sleep(4 * time.Minute)
			}
			say(w, token)
			say(w, ended...)
		}
	}
	if took, err := watch(t, Options{}, queue(10), nil); err != nil || took < 40*time.Minute {
		t.Errorf("ended after %v with %v", took, err)
	}
	took, err := watch(t, Options{}, queue(1000), nil)
	if !errors.Is(err, ErrStalled) || took != 2*time.Hour {
		t.Errorf("keep-alives for ever: ended after %v with %v", took, err)
	}
}

// A slow consumer is not a silent server.
func TestConsumersTimeIsNotCounted(t *testing.T) {
	serve := func(w *io.PipeWriter) {
		for range 5 {
			say(w, token)
			time.Sleep(time.Minute)
		}
		say(w, ended...)
	}
	o := Options{IdleTimeout: 2 * time.Minute, TotalTimeout: 10 * time.Minute}
	took, err := watch(t, o, serve, func(dsh.Chunk) { time.Sleep(time.Hour) })
	if err != nil || took < 5*time.Hour {
		t.Errorf("ended after %v with %v", took, err)
	}
	serve = func(w *io.PipeWriter) {
		say(w, token)
		time.Sleep(10 * time.Hour)
	}
	took, err = watch(t, o, serve, func(dsh.Chunk) { time.Sleep(time.Hour) })
	if !errors.Is(err, ErrStalled) || took != 2*time.Hour+2*time.Minute { // two chunks, then silence
		t.Errorf("silence behind a slow consumer: ended after %v with %v", took, err)
	}
}

// A connection that the server holds open behind [DONE] delays nobody for
// long.
func TestHeldOpenBehindDone(t *testing.T) {
	took, err := watch(t, Options{}, func(w *io.PipeWriter) {
		say(w, token)
		say(w, ended...)
		time.Sleep(time.Hour)
	}, nil)
	if err != nil || took > time.Second {
		t.Errorf("ended after %v with %v", took, err)
	}
}
