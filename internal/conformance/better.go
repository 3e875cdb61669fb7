package conformance

// A Rule is a deviation that every scenario with sub-agents may show: where the
// recording has one thing, ours has another that serves users better. It changes
// want to what is expected of ours, or takes out of got what the recording
// cannot have, and returns how often.
type Rule struct {
	Name   string
	Reason string
	apply  func(r *ruling) int
}

// Rules are all of them.
var Rules = []Rule{
	{
		Name:   "typed errors",
		Reason: "a program can tell how a child ended or why there is none; the recorded results have no code",
		apply:  typedErrors,
	},
	{
		Name:   "empty output",
		Reason: "a model is told that a child said nothing; an empty result looks like a mistake",
		apply:  emptyOutput,
	},
	{
		Name:   "sayable notices",
		Reason: "a notice has no tool calls: strict providers refuse them in a user's message",
		apply:  sayableNotices,
	},
}

// ruling is what a rule looks at.
type ruling struct {
	got, want object
	calls     map[string]bool // calls of delegation tools, by ID
}

// Apply applies the rules to the traces of a scenario and returns how many
// deviations there are. Both traces are changed in place.
func (s *Scenario) Apply(got, want map[string]any) int {
	if s.Options.Subagents == nil || want == nil {
		return 0
	}
	r := &ruling{got: got, want: want, calls: map[string]bool{}}
	names := map[string]bool{}
	for _, t := range s.Options.Subagents.Tools {
		if t.ToolName == "" {
			t.ToolName = "subagent"
		}
		names[t.ToolName] = true
	}
	for event := range eventsOf(want) {
		data, _ := event["data"].(object)
		if name, _ := data["name"].(string); event["type"] == "tool/call" && names[name] {
			id, _ := data["callId"].(string)
			r.calls[id] = true
		}
	}
	n := 0
	for _, rule := range Rules {
		n += rule.apply(r)
	}
	return n
}

// walk visits every object in a JSON value.
func walk(v any, visit func(object)) {
	switch v := v.(type) {
	case object:
		visit(v)
		for _, inner := range v {
			walk(inner, visit)
		}
	case []any:
		for _, inner := range v {
			walk(inner, visit)
		}
	}
}

// typedErrors takes our codes out where the recorded result of a delegation is
// an error without one.
func typedErrors(r *ruling) int {
	n := 0
	wanted := agentsOf(r.want)
	for i, agent := range agentsOf(r.got) {
		if i >= len(wanted) {
			break
		}
		ours, _ := agent["events"].([]any)
		theirs, _ := wanted[i]["events"].([]any)
		for k := range min(len(ours), len(theirs)) {
			got, want := resultOf(ours[k]), resultOf(theirs[k])
			if got == nil || want == nil || !r.calls[callOf(want)] {
				continue
			}
			if _, coded := want["error"]; coded {
				continue
			}
			if e, ok := got["error"].(object); ok && e["name"] == "SubagentError" {
				delete(got, "error")
				n++
			}
		}
	}
	return n
}

// resultOf returns the data of a tool/result, or nil.
func resultOf(event any) object {
	e, _ := event.(object)
	if e["type"] != "tool/result" {
		return nil
	}
	data, _ := e["data"].(object)
	return data
}

func callOf(result object) string {
	message, _ := result["message"].(object)
	source, _ := message["source"].(object)
	id, _ := source["callId"].(string)
	return id
}

// emptyOutput expects some text where the recorded result of a delegation has
// none.
func emptyOutput(r *ruling) int {
	n := 0
	walk(r.want, func(o object) {
		id, _ := o["toolCallId"].(string)
		if o["type"] != "tool-result" || !r.calls[id] || o["isError"] == true {
			return
		}
		content, _ := o["content"].([]any)
		if len(content) != 1 {
			return
		}
		if block, ok := content[0].(object); ok && block["text"] == "" {
			block["text"] = "<any>"
			n++
		}
	})
	return n
}

// sayableNotices leaves out of recorded notices what a user's message may not
// hold.
func sayableNotices(r *ruling) int {
	n := 0
	walk(r.want, func(o object) {
		source, _ := o["source"].(object)
		content, _ := o["content"].([]any)
		if source["kind"] != "subagent-settled" || len(content) < 2 {
			return
		}
		kept := []any{}
		for _, b := range content {
			if block, ok := b.(object); ok && (block["type"] == "text" || block["type"] == "image") {
				kept = append(kept, block)
			}
		}
		if len(kept) == len(content) {
			return
		}
		if len(kept) == 2 { // the summary, and the heading of nothing
			kept[1] = object{"type": "text", "text": "<settled-without-message>"}
		}
		o["content"] = kept
		n++
	})
	return n
}
