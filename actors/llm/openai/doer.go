package openai

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// maxErrorBody bounds what is read of the body of an HTTP error.
const maxErrorBody = 256 << 10

// exchange is what one request carries through go-openai: on the way out the
// body to send, on the way back what go-openai drops.
type exchange struct {
	request *dsh.Request
	own     http.Header // the agent's
	body    []byte
	dog     *watchdog
	abort   func()

	status     int
	requestID  string
	retryAfter *int64
	resets     *int64 // when the rate limit is over, should nothing better be told
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// doer stands between go-openai and the network.
type doer struct {
	client    *http.Client
	headers   http.Header
	initiator string
	base      template
}

// Do sends the exchange's body in place of go-openai's. An answer with a
// status other than 2xx is returned as a *reply, the body of any other is an
// [eventBody].
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		panic("openai: a request without an exchange")
	}
	if err := d.rewrite(req, x); err != nil {
		return nil, err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, err
	}
	x.status, x.requestID = resp.StatusCode, requestID(resp.Header)
	resp.Body = &watched{resp.Body, x.dog}
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusMultipleChoices {
		x.retryAfter = retryAfter(resp.Header, time.Now())
		x.resets = rateLimitReset(resp.Header, time.Now())
		return nil, replyTo(resp)
	}
	resp.Body = newEventBody(resp.Body, x.abort)
	return resp, nil
}

func (d *doer) rewrite(req *http.Request, x *exchange) error {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
	req.Body, _ = open()
	req.GetBody = open
	req.ContentLength = int64(len(x.body))
	for name, values := range d.headers {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	for name, values := range x.own {
		if !isHeaderName(name) || !allHeaderValues(values) {
			return &dsh.Failure{Code: dsh.CodeInvalid, Message: fmt.Sprintf("openai: header %q cannot be sent", name)}
		}
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	i, ok := dsh.InitiatorFrom(req.Context())
	if ok && d.initiator != "" {
		req.Header.Set(d.initiator, initiatorValue(i))
	}
	if !d.base.isFixed() {
		u, err := url.Parse(d.base.fill(string(i.Agent), string(x.request.Session), x.request.Pos.String()) + req.URL.Path[strings.LastIndex(req.URL.Path, completions):])
		if err != nil {
			return fmt.Errorf("openai: the filled base URL: %w", err)
		}
		req.URL, req.Host = u, u.Host
	}
	return nil
}

// initiatorValue writes an initiator as a query, which any header can carry.
func initiatorValue(i dsh.Initiator) string {
	v := url.Values{
		"agent":   {string(i.Agent)},
		"session": {string(i.Session)},
		"root":    {string(i.Root)},
		"depth":   {strconv.Itoa(i.Depth)},
	}
	if i.Parent != "" {
		v.Set("parent", string(i.Parent))
	}
	return v.Encode()
}

// replyTo reads an HTTP error and closes its body.
func replyTo(resp *http.Response) error {
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil && !isEOF(err) {
		return err
	}
	r := replyOf(body)
	r.status = resp.StatusCode
	return r
}

// watched tells the watchdog of each byte, before anybody looks at it.
type watched struct {
	io.ReadCloser
	dog *watchdog
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.dog.byte()
	}
	return n, err
}
