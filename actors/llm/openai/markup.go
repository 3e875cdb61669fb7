package openai

import "regexp"

// Markup of tool calls that servers fail to take out of the text. The special
// tokens of a model mean a call wherever they stand; tags that people also
// write about do at the start of a line only. Code is left out, since that is
// where an answer quotes them.
var (
	quotedCode   = regexp.MustCompile("(?s)```.*?(?:```|$)|`[^`\n]*`")
	callMarkers  = regexp.MustCompile(`<[｜|]DSML[｜|]|<｜tool▁calls?▁(?:begin|section)|<\|tool_calls?_(?:section_)?begin\|>`)
	callOpenings = regexp.MustCompile(`(?m)^[ \t]*(?:<tool_calls?>|<function_calls>|<function=\w|<invoke name=|\[TOOL_CALLS\])`)
)

// hasCallMarkup reports whether text holds a tool call that was not parsed.
func hasCallMarkup(text string) bool {
	text = quotedCode.ReplaceAllString(text, "")
	return callMarkers.MatchString(text) || callOpenings.MatchString(text)
}
