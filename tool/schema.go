package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// parameters is a tool's JSON Schema, compiled.
type parameters struct {
	root      *jsonschema.Schema
	resolved  *jsonschema.Resolved
	plain     *plain // or nil
	emptyFits bool   // {} fits; then it needs no look
	needs     string // a sentence that names the required members
}

// compileParameters compiles a schema. It refuses what a model's provider
// would refuse, what would accept anything by mistake, and what could not be
// validated without end.
func compileParameters(raw json.RawMessage) (*parameters, error) {
	const rooted = `parameters must be a JSON Schema of an object: set "type": "object" at the root; ` +
		`a tool without arguments has {"type":"object","properties":{}}`
	root := new(jsonschema.Schema)
	if len(raw) == 0 {
		return nil, errors.New(rooted)
	}
	if err := json.Unmarshal(raw, root); err != nil {
		return nil, fmt.Errorf("%s: %w", rooted, err)
	}
	if root.Type != "object" && !slices.Equal(root.Types, []string{"object"}) {
		return nil, errors.New(rooted)
	}
	if err := inspect(raw); err != nil {
		return nil, err
	}
	root.Schema = draft(root.Schema)
	resolved, err := root.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	p := &parameters{root: root, resolved: resolved, plain: plainOf(raw, root), needs: needs(root)}
	p.emptyFits = resolved.Validate(map[string]any{}) == nil
	return p, nil
}

var oldDraft = regexp.MustCompile(`^https?://json-schema\.org/draft-0[3467]/schema#?$`)

// draft maps a $schema to one that the validator knows: the older drafts to
// draft 7, everything else to 2020-12.
func draft(schema string) string {
	if oldDraft.MatchString(schema) {
		return "http://json-schema.org/draft-07/schema#"
	}
	return ""
}

// Where a schema holds other schemas. Those of inPlace apply to the same value
// as the schema that holds them.
var (
	inPlace   = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
	inside    = []string{"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "additionalProperties", "unevaluatedProperties", "propertyNames", "properties", "patternProperties", "contentSchema"}
	elsewhere = []string{"$defs", "definitions"}
	named     = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)

var typeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// An inspection walks the raw schema for mistakes that the validator does not
// look for. Nodes are named by their JSON pointers.
type inspection struct {
	nodes   map[string]map[string]any
	order   []string
	anchors map[string]string   // anchor or $id to pointer
	edges   map[string][]string // to the schemas that apply to the same value
	errs    []error
}

// inspect reports misspelt types and references that lead back to themselves
// without going deeper into the value: validating those would never end.
func inspect(raw json.RawMessage) error {
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	in := &inspection{nodes: map[string]map[string]any{}, anchors: map[string]string{}, edges: map[string][]string{}}
	in.visit("", root)
	for _, at := range in.order {
		in.follow(at)
	}
	done := map[string]bool{}
	for _, at := range in.order {
		if in.loops(at, map[string]bool{}, done) {
			in.errs = append(in.errs, fmt.Errorf("parameters: the schema at %q refers to itself; a reference may only come back inside properties or items", at))
			break
		}
	}
	return errors.Join(in.errs...)
}

func (in *inspection) visit(at string, value any) {
	node, ok := value.(map[string]any)
	if !ok {
		return // true, false or, in dependencies, a list of names
	}
	in.nodes[at] = node
	in.order = append(in.order, at)
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if name, ok := node[key].(string); ok {
			in.anchors["#"+name] = at
		}
	}
	if id, ok := node["$id"].(string); ok {
		in.anchors[id] = at
	}
	in.types(at, node["type"])
	for _, key := range slices.Concat(inPlace, inside, elsewhere) {
		for _, child := range in.children(at, key) {
			if slices.Contains(inPlace, key) {
				in.edges[at] = append(in.edges[at], child.at)
			}
			in.visit(child.at, child.value)
		}
	}
}

type located struct {
	at    string
	value any
}

// children returns the schemas that node at holds under key: one, a list or a
// map of them.
func (in *inspection) children(at, key string) []located {
	value, ok := in.nodes[at][key]
	if !ok {
		return nil
	}
	at += "/" + key
	var found []located
	switch value := value.(type) {
	case []any:
		for i, v := range value {
			found = append(found, located{fmt.Sprintf("%s/%d", at, i), v})
		}
	case map[string]any:
		if !slices.Contains(named, key) {
			return []located{{at, value}}
		}
		for _, name := range sortedKeys(value) {
			found = append(found, located{at + "/" + escape(name), value[name]})
		}
	}
	return found
}

func (in *inspection) types(at string, value any) {
	list, ok := value.([]any)
	if !ok && value != nil {
		list = []any{value}
	}
	for _, v := range list {
		if name, ok := v.(string); !ok || !slices.Contains(typeNames, name) {
			in.errs = append(in.errs, fmt.Errorf("parameters: type %v at %q is none of %s", v, at, strings.Join(typeNames, ", ")))
		}
	}
}

// follow adds the edges of at's references within the document.
func (in *inspection) follow(at string) {
	for _, key := range []string{"$ref", "$dynamicRef"} {
		ref, ok := in.nodes[at][key].(string)
		if !ok {
			continue
		}
		_, fragment, _ := strings.Cut(ref, "#")
		switch to, known := in.anchors[ref]; {
		case known:
			in.edges[at] = append(in.edges[at], to)
		case fragment == "" || strings.HasPrefix(fragment, "/"):
			in.edges[at] = append(in.edges[at], fragment)
		default:
			if to, known := in.anchors["#"+fragment]; known {
				in.edges[at] = append(in.edges[at], to)
			}
		}
	}
}

// loops reports whether the edges from at lead back to a node on the way.
func (in *inspection) loops(at string, way, done map[string]bool) bool {
	if way[at] {
		return true
	}
	if done[at] {
		return false
	}
	way[at], done[at] = true, true
	for _, next := range in.edges[at] {
		if in.loops(next, way, done) {
			return true
		}
	}
	delete(way, at)
	return false
}

// escape makes name a segment of a JSON pointer.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
