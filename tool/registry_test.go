package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/tool"
)

// named returns a tool without arguments.
func named(name string) tool.Tool {
	return tool.New(tool.Definition{Name: name, Execute: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Text(name + " ok"), nil
	}})
}

func register(t *testing.T, r *tool.Registry, tools ...tool.Tool) {
	t.Helper()
	if err := r.Register(tools...); err != nil {
		t.Fatal(err)
	}
}

func names(s *tool.Set) string {
	var out []string
	for _, schema := range s.Schemas() {
		out = append(out, schema.Name)
	}
	return strings.Join(out, " ")
}

func TestScopesShadow(t *testing.T) {
	top := tool.NewRegistry(nil)
	below := tool.NewRegistry(top)
	register(t, top, named("b"), named("a"))
	mine := named("a")
	register(t, below, mine, named("c"))

	if got := names(top.Snapshot()); got != "a b" {
		t.Errorf("top has %q", got)
	}
	s := below.Snapshot()
	if got := names(s); got != "a b c" {
		t.Errorf("below has %q", got)
	}
	if e, _ := top.Snapshot().Lookup("a"); e.Tool().Schema().Name != "a" {
		t.Error("the shadowed tool is gone")
	}
	inTop, _ := top.Snapshot().Lookup("a")
	inBelow, _ := s.Lookup("a")
	if inTop == inBelow {
		t.Error("the scope's own tool does not shadow")
	}
	if n := below.Unregister("a", "nothing"); n != 1 {
		t.Errorf("removed %d", n)
	}
	if e, ok := below.Snapshot().Lookup("a"); !ok || e != inTop {
		t.Error("the tool above is not seen again")
	}
	if _, ok := s.Lookup("c"); !ok {
		t.Error("a Set changed")
	}
}

// The pointer of a Set, and of its schemas, stands for its content.
func TestSnapshotIsStable(t *testing.T) {
	top := tool.NewRegistry(nil)
	below := tool.NewRegistry(tool.NewRegistry(top))
	if top.Snapshot().Schemas() != nil || below.Snapshot() != top.Snapshot() {
		t.Error("empty scopes do not share the empty Set")
	}
	register(t, top, named("a"))
	if below.Snapshot() != top.Snapshot() {
		t.Error("a scope without tools of its own has a Set of its own")
	}
	register(t, below, named("b"))
	s := below.Snapshot()
	if below.Snapshot() != s || &s.Schemas()[0] != &below.Snapshot().Schemas()[0] {
		t.Error("nothing changed, the Set did")
	}
	if below.Unregister("zzz"); below.Snapshot() != s {
		t.Error("removing nothing made a new Set")
	}
	if n := testing.AllocsPerRun(100, func() { below.Snapshot() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	register(t, top, named("c"))
	if below.Snapshot() == s {
		t.Error("a change above is not seen")
	}
	if below.Unregister("b"); below.Snapshot() != top.Snapshot() {
		t.Error("an emptied scope has a Set of its own")
	}
	if new(tool.Registry).Snapshot() != tool.NewRegistry(nil).Snapshot() {
		t.Error("the zero Registry is no empty scope")
	}
}

// raw is a tool with nothing but what the interface asks for.
type raw struct{ schema dsh.ToolSchema }

func (r raw) Schema() dsh.ToolSchema { return r.schema }
func (r raw) Execute(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, nil
}

type panics struct{ raw }

func (panics) Schema() dsh.ToolSchema { panic("no schema today") }

func TestRegisterRefuses(t *testing.T) {
	schema := func(name, params string) tool.Tool {
		return raw{dsh.ToolSchema{Name: name, Parameters: json.RawMessage(params)}}
	}
	type cycle struct {
		Next *cycle `json:"next"`
	}
	type odd struct {
		F func() `json:"f"`
	}
	nothing := func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }
	for name, c := range map[string]struct {
		tool tool.Tool
		want string
	}{
		"nil":               {nil, "nil"},
		"panic":             {panics{}, "no schema today"},
		"empty name":        {schema("", `{"type":"object"}`), "1 to 64"},
		"bad name":          {schema("a.b", `{"type":"object"}`), "rename"},
		"long name":         {schema(strings.Repeat("a", 65), `{"type":"object"}`), "1 to 64"},
		"no schema":         {schema("a", ``), `set "type": "object"`},
		"no JSON":           {schema("a", `{`), `set "type": "object"`},
		"true":              {schema("a", `true`), `set "type": "object"`},
		"array root":        {schema("a", `{"type":"array"}`), `set "type": "object"`},
		"nullable root":     {schema("a", `{"type":["object","null"]}`), `set "type": "object"`},
		"misspelt type":     {schema("a", `{"type":"object","properties":{"x":{"type":"strng"}}}`), `type strng at "/properties/x"`},
		"bad pattern":       {schema("a", `{"type":"object","properties":{"x":{"pattern":"("}}}`), "pattern"},
		"remote reference":  {schema("a", `{"type":"object","properties":{"x":{"$ref":"https://example.com/s"}}}`), "remote"},
		"endless":           {schema("a", `{"type":"object","$ref":"#"}`), "refers to itself"},
		"endless by anchor": {schema("a", `{"type":"object","$anchor":"me","allOf":[{"$ref":"#me"}]}`), "refers to itself"},
		"endless by defs":   {schema("a", `{"type":"object","properties":{"x":{"$ref":"#/$defs/a~1b"}},"$defs":{"a/b":{"anyOf":[{"$ref":"#/$defs/a~1b"}]}}}`), "refers to itself"},
		"no function":       {tool.New(tool.Definition{Name: "a"}), "no function"},
		"nil Func":          {tool.Func[struct{}]("a", "", nil), "no function"},
		"negative timeout":  {tool.New(tool.Definition{Name: "a", Execute: nothing, Timeout: -1}), "negative"},
		"not a struct":      {tool.Func("a", "", func(context.Context, int) (string, error) { return "", nil }), "must be a struct"},
		"interface":         {tool.Func("a", "", func(context.Context, any) (string, error) { return "", nil }), "must be a struct"},
		"recursive type":    {tool.Func("a", "", func(context.Context, cycle) (string, error) { return "", nil }), "cycle"},
		"odd member":        {tool.Func("a", "", func(context.Context, odd) (string, error) { return "", nil }), "func()"},
	} {
		t.Run(name, func(t *testing.T) {
			r := tool.NewRegistry(nil)
			err := r.Register(named("good"), c.tool)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want …%s…", err, c.want)
			}
			if r.Snapshot().Schemas() != nil {
				t.Error("the good tool was registered")
			}
		})
	}
}

func TestRegisterRefusesTwice(t *testing.T) {
	r := tool.NewRegistry(nil)
	if err := r.Register(named("a"), named("a")); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Error(err)
	}
	register(t, r, named("a"))
	err := r.Register(named("b"), named("a"), named("c d"))
	if err == nil || !strings.Contains(err.Error(), "has a tool of this name") || !strings.Contains(err.Error(), "c d") {
		t.Error("not every problem is told:", err)
	}
	if got := names(r.Snapshot()); got != "a" {
		t.Errorf("has %q", got)
	}
}

// Schemas that come back to themselves deeper in the value are fine, and so
// are drafts other than the validator's two.
func TestRegisterAccepts(t *testing.T) {
	for _, params := range []string{
		`{"type":"object","properties":{"next":{"$ref":"#"}}}`,
		`{"type":"object","properties":{"t":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"array","items":{"$ref":"#/$defs/t"}}}}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"type":"string"}}}`,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","type":["object"]}`,
		`{"type":"object","properties":{"type":{"type":"string"},"$ref":{"type":"string"}}}`,
	} {
		r := tool.NewRegistry(nil)
		register(t, r, raw{dsh.ToolSchema{Name: "a", Parameters: json.RawMessage(params)}})
		e, _ := r.Snapshot().Lookup("a")
		if _, err := e.Run(t.Context(), tool.Call{Args: json.RawMessage(`{"next":{"next":{}},"t":[[],[[]]],"a":"x"}`)}); err != nil {
			t.Errorf("%s: %v", params, err)
		}
	}
}

func TestNearest(t *testing.T) {
	r := tool.NewRegistry(nil)
	register(t, r, named("read_file"), named("write_file"), named("edit_file"), named("list_files"), named("search"), named("shell"))
	s := r.Snapshot()
	for name, want := range map[string]string{
		"raed":                   "read_file",
		"ReadFile":               "read_file",
		"read-file":              "read_file",
		"file":                   "edit_file list_files read_file",
		"grep":                   "",
		"":                       "",
		"serach":                 "search",
		strings.Repeat("x", 1e6): "",
	} {
		if got := strings.Join(s.Nearest(name), " "); got != want {
			t.Errorf("near %.20q: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"raed": `There is no tool "raed". Did you mean read_file?`,
		"grep": `There is no tool "grep". Available tools: edit_file, list_files, read_file, search, shell, write_file.`,
		"":     "The call names no tool. Available tools: edit_file, list_files, read_file, search, shell, write_file.",
	} {
		err := tool.UnknownTool(s, name)
		if err.Error() != want || err.Failure() != dsh.ToolUnknown {
			t.Errorf("%q: %v %+v", name, err, err.Failure())
		}
	}
	if got := tool.UnknownTool(tool.NewRegistry(nil).Snapshot(), "x").Error(); got != `There is no tool "x". No tools are available.` {
		t.Error(got)
	}
	if n := len(tool.UnknownTool(s, strings.Repeat("x", 1e6)).Error()); n > 1000 {
		t.Errorf("a message of %d bytes", n)
	}
}

func TestFilter(t *testing.T) {
	r := tool.NewRegistry(nil)
	register(t, r, named("a_one"), named("b_two"), named("c_three"))
	s := r.Snapshot()
	for _, c := range []struct {
		allow, deny []string
		want        string
	}{
		{nil, nil, "a_one b_two c_three"},
		{[]string{"c_three", "a_one"}, nil, "a_one c_three"},
		{nil, []string{"b_two"}, "a_one c_three"},
		{[]string{"a_one"}, []string{"a_one"}, ""},
		{[]string{}, nil, ""},
	} {
		got, err := s.Filter(c.allow, c.deny)
		if err != nil || names(got) != c.want {
			t.Errorf("%v %v: %q %v", c.allow, c.deny, names(got), err)
		}
	}
	if same, _ := s.Filter(nil, nil); same != s {
		t.Error("an unchanged Set was copied")
	}
	_, err := s.Filter([]string{"c_tree"}, []string{"zzzz"})
	if err == nil || !strings.Contains(err.Error(), "Did you mean c_three?") || !strings.Contains(err.Error(), "zzzz") {
		t.Error(err)
	}
}

func TestRegistryIsConcurrent(t *testing.T) {
	top := tool.NewRegistry(nil)
	register(t, top, named("base"))
	below := tool.NewRegistry(top)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 30 {
				r, name := top, fmt.Sprintf("t%d_%d", i, k)
				if i%2 == 0 {
					r = below
				}
				if err := r.Register(named(name)); err != nil {
					t.Error(err)
				}
				s := below.Snapshot()
				if _, ok := s.Lookup(name); !ok {
					t.Errorf("%s is not seen by its own goroutine", name)
				}
				if !slices.IsSortedFunc(s.Schemas(), func(a, b dsh.ToolSchema) int { return strings.Compare(a.Name, b.Name) }) {
					t.Error("schemas are not sorted")
				}
				if k%2 == 0 {
					r.Unregister(name)
				}
			}
		})
	}
	wg.Wait()
	if n := len(below.Snapshot().Schemas()); n != 1+8*15 {
		t.Errorf("%d tools", n)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	top := tool.NewRegistry(nil)
	below := tool.NewRegistry(top)
	_ = top.Register(named("a"))
	_ = below.Register(named("b"))
	for b.Loop() {
		below.Snapshot()
	}
}

func BenchmarkRunWithoutArguments(b *testing.B) {
	r := tool.NewRegistry(nil)
	_ = r.Register(tool.New(tool.Definition{Name: "a", Timeout: 0 * time.Second, Execute: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, nil
	}}))
	e, _ := r.Snapshot().Lookup("a")
	call := tool.Call{Args: json.RawMessage("{}")}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = e.Run(b.Context(), call)
	}
}
