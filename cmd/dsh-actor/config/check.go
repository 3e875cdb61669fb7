package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dsh-actor/dsh-actor/tool"
)

// checker walks a file beside the type of what it holds.
type checker struct {
	path    string
	project bool
	errs    []error
}

func (c *checker) fail(n *yaml.Node, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s:%d: %s", c.path, n.Line, fmt.Sprintf(format, args...)))
}

// secretKeys are names under which people put keys.
var secretKeys = []string{"api_key", "apikey", "api-key", "key", "token", "secret", "api_keys", "keys", "password"}

// fixed are keys that have few values.
var fixed = map[string][]string{
	"store":                 Stores,
	"dialect":               {"auto", "deepseek", "openai", "generic"},
	"providers.*.truncated": {"require-done", "accept-finish"},
	"retry.truncated":       {"never", "unseen", "always"},
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (c *checker) check(n *yaml.Node, t reflect.Type, at string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case t.Kind() == reflect.Interface: // a body's own, null too
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		c.fail(n, "%s is empty; leave the key out", named(at))
	case t.Kind() == reflect.Struct:
		c.object(n, t, at)
	case t.Kind() == reflect.Map:
		c.entries(n, t, at)
	case t.Kind() == reflect.Slice:
		c.list(n, t, at)
	case n.Kind != yaml.ScalarNode:
		c.fail(n, "%s is not one value", named(at))
	default:
		if _, err := scalar(n, t); err != nil {
			c.fail(n, "%s: %v", named(at), err)
		}
		c.value(n, at)
	}
}

func named(at string) string {
	if at == "" {
		return "the file"
	}
	return at
}

func (c *checker) object(n *yaml.Node, t reflect.Type, at string) {
	if n.Kind != yaml.MappingNode {
		c.fail(n, "%s does not hold keys", named(at))
		return
	}
	fields := map[string]reflect.Type{}
	var names []string
	for i := range t.NumField() {
		name := t.Field(i).Tag.Get("koanf")
		fields[name], names = t.Field(i).Type, append(names, name)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		field, ok := fields[key.Value]
		switch {
		case ok:
			c.check(n.Content[i+1], field, join(at, key.Value))
		case slices.Contains(secretKeys, strings.ToLower(key.Value)):
			c.fail(key, "%s: keys are never read from a file; put the key into an environment variable and name it with api_key_env",
				join(at, key.Value))
		default:
			c.fail(key, "there is no key %s%s", join(at, key.Value), nearest(key.Value, names))
		}
	}
}

func nearest(key string, names []string) string {
	if near := tool.Near(key, names); len(near) > 0 {
		return "; did you mean " + near[0] + "?"
	}
	best, least := "", len(key)+1
	for _, name := range names {
		if d := distance(key, name); d < least {
			best, least = name, d
		}
	}
	return "; the nearest is " + best
}

// distance is the number of edits between two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

func (c *checker) entries(n *yaml.Node, t reflect.Type, at string) {
	if n.Kind != yaml.MappingNode {
		c.fail(n, "%s does not hold keys", named(at))
		return
	}
	if c.project && strings.HasSuffix(at, ".headers_env") {
		c.fail(n, "%s: a project's file may not say where secrets are found; put it into your own file", at)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		c.check(n.Content[i+1], t.Elem(), join(at, n.Content[i].Value))
	}
}

func (c *checker) list(n *yaml.Node, t reflect.Type, at string) {
	if strings.HasSuffix(at, ".api_key_env") {
		if c.project {
			c.fail(n, "%s: a project's file may not say where keys are found; put it into your own file", at)
		}
		items := n.Content
		if n.Kind == yaml.ScalarNode {
			items = []*yaml.Node{n}
		}
		for _, item := range items {
			if !variableName.MatchString(item.Value) { // which may be a key: it is not repeated
				c.fail(item, "%s holds something that is no name of an environment variable; is it the key itself? Keys are never read from a file", at)
			}
		}
		return
	}
	if n.Kind == yaml.ScalarNode {
		c.check(n, t.Elem(), at)
		return
	}
	for _, item := range n.Content {
		c.check(item, t.Elem(), at)
	}
}

// value checks what a plain value may be.
func (c *checker) value(n *yaml.Node, at string) {
	parts := strings.Split(at, ".")
	last := parts[len(parts)-1]
	key := at
	switch {
	case last == "dialect":
		key = last
	case len(parts) > 2 && parts[0] == "providers":
		key = "providers.*." + last
	}
	if c.project && (parts[0] == "store" || parts[0] == "sessions") {
		c.fail(n, "%s: a project's file may not say what becomes of your sessions; put it into your own file", at)
	}
	if at == "sessions.dir" && !filepath.IsAbs(n.Value) && !strings.HasPrefix(n.Value, home) {
		c.fail(n, "%s: %q is neither a whole path nor one that begins with %s", at, n.Value, home)
	}
	if values, ok := fixed[key]; ok && !slices.Contains(values, n.Value) {
		c.fail(n, "%s: %q is not one of %s", at, n.Value, strings.Join(values, ", "))
	}
}

// scalar reads one value as a type says.
func scalar(n *yaml.Node, t reflect.Type) (any, error) {
	if t == reflect.TypeFor[time.Duration]() {
		if _, err := time.ParseDuration(n.Value); err != nil {
			return nil, fmt.Errorf("%q is no time such as 90s or 5m", n.Value)
		}
		return n.Value, nil
	}
	if t.Kind() == reflect.Slice {
		return []any{n.Value}, nil
	}
	v := reflect.New(t)
	if err := n.Decode(v.Interface()); err != nil {
		return nil, fmt.Errorf("%q is no %s", n.Value, kindOf(t))
	}
	if t.Kind() == reflect.Pointer {
		return v.Elem().Elem().Interface(), nil
	}
	if t.Kind() == reflect.Int && v.Elem().Int() < 0 {
		return nil, fmt.Errorf("%s must not be negative", n.Value)
	}
	return v.Elem().Interface(), nil
}

func kindOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() { //nolint:exhaustive // those that a configuration has.
	case reflect.Int, reflect.Int64:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "true or false"
	}
	return "text"
}

// isLoopback reports whether a URL stays on this machine.
func isLoopback(raw string) bool {
	u, err := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(raw))
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
