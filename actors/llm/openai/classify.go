package openai

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// rule says what one kind of error looks like. It matches if one of its signs
// does, and only where its statuses allow it. A rule without signs matches by
// status alone.
type rule struct {
	code     dsh.Code
	names    []string       // of an error code or type, whole
	texts    []string       // within the text, lower case
	words    *regexp.Regexp // within the text
	statuses func(status int) bool
}

// rules is the classification, first match first: what the text says comes
// before the status, because proxies wrap any error in any status. A status of
// 0 is that of an error inside a stream.
var rules = []rule{
	{ // The account, whatever the status: waiting does not help.
		code: dsh.CodeQuota,
		names: []string{
			"insufficient_quota", "insufficient_balance", "insufficient_user_quota", "quota_exceeded",
			"billing_not_active", "billing_hard_limit_reached", "payment_required",
		},
		texts: []string{"insufficient balance", "insufficient_quota", "exceeded your current quota"},
	},
	{code: dsh.CodeQuota, statuses: is(402)},
	{ // Throttles, some of which speak of too many tokens or of billing pages.
		code:  dsh.CodeRateLimit,
		names: []string{"rate_limit_exceeded", "rate_limit_error", "rate_limit_reached_error", "too_many_requests"},
		texts: []string{
			"too many tokens, please wait", "tokens per min", "requests per min", "tokens per day", "requests per day",
			"rate limit", "rate_limit", "too many requests", "request was throttled",
		},
	},
	{ // The prompt is too long; also inside a 5xx.
		code:  dsh.CodeContextWindow,
		names: []string{"context_length_exceeded", "context_window_exceeded", "exceed_context_size_error"},
		texts: []string{
			"maximum context length", "max context length", "context length", "context window",
			"exceeds the available context size", "exceeds the maximum allowed input length", "prompt is too long",
			"prompt too long", "requested token count exceeds", "context_length_exceeded", "contextwindowexceeded",
			"reduce the length of the messages", "input token count exceeds the maximum",
		},
	},
	{ // The account again, by words that other errors use too.
		code:     dsh.CodeQuota,
		words:    regexp.MustCompile(`\b(balance|billing|credits?)\b`),
		statuses: is(0, 400, 403, 429),
	},
	{
		code: dsh.CodeContentFilter,
		names: []string{
			"content_filter", "content_policy_violation", "content_filter_error", "responsibleaipolicyviolation",
		},
		texts: []string{"content management policy", "content exists risk"},
	},
	{ // Too many bytes, not too many tokens: compaction does not help.
		code:  dsh.CodeInvalid,
		names: []string{"request_too_large"},
		texts: []string{"image exceeds", "request entity too large", "payload too large"},
	},
	{
		code:  dsh.CodeAuth,
		names: []string{"invalid_api_key", "authentication_error", "permission_error", "unauthorized"},
		texts: []string{"invalid api key", "incorrect api key", "api key not valid", "authentication fails"},
	},
	{code: dsh.CodeAuth, statuses: is(401, 403)},
	{code: dsh.CodeTimeout, statuses: is(408)},
	{code: dsh.CodeRateLimit, statuses: is(429)},
	{code: dsh.CodeServer, statuses: is(409, 425)}, // passing states of a server
	{code: dsh.CodeServer, statuses: from(500)},
	{code: dsh.CodeInvalid, statuses: from(400)},
	{ // Inside a stream, where there is no status.
		code:  dsh.CodeInvalid,
		names: []string{"invalid_request_error", "invalid_request", "bad_request", "badrequesterror", "not_found_error"},
	},
	{code: dsh.CodeTimeout, names: []string{"timeout", "timeout_error", "request_timeout"}},
	{code: dsh.CodeServer, statuses: is(0)},
}

// classify returns what kind of error r is.
func classify(r *reply) dsh.Code {
	text := strings.ToLower(r.message + "\n" + r.detail)
	for i := range rules {
		if rules[i].matches(r, text) {
			return rules[i].code
		}
	}
	return dsh.CodeUnknown
}

func (u *rule) matches(r *reply, text string) bool {
	if u.statuses != nil && !u.statuses(r.status) {
		return false
	}
	if u.names == nil && u.texts == nil && u.words == nil {
		return true
	}
	return slices.Contains(u.names, r.code) || slices.Contains(u.names, r.kind) ||
		slices.ContainsFunc(u.texts, func(s string) bool { return strings.Contains(text, s) }) ||
		u.words != nil && u.words.MatchString(text)
}

func is(statuses ...int) func(int) bool {
	return func(status int) bool { return slices.Contains(statuses, status) }
}

func from(least int) func(int) bool {
	return func(status int) bool { return status >= least }
}
