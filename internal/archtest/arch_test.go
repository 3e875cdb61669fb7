// Package archtest holds the layer diagram of docs/architecture.md as a test.
package archtest

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/dsh-actor/dsh-actor/"

// rows are the layers from the bottom up. A package imports from rows below
// its own, and within its row only what beside names.
var rows = [][]string{
	{"dsh"},
	{"internal/brackets"},
	{"hook", "tool", "internal/loop", "policy/", "toolset", "delegation", "replay", "internal/words", "internal/transcript"},
	{"actors/dispatch"},
	{"actors/session", "actors/llm", "actors/toolpool"},
	{"actors/agent"},
	{"runtime"},
	{"cmd/", "bench", "examples", "internal/conformance", "internal/actortest", "internal/archtest", "internal/torture"},
}

// beside lists the imports allowed within a row.
var beside = map[string][]string{
	"tool":                 {"hook"},
	"internal/loop":        {"hook", "tool"},
	"policy/":              {"hook"},
	"toolset":              {"hook", "tool", "toolset", "delegation"},
	"delegation":           {"hook", "tool"},
	"internal/transcript":  {"internal/words", "delegation"},
	"actors/session":       {"actors/session"},
	"actors/llm":           {"actors/llm"},
	"internal/conformance": {"internal/conformance"},
	"cmd/":                 {"cmd/"},
	"bench":                {"bench"},
}

// owners lists who alone may import a library.
var owners = map[string][]string{
	"github.com/sashabaranov/go-openai":   {"actors/llm/openai"},
	"github.com/spf13/cobra":              {"cmd/"},
	"github.com/asynkron/protoactor-go":   {"actors/", "runtime", "internal/actortest", "internal/conformance"},
	"go.uber.org/zap":                     {"actors/", "runtime", "cmd/", "bench", "internal/"},
	"github.com/google/jsonschema-go":     {"tool", "toolset"},
	"github.com/bmatcuk/doublestar":       {"toolset"},
	"github.com/google/uuid":              {"actors/agent", "runtime", "actors/llm/openai", "cmd/"},
	"github.com/klauspost/compress":       {"actors/session/jsonl"},
	"github.com/cockroachdb/pebble":       {},
	"github.com/knadh/koanf":              {"cmd/"},
	"github.com/modelcontextprotocol/":    {},
	"go.opentelemetry.io/otel/sdk":        {},
	"github.com/prometheus/client_golang": {},
}

// imports returns what each package of the module imports, without tests.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		all[strings.TrimPrefix(fields[0], module)] = fields[1:]
	}
	return all
}

func under(pkg, place string) bool {
	return pkg == place || strings.HasPrefix(pkg, strings.TrimSuffix(place, "/")+"/")
}

// place returns the row and the name in rows that pkg falls under.
func place(pkg string) (row int, name string) {
	for i, names := range rows {
		for _, name := range names {
			if under(pkg, name) {
				return i, name
			}
		}
	}
	return -1, ""
}

func TestLayers(t *testing.T) {
	for pkg, imported := range imports(t) {
		row, name := place(pkg)
		if row < 0 {
			t.Errorf("%s is in no row of the layer diagram", pkg)
			continue
		}
		for _, path := range imported {
			other, ours := strings.CutPrefix(path, module)
			if !ours {
				continue
			}
			otherRow, otherName := place(other)
			if otherRow < row || otherRow == row && allowed(beside[name], otherName) {
				continue
			}
			t.Errorf("%s (row %d) imports %s (row %d)", pkg, row, other, otherRow)
		}
	}
}

func allowed(list []string, name string) bool {
	for _, n := range list {
		if n == name {
			return true
		}
	}
	return false
}

func TestLibrariesHaveOwners(t *testing.T) {
	for pkg, imported := range imports(t) {
		for _, path := range imported {
			for library, places := range owners {
				if !strings.HasPrefix(path, library) {
					continue
				}
				ok := false
				for _, p := range places {
					ok = ok || under(pkg, p)
				}
				if !ok {
					t.Errorf("%s imports %s, which only %v may", pkg, path, places)
				}
			}
		}
	}
}

func TestVocabularyIsStandardLibraryOnly(t *testing.T) {
	for _, path := range imports(t)["dsh"] {
		if strings.Contains(path, ".") {
			t.Errorf("dsh imports %s", path)
		}
	}
}

// The actor library must not be needed to use the runtime.
func TestSurfaceHidesTheActorLibrary(t *testing.T) {
	for _, pkg := range []string{"runtime", "hook", "tool", "dsh"} {
		out, err := exec.Command("go", "doc", "-all", module+pkg).Output()
		if err != nil {
			t.Fatalf("go doc %s: %v", pkg, err)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "actor.PID") || strings.Contains(line, "actor.Context") {
				t.Errorf("%s shows the actor library: %s", pkg, strings.TrimSpace(line))
			}
		}
	}
}

// What a program that embeds the runtime has to build stays small.
func TestBuildListStaysSmall(t *testing.T) {
	const most = 130
	out, err := exec.Command("go", "list", "-deps", "-f", `{{if not .Standard}}{{.ImportPath}}{{end}}`, module+"runtime").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if n := len(strings.Fields(string(out))); n > most {
		t.Errorf("runtime needs %d packages outside the standard library, more than %d", n, most)
	}
}
