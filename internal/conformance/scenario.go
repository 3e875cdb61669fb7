package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A Case is a scenario and what the reference did on it. Trace is nil where
// there is no recording.
type Case struct {
	*Scenario
	Trace map[string]any
}

// Load reads a folder that holds scenarios/ and traces/, in name order.
func Load(dir string) ([]Case, error) {
	files, err := filepath.Glob(filepath.Join(dir, "scenarios", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("conformance: no scenarios in %s", filepath.Join(dir, "scenarios"))
	}
	slices.Sort(files)
	var cases []Case
	var errs []error
	for _, file := range files {
		c, err := loadCase(dir, file)
		if err != nil {
			errs = append(errs, fmt.Errorf("conformance: %w", err))
			continue
		}
		cases = append(cases, c)
	}
	return cases, errors.Join(errs...)
}

func loadCase(dir, file string) (Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Case{}, err
	}
	s, err := Parse(data)
	if err != nil {
		return Case{}, fmt.Errorf("%s: %w", file, err)
	}
	if base := filepath.Base(file); s.Name+".json" != base {
		return Case{}, fmt.Errorf("%s: the scenario calls itself %q", file, s.Name)
	}
	recording := filepath.Join(dir, "traces", filepath.Base(file))
	data, err = os.ReadFile(recording)
	if errors.Is(err, fs.ErrNotExist) {
		return Case{Scenario: s}, nil
	}
	if err != nil {
		return Case{}, err
	}
	c := Case{Scenario: s}
	if err := json.Unmarshal(data, &c.Trace); err != nil {
		return Case{}, fmt.Errorf("%s: %w", recording, err)
	}
	return c, nil
}

// A Scenario is one file of scenarios/.
type Scenario struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Options     Options  `json:"options"`
	Model       []Reply  `json:"model"`
	Tools       []Tool   `json:"tools"`
	Hooks       []Hook   `json:"hooks"`
	Script      []Action `json:"script"`
	// SchedulingSensitive says that the order of events is one of several
	// valid outcomes.
	SchedulingSensitive bool `json:"schedulingSensitive"`

	// Children are the responses for each child, Summaries those for
	// compaction requests.
	Children  map[string][]Reply `json:"children"`
	Summaries []Reply            `json:"summaries"`
}

// Parse reads a scenario. A field that the format does not have is an error.
func Parse(data []byte) (*Scenario, error) {
	s := new(Scenario)
	if err := strict(data, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Options configure the agent and its world.
type Options struct {
	Provider Optional[string] `json:"provider"`
	Model    Optional[string] `json:"model"`
	// MaxTokens caps the agent's output; 0 is no cap.
	MaxTokens            int              `json:"maxTokens"`
	System               string           `json:"system"`
	MaxParallelToolCalls int              `json:"maxParallelToolCalls"`
	Models               map[string]Model `json:"models"`
	Contexts             []Context        `json:"contexts"`
	Retry                *Retry           `json:"retry"`
	Subagents            *Subagents       `json:"subagents"`
	Compaction           json.RawMessage  `json:"compaction"`
	Pruner               json.RawMessage  `json:"pruner"`
}

// Route returns the agent's provider and model; an empty one is unset.
func (o Options) Route() (provider, model string) {
	return o.Provider.Or("mock"), o.Model.Or("mock-1")
}

// Overlay returns o with what by sets in its place.
func (o Options) Overlay(by Options) Options {
	if by.Provider.Set {
		o.Provider = by.Provider
	}
	if by.Model.Set {
		o.Model = by.Model
	}
	if by.MaxTokens != 0 {
		o.MaxTokens = by.MaxTokens
	}
	if by.System != "" {
		o.System = by.System
	}
	if by.MaxParallelToolCalls != 0 {
		o.MaxParallelToolCalls = by.MaxParallelToolCalls
	}
	if by.Models != nil {
		o.Models = by.Models
	}
	if by.Contexts != nil {
		o.Contexts = by.Contexts
	}
	if by.Retry != nil {
		o.Retry = by.Retry
	}
	if by.Subagents != nil {
		o.Subagents = by.Subagents
	}
	if by.Compaction != nil {
		o.Compaction = by.Compaction
	}
	if by.Pruner != nil {
		o.Pruner = by.Pruner
	}
	return o
}

// Optional is a field for which absent, null and a value differ.
type Optional[T any] struct {
	Set   bool // the field is there
	Null  bool
	Value T
}

// UnmarshalJSON notes that the field is there.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	*o = Optional[T]{Set: true, Null: string(data) == "null"}
	if o.Null {
		return nil
	}
	return strict(data, &o.Value)
}

// Or returns the value, the zero value for null and byDefault if absent.
func (o Optional[T]) Or(byDefault T) T {
	if !o.Set {
		return byDefault
	}
	return o.Value
}

// Model is what the adapter knows of a model.
type Model struct {
	ContextWindow    int        `json:"contextWindow"`
	DefaultMaxTokens int        `json:"defaultMaxTokens"`
	Reasoning        *Reasoning `json:"reasoning"`
}

// Reasoning is a model's reasoning efforts.
type Reasoning struct {
	Efforts []struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"efforts"`
	DefaultEffort string `json:"defaultEffort"`
}

// Context is a dynamic section of the runtime context.
type Context struct {
	Name  string  `json:"name"`
	Text  string  `json:"text"`
	Order float64 `json:"order"`
}

// Retry is the retry policy of the route.
type Retry struct {
	Mode       string `json:"mode"` // normal, always
	MaxRetries *int   `json:"maxRetries"`
	Backoff    struct {
		InitialDelayMs int64   `json:"initialDelayMs"`
		MaxDelayMs     int64   `json:"maxDelayMs"`
		JitterRatio    float64 `json:"jitterRatio"`
	} `json:"backoff"`
}

// Subagents configures delegation.
type Subagents struct {
	Providers   []string         `json:"providers"` // spawn, fork
	Tools       []DelegationTool `json:"tools"`
	Control     bool             `json:"control"`
	List        bool             `json:"list"`
	Report      string           `json:"report"` // quiet, next-step
	Jobs        json.RawMessage  `json:"jobs"`
	Persistence bool             `json:"persistence"`
}

// DelegationTool is a tool that gives a task to a child.
type DelegationTool struct {
	Provider              string          `json:"provider"`
	ToolName              string          `json:"toolName"`
	BackgroundMode        string          `json:"backgroundMode"`
	EnableRunInBackground *bool           `json:"enableRunInBackground"`
	MaxDepth              *int            `json:"maxDepth"`
	AgentOptions          json.RawMessage `json:"agentOptions"`
	Persona               string          `json:"persona"`
	ToolFilter            *ToolFilter     `json:"toolFilter"`
}

// ToolFilter says which tools a child has.
type ToolFilter struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
}

// Hook is a scripted extension point.
type Hook struct {
	Point string `json:"point"`

	// Filters. Nil and empty match anything.
	Agent  string  `json:"agent"`
	Turn   *int    `json:"turn"`
	Step   *int    `json:"step"`
	CallID *string `json:"callId"`
	Tool   *string `json:"tool"`
	Type   *string `json:"type"`
	Status *string `json:"status"`
	Nth    int     `json:"nth"`   // only the nth time that the filters match
	Times  int     `json:"times"` // at most so often

	// What every point may do, in this order.
	Wait        string   `json:"wait"`
	WaitOrAbort string   `json:"waitOrAbort"`
	Actions     []Action `json:"actions"`
	Throw       *string  `json:"throw"`

	// pre-step
	Reject  bool     `json:"reject"`
	Replace []string `json:"replace"`
	Append  []string `json:"append"`
	Empty   bool     `json:"empty"`
	// request
	Set map[string]json.RawMessage `json:"set"`
	// request-error
	Retry bool `json:"retry"`
	// pre-execute
	Deny *string `json:"deny"`
	Ask  *Ask    `json:"ask"`
	// post-execute
	Content  *string  `json:"content"`
	Block    *string  `json:"block"`
	Contexts []string `json:"contexts"`
	// tool-result
	SetMode *SetMode `json:"setMode"`
}

var hookPoints = []string{
	"pre-step", "request", "request-error", "turn-stopping", "pre-execute", "post-execute",
	"tool-result", "session-event", "live",
}

// UnmarshalJSON reads a hook strictly.
func (h *Hook) UnmarshalJSON(data []byte) error {
	type plain Hook
	if err := strict(data, (*plain)(h)); err != nil {
		return fmt.Errorf("hook %s: %w", brief(data), err)
	}
	if !slices.Contains(hookPoints, h.Point) {
		return fmt.Errorf("hook %s: unknown point %q", brief(data), h.Point)
	}
	return nil
}

// Ask asks for an approval that nobody can give. It is true or a reason.
type Ask struct{ Reason string }

// UnmarshalJSON reads true or a reason.
func (a *Ask) UnmarshalJSON(data []byte) error {
	if string(data) == "true" {
		return nil
	}
	return json.Unmarshal(data, &a.Reason)
}

// strict decodes exactly one JSON value and refuses unknown fields.
func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text behind the JSON value")
	}
	return nil
}

// brief returns data short enough for an error message.
func brief(data []byte) string {
	const most = 80
	var compact bytes.Buffer
	if json.Compact(&compact, data) == nil {
		data = compact.Bytes()
	}
	if len(data) <= most {
		return string(data)
	}
	return string(data[:most]) + "…"
}
