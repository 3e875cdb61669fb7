package openai

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm/llmtest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Texts that servers are known to send, and some that only look like others.
func TestClassify(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		want   dsh.Code
	}{
		{"vLLM overflow", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","code":400}`, dsh.CodeContextWindow},
		{"llama.cpp overflow", 500, `{"error":{"code":500,"message":"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error"}}`, dsh.CodeContextWindow},
		{"llama.cpp overflow without numbers", 400, `{"error":"the request exceeds the available context size"}`, dsh.CodeContextWindow},
		{"Ollama overflow", 400, `{"error":"prompt too long; exceeded max context length by 10 tokens"}`, dsh.CodeContextWindow},
		{"Anthropic overflow", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, dsh.CodeContextWindow},
		{"SGLang overflow", 400, `{"object":"error","message":"Input length 9000 exceeds the maximum allowed input length 8000"}`, dsh.CodeContextWindow},
		{"overflow by code", 400, `{"error":{"message":"no","code":"context_length_exceeded"}}`, dsh.CodeContextWindow},
		{"overflow within a proxy's error", 502, `{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"maximum context length is 10"}}}`, dsh.CodeContextWindow},
		{"overflow in the stream", 200, `{"error":{"message":"Requested token count exceeds the limit"}}`, dsh.CodeContextWindow},
		{"not overflow: Bedrock throttle", 400, `{"message":"Too many tokens, please wait before trying again."}`, dsh.CodeRateLimit},
		{"not overflow: tokens per minute", 429, `{"error":{"message":"Request too large for m on tokens per min (TPM): Limit 30000","code":"rate_limit_exceeded"}}`, dsh.CodeRateLimit},
		{"not overflow: a request of many bytes", 413, `{"error":{"message":"Request Entity Too Large"}}`, dsh.CodeInvalid},
		{"not overflow: an image", 400, `{"error":{"message":"image exceeds 5 MB maximum"}}`, dsh.CodeInvalid},
		{"not overflow: max_tokens", 400, `{"error":{"message":"max_tokens is too large: 999999","type":"invalid_request_error"}}`, dsh.CodeInvalid},

		{"quota with 429", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`, dsh.CodeQuota},
		{"DeepSeek balance", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error"}}`, dsh.CodeQuota},
		{"credits with 403", 403, `{"error":{"message":"Your credit is used up"}}`, dsh.CodeQuota},
		{"402 without text", 402, ``, dsh.CodeQuota},
		{"not quota: a link to the billing page", 429, `{"error":{"message":"Rate limit reached for m on requests per min (RPM): Limit 3. Add a payment method at https://platform.openai.com/account/billing"}}`, dsh.CodeRateLimit},
		{"not quota: a load balancer", 503, `upstream load balancer has no balance`, dsh.CodeServer},
		{"not quota: credentials", 401, `{"error":{"message":"bad credentials"}}`, dsh.CodeAuth},

		{"rate", 429, `{"error":{"message":"slow down"}}`, dsh.CodeRateLimit},
		{"rate in the stream", 200, `{"error":{"code":429,"message":"Provider returned error"}}`, dsh.CodeRateLimit},
		{"rate by type in the stream", 200, `{"error":{"type":"rate_limit_error","message":"no"}}`, dsh.CodeRateLimit},

		{"auth", 401, `{"error":{"message":"Authentication Fails"}}`, dsh.CodeAuth},
		{"key with 400", 400, `{"error":{"message":"API key not valid. Please pass a valid API key."}}`, dsh.CodeAuth},
		{"forbidden", 403, `<html>no</html>`, dsh.CodeAuth},

		{"DeepSeek orphan call", 400, `{"error":{"message":"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."}}`, dsh.CodeInvalid},
		{"DeepSeek orphan result", 400, `{"error":{"message":"Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"}}`, dsh.CodeInvalid},
		{"DeepSeek reasoning", 400, `{"error":{"message":"Missing reasoning_content field in the assistant message at message index 3"}}`, dsh.CodeInvalid},
		{"FastAPI", 422, `{"detail":[{"loc":["body","model"],"msg":"field required"}]}`, dsh.CodeInvalid},
		{"no such model", 404, `{"error":{"message":"model not found","code":404}}`, dsh.CodeInvalid},
		{"invalid in the stream", 200, `{"error":{"type":"invalid_request_error","message":"no"}}`, dsh.CodeInvalid},

		{"server", 500, `{"error":"internal"}`, dsh.CodeServer},
		{"overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, dsh.CodeServer},
		{"bad gateway page", 502, `<html><title>502</title></html>`, dsh.CodeServer},
		{"unknown in the stream", 200, `{"error":{"message":"upstream died"}}`, dsh.CodeServer},
		{"request timeout", 408, ``, dsh.CodeTimeout},
		{"timeout in the stream", 200, `{"error":{"type":"timeout_error","message":"x"}}`, dsh.CodeTimeout},
		{"filter", 400, `{"error":{"code":"content_filter","message":"The response was filtered"}}`, dsh.CodeContentFilter},
		{"DeepSeek filter", 400, `{"error":{"message":"Content Exists Risk","type":"invalid_request_error"}}`, dsh.CodeContentFilter},
		{"conflict", 409, ``, dsh.CodeServer},
		{"a redirect to nowhere", 304, ``, dsh.CodeUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := ask(t, Options{}, request(), llmtest.Status(tt.status, tt.body).Header("X-Request-Id", "req-1"))
			out.wantFailure(t, tt.want)
			f := out.failure(t)
			if f.RequestID != "req-1" {
				t.Errorf("request ID %q", f.RequestID)
			}
			if tt.status != http.StatusOK && f.Status != tt.status {
				t.Errorf("status %d", f.Status)
			}
			if !strings.HasPrefix(f.Message, "openai: ") || strings.Contains(f.Message, "\n") {
				t.Errorf("message %q", f.Message)
			}
		})
	}
}

func TestErrorShapes(t *testing.T) {
	for data, want := range map[string]string{
		`{"error":{"message":"m","code":"c","type":"T"}}`:        "m",
		`{ "error" : {"message":["m"]} }`:                        `["m"]`,
		`{"error":"m"}`:                                          "m",
		`{"error":{"code":7}}`:                                   `{"code":7}`,
		`{"error":{"message":"m","metadata":"odd"}}`:             "m",
		`{"error":["m"]}`:                                        `["m"]`,
		`{"object":"error","message":"m","code":400}`:            "m",
		`{"detail":"m"}`:                                         "m",
		`{"message":"m"}`:                                        "m",
		`{"type":"error","error":{"message":"m"}}`:               "m",
		`{"choices":[{"delta":{}}],"error":{"message":"m"}}`:     "m",
		`{"choices":[],"error":null}`:                            "",
		`{"error":null,"choices":[]}`:                            "",
		`{"error":"","choices":[]}`:                              "",
		`{"error":{},"choices":[]}`:                              "",
		`{"choices":[{"delta":{"content":"the \"error\": x"}}]}`: "",
		`{"choices":[],"message":"m"}`:                           "",
		`{"id":"x","prompt_filter_results":[]}`:                  "",
		`[1]`:                                                    "",
		`{`:                                                      "",
		``:                                                       "",
	} {
		got := ""
		if r := errorIn([]byte(data)); r != nil {
			got = r.message
		}
		if got != want {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}

// An error member that is null is no error, wherever it stands: go-openai
// would take the first of these for one.
func TestNullErrorMember(t *testing.T) {
	ask(t, Options{}, request(), data(
		`{"error":null,"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[{"delta":{"content":"b"},"error":null}]}`,
		finished("stop"),
	)).want(t, dsh.FinishStop, dsh.Text{Text: "ab"})
}

func TestRetryAfterHeader(t *testing.T) {
	now := time.Date(2026, 10, 21, 7, 28, 0, 0, time.UTC)
	for value, want := range map[string]string{
		"0": "0", "1.5": "1500", " 2 ": "2000", "-1": "0", "Wed, 21 Oct 2026 07:28:30 GMT": "30000",
		"": "-", "soon": "-", "NaN": "-", "1e300": "31536000000",
	} {
		if got := told(retryAfter(http.Header{"Retry-After": {value}}, now)); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
	both := http.Header{"Retry-After": {"9"}, "Retry-After-Ms": {"250.7"}}
	if got := told(retryAfter(both, now)); got != "250" {
		t.Errorf("both: %s", got)
	}
}
