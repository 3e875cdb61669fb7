package tool

import (
	"encoding/json"
	"strings"
	"testing"
)

const flat = `{"type":"object","properties":{"s":{"type":"string"},"n":{"type":"number","description":"d"},` +
	`"i":{"type":"integer"},"b":{"type":"boolean"}},"required":["s"],"additionalProperties":false}`

func compiled(t testing.TB, schema string) *parameters {
	t.Helper()
	p, err := compileParameters(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlainFits(t *testing.T) {
	p := compiled(t, flat)
	if p.plain == nil {
		t.Fatal("a flat schema has no plain form")
	}
	for args, want := range map[string]bool{
		`{"s":"x"}`: true, ` { "s" : "x" , "n" : 1.5 , "i" : -3 , "b" : true } `: true,
		`{"s":"a\"b\\","n":1}`: true, `{"n":1.25,"s":""}`: true, `{"s":"x","b":false}`: true,
		`{}`: false, `{"n":1}`: false, `{"s":1}`: false, `{"s":"x","i":1.5}`: false, `{"s":"x","b":"true"}`: false,
		`{"s":"x","other":1}`: false, `{"s":null}`: false, `{"s":["x"]}`: false, `{"s":"x","s":"y"}`: false,
		`{"s":"x"`: false, `[]`: false, `"s"`: false, ``: false, `null`: false, `{"\u0073":"x"}`: false,
		`{"s":"x","n":1e3}`: false, `{"s":"x","n":1E4444}`: false, // left to the validator, which knows what a float64 holds
		`{"s":"x","i":` + strings.Repeat("9", 300) + `}`: true, `{"s":"x","i":` + strings.Repeat("9", 301) + `}`: false,
	} {
		if got := p.plain.fits(json.RawMessage(args)); got != want {
			t.Errorf("%s: fits = %v, want %v", args, got, want)
		}
	}
}

func TestOnlyFlatSchemasArePlain(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object"}`: true,
		`{"type":"object","properties":{"a":{"type":"string"}}}`:                                    true,
		`{"type":"object","properties":{"a":{"type":"string","enum":["x"]}}}`:                       false,
		`{"type":"object","properties":{"a":{"type":["string","null"]}}}`:                           false,
		`{"type":"object","properties":{"a":{"type":"array"}}}`:                                     false,
		`{"type":"object","properties":{"a":{}}}`:                                                   false,
		`{"type":"object","required":["a"]}`:                                                        false,
		`{"type":"object","minProperties":1}`:                                                       false,
		`{"type":"object","additionalProperties":{"type":"string"}}`:                                false,
		`{"type":"object","additionalProperties":true}`:                                             false,
		`{"type":"object","properties":{"a":{"type":"string"}},"allOf":[{"required":["a"]}]}`:       false,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:       true,
		`{"type":"object","properties":{"a":{"type":"string","minLength":1}},"required":["a"]}`:     false,
		`{"type":"object","properties":{"a":{"type":"string","default":"x"}},"required":["a"]}`:     true,
		`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"number"}},"title":"t"}`: true,
	} {
		if got := compiled(t, schema).plain != nil; got != want {
			t.Errorf("%s: plain = %v, want %v", schema, got, want)
		}
	}
}

// Whatever the plain form recognises, the validator accepts.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{`{"s":"x"}`, `{"s":"x","n":1.0,"i":1,"b":true}`, `{"s":"\\\"","i":-0}`, `{"s":"x","i":1e2}`, `{"s":"","i":99999999999999999999}`, `{"s":"x","n":1.04E4444}`} {
		f.Add([]byte(s))
	}
	p := compiled(f, flat)
	f.Fuzz(func(t *testing.T, args []byte) {
		if !p.plain.fits(args) {
			return
		}
		var value any
		if err := json.Unmarshal(args, &value); err != nil {
			t.Fatalf("%q is no JSON: %v", args, err)
		}
		if err := p.resolved.Validate(value); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
	})
}

func TestPlainAllocatesNothing(t *testing.T) {
	p := compiled(t, flat)
	args := json.RawMessage(`{"s":"x","n":1.5,"i":3,"b":true}`)
	if n := testing.AllocsPerRun(100, func() { p.fit(args) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
