package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A Server answers requests with the responses of its script, in the order in
// which they arrive. Its methods may be called at any time.
type Server struct {
	// URL is the base URL, to which /chat/completions is appended.
	URL string

	t    testing.TB
	http *httptest.Server
	stop chan struct{}
	once sync.Once

	mu       sync.Mutex
	script   []Response
	respond  func(Request) Response
	requests []Request
	reasoned map[string]bool // calls that were sent with reasoning, by ID
	lenient  bool
}

// A Request is one that the server was sent.
type Request struct {
	// Body is the body as it came.
	Body []byte
	// Header holds the headers.
	Header http.Header
	// RemoteAddr is the address of the connection.
	RemoteAddr string
	// HistoryError is what [CheckHistory] found, or nil.
	HistoryError error
}

// Decode decodes the body into v and fails the test if it cannot.
func (r Request) Decode(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(r.Body, v); err != nil {
		t.Fatalf("llmtest: request body: %v", err)
	}
}

// NewServer starts a server that ends with the test.
func NewServer(t testing.TB, script ...Response) *Server {
	t.Helper()
	s := &Server{t: t, stop: make(chan struct{}), script: script, reasoned: map[string]bool{}}
	s.http = httptest.NewServer(s)
	s.URL = s.http.URL + "/v1"
	t.Cleanup(s.Close)
	return s
}

// Add appends responses to the script.
func (s *Server) Add(script ...Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, script...)
}

// Respond makes f answer the requests for which the script has no response
// left. It runs on the request's goroutine, several at a time.
func (s *Server) Respond(f func(Request) Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.respond = f
}

// AllowBadHistory makes the server answer bad histories as the script says.
func (s *Server) AllowBadHistory() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lenient = true
}

// Requests returns what the server was asked so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Close ends the server and every answer it is giving, and waits for both.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.stop)
		s.http.CloseClientConnections()
		s.http.Close()
	})
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	req := Request{Body: body, Header: r.Header.Clone(), RemoteAddr: r.RemoteAddr}
	resp := s.answer(r.URL.Path, &req)
	p := player{w: w, r: r, stop: s.stop}
	p.play(resp)
}

// answer records the request and returns what to answer.
func (s *Server) answer(path string, req *Request) Response {
	s.mu.Lock()
	req.HistoryError = checkHistory(req.Body, s.reasoned)
	s.requests = append(s.requests, *req)
	n := len(s.requests)
	if path != "/v1/chat/completions" {
		s.mu.Unlock()
		s.t.Errorf("llmtest: request %d asks for %s", n, path)
		return Status(http.StatusNotFound, `{"error":{"message":"no such path"}}`)
	}
	if req.HistoryError != nil && !s.lenient {
		s.mu.Unlock()
		s.t.Errorf("llmtest: request %d has a bad history: %v\n%s", n, req.HistoryError, req.Body)
		return badHistory(req.HistoryError)
	}
	resp, ok := s.pop(*req)
	if !ok {
		s.t.Errorf("llmtest: request %d is one more than the script has responses", n)
		return Status(http.StatusBadRequest, `{"error":{"message":"llmtest: the script is at its end"}}`)
	}
	s.note(resp)
	return resp
}

// pop takes the next response. It unlocks mu.
func (s *Server) pop(req Request) (resp Response, ok bool) {
	respond := s.respond
	if len(s.script) > 0 {
		resp, s.script = s.script[0], s.script[1:]
		s.mu.Unlock()
		return resp, true
	}
	s.mu.Unlock()
	if respond == nil {
		return Response{}, false
	}
	return respond(req), true
}

// note remembers which calls are sent with reasoning: it must come back with
// them. An ID that is also sent without is not checked, as it does not say
// which of its messages one is.
func (s *Server) note(resp Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range resp.calls {
		id, with := string(c.ID), resp.reasoning != ""
		if was, ok := s.reasoned[id]; ok {
			with = with && was
		}
		s.reasoned[id] = with
	}
}

func badHistory(err error) Response {
	message, _ := json.Marshal(err.Error())
	return Status(http.StatusBadRequest, fmt.Sprintf(
		`{"error":{"message":%s,"type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, message))
}
