package openai

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// One stream is one request, whatever the status.
func TestNoRetriesHere(t *testing.T) {
	for _, status := range []int{400, 429, 500, 503} {
		srv := llmtest.NewServer(t, llmtest.Status(status, `{"error":"x"}`))
		collect(t, newProvider(t, Options{BaseURL: srv.URL}).Stream(t.Context(), request())).failure(t)
		if n := len(srv.Requests()); n != 1 {
			t.Errorf("status %d: %d requests", status, n)
		}
	}
}

// A connection is used again after a good answer, also if the body ends a
// little behind [DONE].
func TestConnectionIsReused(t *testing.T) {
	late := llmtest.Raw("data: "+delta(`{"content":"a"}`), "data: "+finished("stop"), "data: [DONE]", ": bye").Drip(time.Millisecond)
	srv := llmtest.NewServer(t, late, late, late, late, late, late)
	p := newProvider(t, Options{BaseURL: srv.URL})
	peers := map[string]bool{}
	for range 6 {
		collect(t, p.Stream(t.Context(), request()))
	}
	for _, r := range srv.Requests() {
		peers[r.RemoteAddr] = true
	}
	if len(peers) == 6 { // a slow machine may lose some
		t.Errorf("connections from %v", peers)
	}
}

// Leaving the loop early closes the stream.
func TestConsumerLeaves(t *testing.T) {
	srv := llmtest.NewServer(t, llmtest.Text("a", "b").StallAfter(2))
	for range newProvider(t, Options{BaseURL: srv.URL}).Stream(t.Context(), request()) {
		break
	}
}

// A redirect within the host is followed with the whole request; one to
// another host is not, as it would take the headers along.
func TestRedirects(t *testing.T) {
	srv := llmtest.NewServer(t, llmtest.Text("a"))
	target := srv.URL
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here/chat/completions":
			http.Redirect(w, r, "/real/chat/completions", http.StatusTemporaryRedirect)
		case "/away/chat/completions":
			http.Redirect(w, r, target+"/chat/completions", http.StatusTemporaryRedirect)
		case "/get/chat/completions":
			http.Redirect(w, r, "/real/chat/completions", http.StatusFound)
		case "/loop/chat/completions":
			http.Redirect(w, r, r.URL.Path, http.StatusPermanentRedirect)
		default:
			_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"` + r.Method + `"},"finish_reason":"stop"}]}`))
		}
	}))
	defer front.Close()
	stream := func(path string) outcome {
		p := newProvider(t, Options{BaseURL: front.URL + path, Headers: http.Header{"X-Token": {"secret"}}})
		defer p.CloseIdleConnections()
		return collect(t, p.Stream(t.Context(), request()))
	}
	stream("/here").want(t, dsh.FinishStop, dsh.Text{Text: http.MethodPost})
	for _, path := range []string{"/away", "/get", "/loop"} {
		stream(path).wantFailure(t, dsh.CodeUnknown)
	}
	if n := len(srv.Requests()); n != 0 {
		t.Errorf("the other host got %d requests", n)
	}
}
