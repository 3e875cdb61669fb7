package openai

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds what is believed, so that nothing overflows.
const maxRetryAfter = 365 * 24 * time.Hour

// retryAfter returns how long the server asked to wait, in milliseconds, or
// nil: retry-after-ms, or Retry-After in seconds or as a date. A date counts
// from the server's own Date, if it sent one, else from now.
func retryAfter(h http.Header, now time.Time) *int64 {
	if ms, ok := number(h.Get("Retry-After-Ms")); ok {
		return wait(time.Duration(ms * float64(time.Millisecond)))
	}
	value := h.Get("Retry-After")
	if s, ok := number(value); ok {
		return wait(time.Duration(s * float64(time.Second)))
	}
	at, err := http.ParseTime(strings.TrimSpace(value))
	if err != nil {
		return nil
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return wait(at.Sub(now))
}

func number(s string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(f) {
		return 0, false
	}
	return max(0, min(f, maxRetryAfter.Seconds())), true
}

func wait(d time.Duration) *int64 {
	ms := max(0, min(d, maxRetryAfter)).Milliseconds()
	return &ms
}

// requestIDHeaders name a request, the endpoint's own names before those of
// what stands in front of it.
var requestIDHeaders = []string{
	"X-Request-Id", "X-Deepseek-Request-Id", "X-Ds-Trace-Id", "X-Generation-Id", "Request-Id", "Cf-Ray",
}

// requestID returns the provider's name for a request, or "".
func requestID(h http.Header) string {
	for _, name := range requestIDHeaders {
		if id := h.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// resetHeaders tell when a rate limit is over: of requests and of tokens, as
// OpenAI and those that follow it send them, and of anything.
var resetHeaders = []struct{ reset, remaining string }{
	{"X-Ratelimit-Reset-Requests", "X-Ratelimit-Remaining-Requests"},
	{"X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining-Tokens"},
	{"X-Ratelimit-Reset", "X-Ratelimit-Remaining"},
	{"Ratelimit-Reset", "Ratelimit-Remaining"},
}

// rateLimitReset returns the longest wait, in milliseconds, until a limit that
// is used up is over, or nil. A limit that does not tell what remains counts
// as used up if no other is.
func rateLimitReset(h http.Header, now time.Time) *int64 {
	var usedUp, untold *int64
	for _, names := range resetHeaders {
		at := resetWait(h.Get(names.reset), now)
		if at == nil {
			continue
		}
		remaining, told := number(h.Get(names.remaining))
		switch {
		case !told:
			untold = longer(untold, at)
		case remaining == 0:
			usedUp = longer(usedUp, at)
		}
	}
	if usedUp != nil {
		return usedUp
	}
	return untold
}

func longer(a, b *int64) *int64 {
	if a == nil || *b > *a {
		return b
	}
	return a
}

// Numbers above these are points in time, not waits.
const (
	leastEpoch   = 1_000_000_000
	leastEpochMs = 1_000_000_000_000
)

// resetWait reads "6m0s", seconds, or a Unix time in seconds or milliseconds.
func resetWait(value string, now time.Time) *int64 {
	value = strings.TrimSpace(value)
	if value == "" {
		return nil
	}
	if d, err := time.ParseDuration(value); err == nil {
		return wait(d)
	}
	f, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil || math.IsNaN(f) || math.IsInf(f, 0):
		return nil
	case f >= leastEpochMs:
		return wait(time.UnixMilli(int64(f)).Sub(now))
	case f >= leastEpoch:
		return wait(time.Unix(int64(f), 0).Sub(now))
	}
	return wait(time.Duration(min(f, maxRetryAfter.Seconds()) * float64(time.Second)))
}

// Texts that tell a wait, such as "Please try again in 1m20.5s" and "retry
// after 20 seconds".
var (
	waitText = regexp.MustCompile(`(?i)\b(?:try again|retry)\s+(?:in|after)\s+((?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|minutes?|min|m|seconds?|secs?|s|hours?|h)\b\s*|\d+(?:\.\d+)?(?:ms|m|s|h))+)`)
	waitPart = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)\s*(milliseconds?|ms|minutes?|min|m|seconds?|secs?|s|hours?|h)`)
)

// retryText returns the wait that an error's text asks for, in milliseconds,
// or nil.
func retryText(text string) *int64 {
	m := waitText.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	var sum time.Duration
	for _, part := range waitPart.FindAllStringSubmatch(m[1], -1) {
		n, _ := number(part[1])
		unit := time.Second
		switch name := strings.ToLower(part[2]); {
		case strings.HasPrefix(name, "ms"), strings.HasPrefix(name, "milli"):
			unit = time.Millisecond
		case strings.HasPrefix(name, "m"):
			unit = time.Minute
		case strings.HasPrefix(name, "h"):
			unit = time.Hour
		}
		sum += time.Duration(min(n*float64(unit), float64(maxRetryAfter)))
	}
	return wait(sum)
}
