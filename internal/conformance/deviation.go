package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Deviation is a place where the runtime does something else than the
// reference, on purpose, because it serves users better.
type Deviation struct {
	Scenario string
	// Part is the path of what differs, as a [Difference] names it: a whole
	// part such as "a1.events", or a place inside it.
	Part string
	// Reason says why ours is better.
	Reason string
	// Want is the JSON that is expected instead. Where it is empty, our own
	// trace in testdata/deviations, of the scenario's name, has it at Part;
	// a part that it lacks is expected to be absent.
	Want string
}

// Deviations are all of them. Nothing else is forgiven.
var Deviations = []Deviation{}

// Expected returns the trace that the runtime is held to, and how many
// deviations made it different from the recording. Own is the folder of our
// own traces.
func Expected(recorded map[string]any, scenario string, deviations []Deviation, own string) (map[string]any, int, error) {
	expected, applied := recorded, 0
	for _, d := range deviations {
		if d.Scenario != scenario {
			continue
		}
		if applied == 0 {
			expected = clone(recorded).(object)
		}
		if err := d.apply(expected, own); err != nil {
			return nil, 0, fmt.Errorf("conformance: deviation of %s at %s: %w", d.Scenario, d.Part, err)
		}
		applied++
	}
	return expected, applied, nil
}

func (d Deviation) apply(trace object, own string) error {
	value, has, err := d.value(own)
	if err != nil {
		return err
	}
	holder, last, err := resolve(trace, d.Part)
	if err != nil {
		return err
	}
	switch holder := holder.(type) {
	case object:
		if has {
			holder[last] = value
		} else {
			delete(holder, last)
		}
	case []any:
		i, err := strconv.Atoi(last)
		if err != nil || i < 0 || i >= len(holder) || !has {
			return fmt.Errorf("no entry %s to put it", last)
		}
		holder[i] = value
	}
	return nil
}

func (d Deviation) value(own string) (value any, has bool, err error) {
	if d.Want != "" {
		return value, true, json.Unmarshal([]byte(d.Want), &value)
	}
	data, err := os.ReadFile(filepath.Join(own, d.Scenario+".json"))
	if err != nil {
		return nil, false, err
	}
	var trace object
	if err := json.Unmarshal(data, &trace); err != nil {
		return nil, false, err
	}
	holder, last, err := resolve(trace, d.Part)
	if err != nil {
		return nil, false, err
	}
	value, has = entry(holder, last)
	return value, has, nil
}

// resolve walks a path and returns what holds its last element.
func resolve(trace object, path string) (holder any, last string, err error) {
	steps := strings.Split(strings.ReplaceAll(strings.ReplaceAll(path, "[", "."), "]", ""), ".")
	at := any(trace)
	for i, step := range steps {
		if i == 0 {
			for _, agent := range agentsOf(trace) {
				if agent["key"] == step && len(steps) > 1 {
					at = agent
				}
			}
			if _, isAgent := at.(object)["key"]; isAgent {
				continue
			}
		}
		if i == len(steps)-1 {
			return at, step, nil
		}
		next, ok := entry(at, step)
		if !ok {
			return nil, "", fmt.Errorf("no %s", strings.Join(steps[:i+1], "."))
		}
		at = next
	}
	return nil, "", fmt.Errorf("no path")
}

func entry(holder any, name string) (any, bool) {
	switch holder := holder.(type) {
	case object:
		v, ok := holder[name]
		return v, ok
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(holder) {
			return holder[i], true
		}
	}
	return nil, false
}

// clone returns a deep copy of a JSON value.
func clone(v any) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for name, value := range v {
			out[name] = clone(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = clone(value)
		}
		return out
	}
	return v
}
