package openai

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// maxErrorBody bounds what is read of the body of an HTTP error.
const maxErrorBody = 256 << 10

// exchange is what one request carries through go-openai: on the way out the
// body to send, on the way back what go-openai drops.
type exchange struct {
	body  []byte
	dog   *watchdog
	abort func()

	status     int
	requestID  string
	retryAfter *int64
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
}

// Do sends the exchange's body in place of go-openai's. An answer with a
// status other than 2xx is returned as a *reply, the body of any other is an
// [eventBody].
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		panic("openai: a request without an exchange")
	}
	d.rewrite(req, x.body)
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, err
	}
	x.status, x.requestID = resp.StatusCode, requestID(resp.Header)
	resp.Body = &watched{resp.Body, x.dog}
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusMultipleChoices {
		x.retryAfter = retryAfter(resp.Header, time.Now())
		return nil, replyTo(resp)
	}
	resp.Body = newEventBody(resp.Body, x.abort)
	return resp, nil
}

func (d *doer) rewrite(req *http.Request, body []byte) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = open()
	req.GetBody = open
	req.ContentLength = int64(len(body))
	for name, values := range d.headers {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if i, ok := dsh.InitiatorFrom(req.Context()); ok && d.initiator != "" {
		req.Header.Set(d.initiator, initiatorValue(i))
	}
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
