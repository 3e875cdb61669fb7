package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
)

// Options of a [Provider]. The zero value reaches DeepSeek without a key. A
// duration of zero means its default, a negative one no limit.
type Options struct {
	// BaseURL is what /chat/completions is appended to. Default
	// https://api.deepseek.com. Its path may hold {agent}, {session} and
	// {attempt} (turn.step.attempt), which name each request to a gateway.
	BaseURL string
	// APIKey is sent as a bearer token. Empty sends none.
	APIKey string
	// HTTPClient sends the requests. Its Timeout must be zero or long, as it
	// includes reading the stream. Default a client with its own connection
	// pool, sized for many streams to one host, that follows no redirect to
	// another host.
	HTTPClient *http.Client
	// Dialect says what the endpoint understands. Default by the host of
	// BaseURL.
	Dialect Dialect
	// Models describes models by name; the others are unknown.
	Models map[string]llm.Model

	// FirstByteTimeout limits the time from the request to the first byte of
	// the answer's body. Default 5 minutes.
	FirstByteTimeout time.Duration
	// IdleTimeout limits the silence between bytes. Keep-alive comments end a
	// silence. Models that reason unseen are silent for minutes. Default 5
	// minutes.
	IdleTimeout time.Duration
	// TokenIdleTimeout replaces IdleTimeout once the answer has begun. Default
	// IdleTimeout.
	TokenIdleTimeout time.Duration
	// TotalTimeout limits the whole request. Default 2 hours: a server that
	// only sends keep-alives ends some time.
	TotalTimeout time.Duration

	// Quiet is called when a request has been silent for QuietAfter, and again
	// each time that the silence has doubled, so that somebody may be told
	// before a timeout ends it. It runs on a goroutine of its own, must not
	// block for long, and may find the request over. Nil tells nobody.
	Quiet func(ctx context.Context, q Quiet)
	// QuietAfter defaults to 15 seconds.
	QuietAfter time.Duration

	// Truncated says when an answer may end without [DONE]. Default
	// RequireDone.
	Truncated TruncatedPolicy
	// RejectReasoningOnly makes an answer of nothing but reasoning that ends
	// with stop an EMPTY_RESPONSE.
	RejectReasoningOnly bool
	// SplitThink turns a <think> section that opens the text into reasoning,
	// for servers that run without a reasoning parser.
	SplitThink bool

	// ExtraBody adds fields to the request's body or replaces them; nil drops
	// one, as {"stream_options": nil} does for servers that refuse it. The
	// fields model, messages, tools and stream are not to be changed.
	ExtraBody map[string]any
	// Headers are added to each request. Their values are kept out of
	// failures like the key.
	Headers http.Header
	// InitiatorHeader names a request header that tells on whose behalf a
	// request is made (see [dsh.Initiator]), as a URL query. Empty sends none.
	InitiatorHeader string
}

// Dialect is a family of endpoints.
type Dialect string

// Dialects of Options. DeepSeek is told the thinking switch and gets
// reasoning_content on each assistant message with calls. OpenAI is told
// max_completion_tokens and never gets reasoning back, which it does not send.
// Generic is everybody else.
const (
	DialectAuto     Dialect = ""
	DialectDeepSeek Dialect = "deepseek"
	DialectOpenAI   Dialect = "openai"
	DialectGeneric  Dialect = "generic"
)

// TruncatedPolicy says when the end of the connection may end an answer. An
// answer without a finish reason is never complete.
type TruncatedPolicy string

// Policies for answers without [DONE].
const (
	// RequireDone takes nothing but [DONE] for the end.
	RequireDone TruncatedPolicy = ""
	// AcceptFinish takes the end of the connection after a finish reason too,
	// as some gateways leave [DONE] out.
	AcceptFinish TruncatedPolicy = "accept-finish"
)

const (
	defaultBaseURL   = "https://api.deepseek.com"
	defaultFirstByte = 5 * time.Minute
	defaultIdle      = 5 * time.Minute
	defaultTotal     = 2 * time.Hour
	defaultQuiet     = 15 * time.Second
)

// fixedFields are those of the body that ExtraBody may not touch.
var fixedFields = []string{"model", "messages", "tools", "stream"}

// settings are checked options.
type settings struct {
	Options
	extra []field // ExtraBody, encoded, in the order of the names
}

// withDefaults returns o with its defaults filled in, or every problem of it.
func (o Options) withDefaults() (settings, error) {
	var errs []error
	if o.BaseURL == "" {
		o.BaseURL = defaultBaseURL
	}
	host, err := checkTemplate(o.BaseURL)
	errs = append(errs, err)
	if o.Dialect == DialectAuto {
		o.Dialect = dialectOf(host)
	}
	if !slices.Contains([]Dialect{DialectDeepSeek, DialectOpenAI, DialectGeneric}, o.Dialect) {
		errs = append(errs, fmt.Errorf("openai: unknown dialect %q", o.Dialect))
	}
	if o.Truncated != RequireDone && o.Truncated != AcceptFinish {
		errs = append(errs, fmt.Errorf("openai: unknown truncated policy %q", o.Truncated))
	}
	if !isHeaderValue(o.APIKey) {
		errs = append(errs, errors.New("openai: the API key holds a control character; is there a line end behind it?"))
	}
	o.Headers = o.Headers.Clone()
	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		if !isHeaderName(name) || !allHeaderValues(o.Headers[name]) {
			errs = append(errs, fmt.Errorf("openai: header %q cannot be sent", name))
		}
	}
	if o.InitiatorHeader != "" && !isHeaderName(o.InitiatorHeader) {
		errs = append(errs, fmt.Errorf("openai: initiator header %q cannot be sent", o.InitiatorHeader))
	}
	extra, err := encodeExtra(o.ExtraBody)
	errs = append(errs, err)
	if o.HTTPClient == nil {
		o.HTTPClient = &http.Client{Transport: newTransport(), CheckRedirect: sameHost}
	}
	o.Models = maps.Clone(o.Models)
	o.fillTimeouts()
	return settings{Options: o, extra: extra}, errors.Join(errs...)
}

func (o *Options) fillTimeouts() {
	fill := func(d *time.Duration, standard time.Duration) {
		if *d == 0 {
			*d = standard
		}
	}
	fill(&o.FirstByteTimeout, defaultFirstByte)
	fill(&o.IdleTimeout, defaultIdle)
	fill(&o.TokenIdleTimeout, o.IdleTimeout)
	fill(&o.TotalTimeout, defaultTotal)
	fill(&o.QuietAfter, defaultQuiet)
}

func checkBaseURL(raw string) (host string, err error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", errors.New("openai: the base URL cannot be parsed") // err would repeat it, key and all
	case u.User != nil:
		return "", errors.New("openai: the base URL holds a user; put keys in APIKey or Headers")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", fmt.Errorf("openai: base URL %q is not http or https with a host", raw)
	case u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("openai: the base URL has a query or a fragment, which the path is appended to")
	}
	return strings.ToLower(u.Hostname()), nil
}

func dialectOf(host string) Dialect {
	within := func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }
	switch {
	case within("deepseek.com"):
		return DialectDeepSeek
	case within("openai.com"), within("openai.azure.com"):
		return DialectOpenAI
	}
	return DialectGeneric
}

// encodeExtra encodes the fields once, so that every request has the same
// bytes.
func encodeExtra(extra map[string]any) ([]field, error) {
	var fields []field
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if slices.Contains(fixedFields, name) {
			errs = append(errs, fmt.Errorf("openai: the extra body field %q is the adapter's own", name))
			continue
		}
		if extra[name] == nil {
			fields = append(fields, field{name, nil})
			continue
		}
		var b bytes.Buffer
		if err := encodeJSON(&b, extra[name]); err != nil {
			errs = append(errs, fmt.Errorf("openai: extra body field %q: %w", name, err))
			continue
		}
		fields = append(fields, field{name, json.RawMessage(b.Bytes())})
	}
	return fields, errors.Join(errs...)
}

// newTransport is the default transport with a pool for many streams to one
// host.
func newTransport() *http.Transport {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: idleConnections}
	}
	t = t.Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnections, idleConnections
	return t
}

const (
	idleConnections = 256
	maxRedirects    = 5
)

// sameHost follows redirects that keep host, scheme and method. Any other
// would send headers, keys among them, to who was not meant, or no body.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxRedirects || req.Method != first.Method ||
		req.URL.Host != first.URL.Host || req.URL.Scheme != first.URL.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

func isHeaderName(s string) bool {
	const others = "!#$%&'*+-.^_`|~"
	for _, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune(others, r) {
			return false
		}
	}
	return s != ""
}

func isHeaderValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

func allHeaderValues(values []string) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return !isHeaderValue(v) })
}
