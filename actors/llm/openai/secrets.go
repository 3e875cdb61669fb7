package openai

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

const redacted = "[redacted]"

// shortestSecret is the shortest header value that is taken for a secret; a
// shorter one would blacken ordinary words.
const shortestSecret = 8

var secretForms = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\bbearer\s+[^\s"',;]+`),
	regexp.MustCompile(`\bsk-[A-Za-z0-9_*-]{4,}`),
}

// secrets are the texts that no failure may hold.
type secrets struct {
	known    []string
	replacer *strings.Replacer
}

func newSecrets(key string, headers http.Header) secrets {
	var known []string
	if key != "" {
		known = append(known, key)
	}
	return secrets{known: known}.with(headers)
}

// with returns the secrets with those of more headers.
func (s secrets) with(headers http.Header) secrets {
	if len(headers) == 0 && s.replacer != nil {
		return s
	}
	known := slices.Clone(s.known)
	for _, values := range headers {
		for _, v := range values {
			if len(v) >= shortestSecret {
				known = append(known, v)
			}
		}
	}
	// The longest first, so that none leaves the rest of another behind.
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, k := range known {
		pairs = append(pairs, k, redacted)
	}
	return secrets{known, strings.NewReplacer(pairs...)}
}

// redact takes known secrets out of text, and whatever looks like one.
func (s secrets) redact(text string) string {
	text = s.replacer.Replace(text)
	for _, form := range secretForms {
		text = form.ReplaceAllString(text, redacted)
	}
	return text
}
