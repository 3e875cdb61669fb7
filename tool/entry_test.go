package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/hook"
	"github.com/dsh-actor/dsh-actor/tool"
)

func entry(t testing.TB, x tool.Tool) *tool.Entry {
	t.Helper()
	r := tool.NewRegistry(nil)
	if err := r.Register(x); err != nil {
		t.Fatal(err)
	}
	e, ok := r.Snapshot().Lookup(r.Snapshot().Schemas()[0].Name)
	if !ok {
		t.Fatal("the registered tool is not found")
	}
	return e
}

// withSchema returns a tool called echo that fails the test when it runs.
func withSchema(t *testing.T, params string) tool.Tool {
	return tool.New(tool.Definition{Name: "echo", Parameters: json.RawMessage(params), Execute: func(_ context.Context, c tool.Call) (tool.Result, error) {
		t.Errorf("the tool ran with %s", c.Args)
		return tool.Result{}, nil
	}})
}

// What a model reads when its arguments do not fit.
func TestRefusals(t *testing.T) {
	const text = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`
	const rich = `{"type":"object","additionalProperties":false,"required":["mode"],"properties":{
		"mode":{"enum":["fast","slow"]},
		"n":{"type":"integer","minimum":1,"maximum":9},
		"x":{"type":["number","null"],"exclusiveMinimum":0},
		"id":{"type":"string","pattern":"^[a-z]+$","minLength":2,"maxLength":4},
		"list":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"object","properties":{"k":{"type":"boolean"}},"required":["k"]}},
		"either":{"anyOf":[{"type":"string"},{"type":"boolean"}]}}}`
	const head = "Invalid arguments for echo, which was not run. "
	for _, c := range []struct{ schema, args, want string }{
		{text, `{"text":5,"extra":true}`, head + `text: expected string, got integer 5. Required: text (string). Got: {"text":5,"extra":true}`},
		{text, `{}`, head + `text: missing, expected string. Required: text (string). Got: {}`},
		{text, ``, head + `text: missing, expected string. Required: text (string). Got: {}`},
		{text, `null`, head + `They must be a JSON object, not null. Required: text (string). Got: null`},
		{text, `[]`, head + `They must be a JSON object, not array []. Required: text (string). Got: []`},
		{text, `"str"`, head + `The text is not valid JSON: invalid character 's' looking for beginning of value at byte 1, behind "s". Required: text (string).`},
		{text, `7`, head + `They must be a JSON object, not integer 7. Required: text (string). Got: 7`},
		{text, `{"text": `, head + `The text is not valid JSON: unexpected end of JSON input at byte 9, behind "{\"text\": ". Required: text (string).`},
		{text, `{"text":"a" "b"}`, head + `The text is not valid JSON: invalid character '"' after object key:value pair at byte 13, behind "{\"text\":\"a\" \"". Required: text (string).`},
		{text, `"{\"text\":\"a\"}"`, head + `They are a JSON string with JSON inside; send the object itself, not quoted. Required: text (string).`},
		{`{"type":"object"}`, `null`, head + `They must be a JSON object, not null. No argument is required. Got: null`},
		{rich, `{"mode":"quick"}`, head + `mode: expected one of "fast","slow", got string "quick". Required: mode. Got: {"mode":"quick"}`},
		{rich, `{"mode":"fast","n":1.5,"lst":[]}`, head + `lst: unknown argument (near: list). n: expected integer, got number 1.5. Required: mode. Got: {"mode":"fast","n":1.5,"lst":[]}`},
		{rich, `{"mode":"fast","n":0}`, "n: expected at least 1, got 0."},
		{rich, `{"mode":"fast","n":10}`, "n: expected at most 9, got 10."},
		{rich, `{"mode":"fast","x":0}`, "x: expected more than 0, got 0."},
		{rich, `{"mode":"fast","x":"0"}`, `x: expected number or null, got string "0".`},
		{rich, `{"mode":"fast","id":"a"}`, "id: expected at least 2 characters, got 1."},
		{rich, `{"mode":"fast","id":"abcde"}`, "id: expected at most 4 characters, got 5."},
		{rich, `{"mode":"fast","id":"A1"}`, `id: expected a text that matches ^[a-z]+$, got string "A1".`},
		{rich, `{"mode":"fast","list":[]}`, "list: expected at least 1 items, got 0."},
		{rich, `{"mode":"fast","list":[{"k":true},{"k":1}]}`, "list[1].k: expected boolean, got integer 1."},
		{rich, `{"mode":"fast","list":[{}]}`, "list[0].k: missing, expected boolean."},
		{rich, `{"mode":"fast","either":1}`, "They do not fit the schema: validating root:"},
		{rich, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}`, "And more."},
	} {
		e := entry(t, withSchema(t, c.schema))
		_, err := e.Run(t.Context(), tool.Call{Name: "echo", Args: tool.NormalizeArgs(c.args)})
		var own *tool.Error
		if !errors.As(err, &own) || own.Failure() != dsh.ToolInvalidArgs {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		if whole := strings.HasPrefix(c.want, head); whole && own.Message != c.want || !strings.Contains(own.Message, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.args, own.Message, c.want)
		}
		if e.ModeOf(tool.NormalizeArgs(c.args)) != tool.Exclusive {
			t.Errorf("%s: not exclusive", c.args)
		}
	}
}

// An error repeats a bounded part of what the model sent.
func TestRefusalIsBounded(t *testing.T) {
	e := entry(t, withSchema(t, `{"type":"object","properties":{"text":{"type":"string"},"n":{"anyOf":[{"type":"string"},{"type":"string"}]}},"additionalProperties":false}`))
	huge := strings.Repeat("ж", 1e6)
	for _, args := range []string{
		`{"text":["` + huge + `"]}`,
		`{"n":["` + huge + `"]}`,
		`{"` + huge + `":1}`,
		`{"text":"` + huge,
		`["` + huge + `"]`,
		huge,
	} {
		_, err := e.Run(t.Context(), tool.Call{Args: tool.NormalizeArgs(args)})
		if err == nil || len(err.Error()) > 1500 {
			t.Errorf("%.20s: an error of %d bytes", args, len(err.Error()))
		}
	}
}

// A schema that says nothing of other members accepts them.
func TestUndeclaredMembers(t *testing.T) {
	type in struct {
		A string `json:"a,omitempty"`
	}
	open := entry(t, tool.Func("f", "", func(_ context.Context, i in) (string, error) { return i.A, nil },
		tool.WithParameters(json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`))))
	if _, err := open.Run(t.Context(), tool.Call{Args: json.RawMessage(`{"a":"x","b":1}`)}); err != nil {
		t.Error(err)
	}
	closed := entry(t, tool.Func("f", "", func(_ context.Context, i in) (string, error) { return i.A, nil }))
	if _, err := closed.Run(t.Context(), tool.Call{Args: json.RawMessage(`{"a":"x","b":1}`)}); err == nil {
		t.Error("a struct accepts what it has no member for")
	}
}

func TestModes(t *testing.T) {
	run := func(context.Context, struct {
		Safe bool `json:"safe,omitempty"`
	}) (string, error) {
		return "", nil
	}
	classify := func(args json.RawMessage) tool.Mode {
		switch string(args) {
		case `{"safe":true}`:
			return tool.Parallel
		case `{"safe":false}`:
			panic("undecided")
		}
		return 7
	}
	for _, c := range []struct {
		tool  tool.Tool
		args  string
		want  tool.Mode
		asked bool
	}{
		{tool.Func("f", "", run), `{}`, tool.Exclusive, false},
		{tool.Func("f", "", run, tool.Mode(tool.Parallel)), `{}`, tool.Parallel, false},
		{tool.Func("f", "", run, tool.Parallel), ``, tool.Parallel, false},
		{tool.Func("f", "", run, tool.Parallel), `{"safe":1}`, tool.Exclusive, false},
		{tool.Func("f", "", run, tool.Parallel), `null`, tool.Exclusive, false},
		{tool.Func("f", "", run, tool.Exclusive, tool.WithClassifier(classify)), `{"safe":true}`, tool.Parallel, true},
		{tool.Func("f", "", run, tool.Parallel, tool.WithClassifier(classify)), `{"safe":false}`, tool.Exclusive, true},
		{tool.Func("f", "", run, tool.WithClassifier(classify)), `{}`, tool.Exclusive, true},
		{raw{dsh.ToolSchema{Name: "r", Parameters: json.RawMessage(`{"type":"object"}`)}}, `{}`, tool.Exclusive, false},
	} {
		e := entry(t, c.tool)
		if got := e.ModeOf(json.RawMessage(c.args)); got != c.want || e.NeedsClassify() != c.asked {
			t.Errorf("%s: %v, classifier %v", c.args, got, e.NeedsClassify())
		}
	}
}

func TestPanicIsAnError(t *testing.T) {
	cause := errors.New("the cause")
	e := entry(t, tool.Func("f", "", func(context.Context, struct{}) (string, error) { panic(cause) }))
	_, err := e.Run(t.Context(), tool.Call{})
	var p *hook.PanicError
	if !errors.As(err, &p) || p.Where != "tool f" || len(p.Stack) == 0 || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestTimeout(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, c := range map[string]struct {
		run  func(ctx context.Context, _ struct{}) (string, error)
		code string
		want string
	}{
		"obeys": {func(ctx context.Context, _ struct{}) (string, error) { return "", wait(ctx) },
			"TIMEOUT", "The tool f was stopped after 1m0s, the time that it may take."},
		"explains": {func(ctx context.Context, _ struct{}) (string, error) {
			_ = wait(ctx)
			return "", errors.New("half done")
		},
			"TIMEOUT", "The tool f was stopped after 1m0s, the time that it may take. It said: half done"},
		"names": {func(ctx context.Context, _ struct{}) (string, error) {
			_ = wait(ctx)
			return "", tool.Errorf("DISK_FULL", "no space")
		}, "DISK_FULL", "no space"},
		"fails early": {func(context.Context, struct{}) (string, error) { return "", tool.Errorf("ENOENT", "no file") }, "ENOENT", "no file"},
		"finishes":    {func(ctx context.Context, _ struct{}) (string, error) { _ = wait(ctx); return "done", nil }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := entry(t, tool.Func("f", "", c.run, tool.WithTimeout(time.Minute)))
				res, err := e.Run(t.Context(), tool.Call{})
				var own *tool.Error
				switch {
				case c.code == "":
					if err != nil || dsh.TextOf(res.Content) != "done" {
						t.Errorf("got %v %v", res, err)
					}
				case !errors.As(err, &own) || own.Code != c.code || own.Message != c.want:
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// A call that is cancelled from outside did not run out of time.
func TestCancelIsNoTimeout(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := entry(t, tool.Func("f", "", func(ctx context.Context, _ struct{}) (string, error) { return "", ctx.Err() }, tool.WithTimeout(time.Hour)))
	_, err := e.Run(ctx, tool.Call{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	var own *tool.Error
	if errors.As(err, &own) {
		t.Errorf("it has code %s", own.Code)
	}
}

// Numbers that are integers for JSON Schema and not for Go.
func TestUndecodable(t *testing.T) {
	type in struct {
		N int `json:"n"`
	}
	e := entry(t, tool.Func("f", "", func(context.Context, in) (string, error) { return "", nil }))
	_, err := e.Run(t.Context(), tool.Call{Name: "f", Args: json.RawMessage(`{"n":2.0}`)})
	var own *tool.Error
	if !errors.As(err, &own) || own.Failure() != dsh.ToolInvalidArgs || !strings.Contains(own.Message, "n: a number 2.0 does not fit int") {
		t.Errorf("got %v", err)
	}
}

// The context that a tool attaches survives its error.
func TestContextBesideError(t *testing.T) {
	note := dsh.PluginText("f", "note")
	e := entry(t, tool.FuncResult("f", "", func(context.Context, struct{}) (tool.Result, error) {
		return tool.Result{Context: []*dsh.Message{note}}, errors.New("no")
	}, tool.WithTimeout(time.Minute)))
	res, err := e.Run(t.Context(), tool.Call{})
	if err == nil || len(res.Context) != 1 {
		t.Errorf("got %v %v", res, err)
	}
}

func TestNormalizeArgs(t *testing.T) {
	for raw, want := range map[string]string{
		"": "{}", " \n\t": "{}", `{"a": 1}`: `{"a": 1}`, "null": "null", `"x"`: `"x"`,
		`{"a":`: `"{\"a\":"`, "hi": `"hi"`, "\xff": `"\ufffd"`,
	} {
		if got := string(tool.NormalizeArgs(raw)); got != want {
			t.Errorf("%q: %s, want %s", raw, got, want)
		}
	}
}

// Whatever a model writes becomes JSON; running it never panics.
func FuzzNormalizeArgs(f *testing.F) {
	for _, s := range []string{"", " ", "{}", `{"text":"a"}`, `{"text":`, "null", "[]", `"str"`, "\x00\xff", `{"text":1e999}`, `{"n":[{"k":2}]}`} {
		f.Add(s)
	}
	e := entry(f, tool.New(tool.Definition{
		Name:       "echo",
		Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"array","items":{"type":"object","properties":{"k":{"enum":[1]}}}}}}`),
		Execute: func(_ context.Context, c tool.Call) (tool.Result, error) {
			var args map[string]any
			if err := json.Unmarshal(c.Args, &args); err != nil || args == nil {
				panic("not an object: " + string(c.Args))
			}
			return tool.Result{}, nil
		},
	}))
	f.Fuzz(func(t *testing.T, raw string) {
		args := tool.NormalizeArgs(raw)
		if !json.Valid(args) {
			t.Fatalf("%q became %q", raw, args)
		}
		if json.Valid([]byte(raw)) && string(args) != raw {
			t.Fatalf("%q was changed to %q", raw, args)
		}
		_, err := e.Run(t.Context(), tool.Call{Name: "echo", Args: args})
		var p *hook.PanicError
		if errors.As(err, &p) {
			t.Fatalf("%q: %v", raw, err)
		}
	})
}
