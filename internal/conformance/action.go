package conformance

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// An Action is something that a scenario does: an entry of its script, or
// what a hook, a tool or a stream does to the agent at hand. Exactly one verb
// is set, besides the modifiers at the end.
type Action struct {
	// Raw is the action as it is written; traces quote it.
	Raw json.RawMessage `json:"-"`

	Batch []Action `json:"batch" verb:"-"`

	// Input.
	Followup *Say    `json:"followup" verb:"-"`
	Steer    *Say    `json:"steer" verb:"-"`
	Inject   *Say    `json:"inject" verb:"-"`
	Send     *Send   `json:"send" verb:"-"`
	Resend   string  `json:"resend" verb:"-"`
	Cancel   *Cancel `json:"cancel" verb:"-"`

	// What is pending.
	RemovePending  string `json:"removePending" verb:"-"`
	ReplacePending string `json:"replacePending" verb:"-"`
	PrependPending *Say   `json:"prependPending" verb:"-"`
	ClearPending   bool   `json:"clearPending" verb:"-"`

	// The driver itself.
	Release  Names    `json:"release" verb:"-"`
	WhenIdle bool     `json:"whenIdle" verb:"-"`
	Wait     *WaitFor `json:"wait" verb:"-"`
	Settle   bool     `json:"settle" verb:"-"`

	// The agent's life.
	Maintenance *Maintenance `json:"maintenance" verb:"-"`
	Dispose     bool         `json:"dispose" verb:"-"`
	DisposeLoop bool         `json:"disposeLoop" verb:"-"`
	Resume      *Resume      `json:"resume" verb:"-"`
	Fork        *Fork        `json:"fork" verb:"-"`

	// The log.
	ReplaceSurface    *ReplaceSurface    `json:"replaceSurface" verb:"-"`
	RewriteToolResult *RewriteToolResult `json:"rewriteToolResult" verb:"-"`
	Append            *AppendEvent       `json:"append" verb:"-"`

	// The environment.
	SetContext     *Context `json:"setContext" verb:"-"`
	SetMode        *SetMode `json:"setMode" verb:"-"`
	RegisterTool   string   `json:"registerTool" verb:"-"`
	UnregisterTool string   `json:"unregisterTool" verb:"-"`

	// Children.
	StartRun         *StartRun       `json:"startRun" verb:"-"`
	StartContinuable *StartRun       `json:"startContinuable" verb:"-"`
	FollowupChild    *FollowupChild  `json:"followupChild" verb:"-"`
	InterruptChild   *InterruptChild `json:"interruptChild" verb:"-"`
	DrainDescendants bool            `json:"drainDescendants" verb:"-"`
	ListChildren     bool            `json:"listChildren" verb:"-"`
	Abort            string          `json:"abort" verb:"-"`
	CompactNow       string          `json:"compactNow" verb:"-"`
	CompactRegion    *CompactRegion  `json:"compactRegion" verb:"-"`
	PruneSession     json.RawMessage `json:"pruneSession" verb:"-"`
	Measure          string          `json:"measure" verb:"-"`

	// Modifiers. Agent addresses another agent than the most recent one; As
	// labels the message or the operation.
	Agent     string     `json:"agent"`
	As        string     `json:"as"`
	KeepInbox bool       `json:"keepInbox"` // cancel
	With      *Say       `json:"with"`      // replacePending
	Target    dsh.Target `json:"target"`    // prependPending
	ThenIdle  bool       `json:"thenIdle"`
}

// UnmarshalJSON reads an action strictly.
func (a *Action) UnmarshalJSON(data []byte) error {
	type plain Action
	if err := strict(data, (*plain)(a)); err != nil {
		return fmt.Errorf("action %s: %w", brief(data), err)
	}
	a.Raw = json.RawMessage(strings.Clone(string(data)))
	if n := len(a.verbs()); n != 1 {
		return fmt.Errorf("action %s: %d verbs", brief(data), n)
	}
	return nil
}

// Verb returns the JSON name of what the action does.
func (a *Action) Verb() string { return a.verbs()[0] }

func (a *Action) verbs() []string {
	var verbs []string
	v := reflect.ValueOf(a).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if _, is := f.Tag.Lookup("verb"); is && !v.Field(i).IsZero() {
			verbs = append(verbs, f.Tag.Get("json"))
		}
	}
	return verbs
}

// Substitute returns the action with replace applied to its JSON text: names
// of children become their identifiers.
func (a *Action) Substitute(replace func(string) string) (*Action, error) {
	text := replace(string(a.Raw))
	if text == string(a.Raw) {
		return a, nil
	}
	out := new(Action)
	if err := json.Unmarshal([]byte(text), out); err != nil {
		return nil, err
	}
	out.Raw = a.Raw
	return out, nil
}

// Say is a message: a text, or an object with a text or content and a source.
type Say struct {
	Text    string          `json:"text"`
	Content []BlockSpec     `json:"content"`
	Source  json.RawMessage `json:"source"`
}

// UnmarshalJSON reads a text or an object.
func (s *Say) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &s.Text)
	}
	type plain Say
	return strict(data, (*plain)(s))
}

// Message returns the message without an identifier. Source is who says it
// where the scenario does not.
func (s *Say) Message(source dsh.Source) (*dsh.Message, error) {
	m := &dsh.Message{Role: dsh.RoleUser, Source: source}
	if s.Source != nil {
		var err error
		if m.Source, err = dsh.DecodeSource(s.Source); err != nil {
			return nil, fmt.Errorf("source %s: %w", brief(s.Source), err)
		}
	}
	if s.Content != nil {
		m.Content = blocksOf(s.Content)
		return m, nil
	}
	m.Content = []dsh.Block{dsh.Text{Text: s.Text}}
	return m, nil
}

// Send delivers a message explicitly.
type Send struct {
	Say
	Target dsh.Target
	Wakeup bool
}

// UnmarshalJSON reads the message and how it is delivered.
func (s *Send) UnmarshalJSON(data []byte) error {
	var wire struct {
		Text    string          `json:"text"`
		Content []BlockSpec     `json:"content"`
		Source  json.RawMessage `json:"source"`
		Target  dsh.Target      `json:"target"`
		Wakeup  bool            `json:"wakeup"`
	}
	if err := strict(data, &wire); err != nil {
		return err
	}
	*s = Send{Say{wire.Text, wire.Content, wire.Source}, wire.Target, wire.Wakeup}
	return nil
}

// Cancel is who cancels: user, parent, or a hook with a reason.
type Cancel struct {
	Kind   string
	Reason string
}

// UnmarshalJSON reads a kind or {hook: reason}.
func (c *Cancel) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &c.Kind)
	}
	var object struct {
		Hook string `json:"hook"`
	}
	if err := strict(data, &object); err != nil {
		return err
	}
	*c = Cancel{Kind: "hook", Reason: object.Hook}
	return nil
}

// Names is one name or a list of them.
type Names []string

// UnmarshalJSON reads a name or a list.
func (n *Names) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*n = make(Names, 1)
		return json.Unmarshal(data, &(*n)[0])
	}
	return json.Unmarshal(data, (*[]string)(n))
}

// WaitFor is what the driver waits for: the nth event of a type, a number of
// requests, or a status.
type WaitFor struct {
	Event    string `json:"event"`
	Nth      int    `json:"nth"`
	Requests int    `json:"requests"`
	Status   string `json:"status"`
}

// Maintenance is a task that runs while the agent is idle.
type Maintenance struct {
	Gate    string   `json:"gate"`
	OnAbort string   `json:"onAbort"` // ignore
	Do      []Action `json:"do"`
	Throw   *string  `json:"throw"`
}

// Resume stores a log and resumes it in a fresh world.
type Resume struct {
	As      string            `json:"as"`
	From    string            `json:"from"`
	UpTo    *int              `json:"upTo"`
	Log     []json.RawMessage `json:"log"`
	Header  json.RawMessage   `json:"header"`
	Options Options           `json:"options"`
}

// Fork drives a new agent over a prefix of another's log.
type Fork struct {
	As       string `json:"as"`
	From     string `json:"from"`
	Boundary *int   `json:"boundary"`
}

// ReplaceSurface appends a message that replaces a range of the surface.
type ReplaceSurface struct {
	Start    *int   `json:"start"`
	End      *int   `json:"end"`
	StartSeq *int   `json:"startSeq"`
	EndSeq   *int   `json:"endSeq"`
	Text     string `json:"text"`
	Cite     Cite   `json:"cite"`
}

// Cite overrides what a replacement cites: false for nothing, or a list.
type Cite struct {
	Omit bool
	Seqs []int // nil for the range itself
}

// UnmarshalJSON reads false, null or a list.
func (c *Cite) UnmarshalJSON(data []byte) error {
	if string(data) == "false" {
		c.Omit = true
		return nil
	}
	return json.Unmarshal(data, &c.Seqs)
}

// RewriteToolResult replaces a stored result.
type RewriteToolResult struct {
	CallID  string `json:"callId"`
	Text    string `json:"text"`
	IsError *bool  `json:"isError"`
}

// AppendEvent appends an event as it is written.
type AppendEvent struct {
	Type            string          `json:"type"`
	Data            json.RawMessage `json:"data"`
	SurfaceOp       json.RawMessage `json:"surfaceOp"`
	SourceEventSeqs *[]int          `json:"sourceEventSeqs"`
	Ignorable       bool            `json:"ignorable"`
}

// SetMode changes how a tool classifies its calls.
type SetMode struct {
	Tool string `json:"tool"`
	Mode string `json:"mode"`
}

// StartRun starts a child of the selected agent.
type StartRun struct {
	Provider     string          `json:"provider"`
	Prompt       string          `json:"prompt"`
	Label        string          `json:"label"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Persona      string          `json:"persona"`
	ToolFilter   *ToolFilter     `json:"toolFilter"`
	MaxDepth     *int            `json:"maxDepth"`
	AgentOptions json.RawMessage `json:"agentOptions"`
	As           string          `json:"as"`
}

// FollowupChild sends a message to a child.
type FollowupChild struct {
	Child string `json:"child"`
	Text  string `json:"text"`
	As    string `json:"as"`
}

// InterruptChild interrupts a child, with Parent as a user who holds that
// address, else as the selected agent.
type InterruptChild struct {
	Child  string `json:"child"`
	Parent string `json:"parent"`
	As     string `json:"as"`
}

// CompactRegion compacts a range of the log.
type CompactRegion struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	As    string `json:"as"`
}
