package openai

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// completions is the end of the path that go-openai appends.
const completions = "/chat/completions"

// template is a base URL whose path may hold places to fill in: a gateway
// between us and the model then knows which agent, session and attempt a
// request belongs to.
type template string

// places are what a template may hold.
var places = []string{"{agent}", "{session}", "{attempt}"}

var anyPlace = regexp.MustCompile(`\{[^{}/]*\}`)

func (t template) isFixed() bool { return !strings.Contains(string(t), "{") }

// fill returns the URL with each place's value as one segment of the path.
func (t template) fill(agent, session, attempt string) string {
	return strings.NewReplacer(
		places[0], segment(agent), places[1], segment(session), places[2], segment(attempt),
	).Replace(string(t))
}

// segment escapes a value so that it is one segment of a path and is not empty.
func segment(value string) string {
	switch value {
	case "":
		return "-"
	case ".", "..":
		return strings.ReplaceAll(value, ".", "%2E")
	}
	return url.PathEscape(value)
}

// checkTemplate returns the host of a base URL, or why it is none.
func checkTemplate(raw string) (host string, err error) {
	for _, place := range anyPlace.FindAllString(raw, -1) {
		if !slices.Contains(places, place) {
			return "", fmt.Errorf("openai: the base URL holds %s; there are %s", place, strings.Join(places, ", "))
		}
	}
	host, err = checkBaseURL(template(raw).fill("x", "x", "x"))
	if err != nil {
		return "", err
	}
	if _, rest, ok := strings.Cut(raw, "://"); ok {
		if authority, _, _ := strings.Cut(rest, "/"); strings.Contains(authority, "{") {
			return "", fmt.Errorf("openai: the base URL's host holds a place to fill in; only its path may")
		}
	}
	return host, nil
}
