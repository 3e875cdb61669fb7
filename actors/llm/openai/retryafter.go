package openai

import (
	"math"
	"net/http"
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
