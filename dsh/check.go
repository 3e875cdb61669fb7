package dsh

import (
	"errors"
	"fmt"
)

// CheckRequest returns the first breach of the rules that strict providers
// hold a request's messages to, or nil:
//
//  1. An assistant message has content.
//  2. The tool calls of one assistant message have IDs that differ.
//  3. An assistant message with tool calls is followed at once by one result
//     message for each call, in call order, with nothing between.
//  4. A result answers a call of the assistant message before it.
//  5. A result is the only block of a user-role message, and tool calls stand
//     in assistant messages only.
func CheckRequest(messages []*Message) error {
	var c RequestCheck
	for _, m := range messages {
		if c.Add(m); c.breach != nil {
			break
		}
	}
	return c.Err()
}

// A RequestCheck is [CheckRequest] for a list of messages that grows. The zero
// value has seen none.
type RequestCheck struct {
	n      int
	due    []ToolCall // calls whose results must come next
	breach error
}

// Add adds m. Behind a breach nothing is looked at.
func (c *RequestCheck) Add(m *Message) {
	if c.breach == nil {
		if err := checkMessage(m, &c.due); err != nil {
			c.breach = fmt.Errorf("dsh: request message %d: %w", c.n, err)
		}
	}
	c.n++
}

// Err returns what [CheckRequest] does for the messages so far.
func (c *RequestCheck) Err() error {
	switch {
	case c.breach != nil:
		return c.breach
	case len(c.due) > 0:
		return fmt.Errorf("dsh: request message %d: %w", c.n, notAnswered(c.due))
	}
	return nil
}

func checkMessage(m *Message, due *[]ToolCall) error {
	result, isResult, err := resultBlock(m)
	switch {
	case err != nil:
		return err
	case isResult && len(*due) == 0:
		return fmt.Errorf("rule 4: result for %q, which no call asks for", result.CallID)
	case isResult && result.CallID != (*due)[0].ID:
		return fmt.Errorf("rule 3: result for %q where the one for %q is due", result.CallID, (*due)[0].ID)
	case isResult:
		*due = (*due)[1:]
		return nil
	case len(*due) > 0:
		return notAnswered(*due)
	case m.Role != RoleAssistant:
		return nil
	case len(m.Content) == 0:
		return errors.New("rule 1: assistant message without content")
	}
	*due = CallsOf(m.Content)
	return checkIDs(*due)
}

func notAnswered(due []ToolCall) error {
	return fmt.Errorf("rule 3: the result for %q must stand here, before anything else", due[0].ID)
}

// resultBlock returns the result that m is, and whether it is one.
func resultBlock(m *Message) (r ToolResult, ok bool, err error) {
	for _, b := range m.Content {
		switch b := b.(type) {
		case ToolCall:
			if m.Role != RoleAssistant {
				return r, false, fmt.Errorf("rule 5: call %q in a message of role %s", b.ID, m.Role)
			}
		case ToolResult:
			if m.Role != RoleUser || len(m.Content) != 1 {
				return r, false, fmt.Errorf("rule 5: result for %q is not the only block of a user message", b.CallID)
			}
			return b, true, nil
		case Text, Reasoning, Image:
		}
	}
	return r, false, nil
}

func checkIDs(calls []ToolCall) error {
	for i, c := range calls {
		for _, d := range calls[:i] {
			if c.ID == d.ID {
				return fmt.Errorf("rule 2: two calls have the ID %q", c.ID)
			}
		}
	}
	return nil
}
