package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// maxPreview bounds, in bytes, how much of a model's text an error repeats.
const maxPreview = 160

var noArgs = json.RawMessage("{}")

// NormalizeArgs returns a model's argument text as JSON: {} for a blank text,
// a valid one as it came, and anything else as a JSON string holding the text,
// which no tool accepts and which validation explains to the model. Nothing is
// repaired: arguments that the model did not write are never run.
func NormalizeArgs(raw string) json.RawMessage {
	if strings.TrimSpace(raw) == "" {
		return json.RawMessage("{}")
	}
	if args := json.RawMessage(raw); json.Valid(args) {
		return args
	}
	text, err := json.Marshal(raw)
	if err != nil {
		panic(fmt.Sprintf("tool: a string that is no JSON: %v", err)) // cannot be: every string can be marshalled
	}
	return text
}

// fit reports whether args fit the schema.
func (p *parameters) fit(args json.RawMessage) bool {
	if len(args) == 0 || string(args) == "{}" {
		return p.emptyFits
	}
	if p.plain != nil && p.plain.fits(args) {
		return true
	}
	var value map[string]any
	return json.Unmarshal(args, &value) == nil && value != nil && p.resolved.Validate(value) == nil
}

// problem says what is wrong with args, or nothing if they fit.
func (p *parameters) problem(args json.RawMessage) string {
	if p.emptyFits && string(args) == "{}" || p.plain != nil && p.plain.fits(args) {
		return ""
	}
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return notJSON(string(args), err)
	}
	switch value := value.(type) {
	case map[string]any:
		if err := p.resolved.Validate(value); err != nil {
			return explain(p.root, value, err)
		}
		return ""
	case string: // what NormalizeArgs makes of a text that is no JSON
		var inner any
		if err := json.Unmarshal([]byte(value), &inner); err != nil {
			return notJSON(value, err)
		}
		return "They are a JSON string with JSON inside; send the object itself, not quoted."
	default:
		return fmt.Sprintf("They must be a JSON object, not %s.", typed(value))
	}
}

// notJSON tells where a text stops being JSON.
func notJSON(text string, err error) string {
	at := len(text)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at = min(int(syntax.Offset), len(text))
	}
	return fmt.Sprintf("The text is not valid JSON: %v at byte %d, behind %q.", err, at, tail(text[:at]))
}

// refusal is the error of a call whose arguments do not fit.
func (p *parameters) refusal(name, problem string, args json.RawMessage) *Error {
	text := fmt.Sprintf("Invalid arguments for %s, which was not run. %s %s", name, problem, p.needs)
	if len(args) > 0 && args[0] != '"' {
		text += " Got: " + preview(string(args))
	}
	return &Error{Name: dsh.ToolInvalidArgs.Name, Code: dsh.ToolInvalidArgs.Code, Message: text}
}

// preview is the bounded beginning of a text.
func preview(text string) string {
	if len(text) <= maxPreview {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	cut := maxPreview
	for cut > maxPreview-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:cut], "\uFFFD"), len(text))
}

// tail is the bounded end of a text.
func tail(text string) string {
	const kept = 40
	if len(text) <= kept {
		return text
	}
	cut := len(text) - kept
	for cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut++
	}
	return "…" + text[cut:]
}
