package dsh

import (
	"errors"
	"fmt"
	"slices"
)

// ErrInboxSplice is returned for a splice that does not fit its list.
var ErrInboxSplice = errors.New("invalid inbox splice")

// An Inbox is the two ordered lists of pending messages. The zero value is
// empty. Message IDs are unique across both lists.
type Inbox struct {
	NextTurn []*Message
	NextStep []*Message
}

// list returns the list that target names, or nil for an unknown target.
func (b *Inbox) list(target Target) *[]*Message {
	switch target {
	case NextTurn:
		return &b.NextTurn
	case NextStep:
		return &b.NextStep
	}
	return nil
}

// Apply performs one logged splice. An error leaves the inbox as it was and
// wraps [ErrInboxSplice].
func (b *Inbox) Apply(s InboxSpliced) error {
	list := b.list(s.Target)
	if list == nil {
		return fmt.Errorf("%w: unknown target %q", ErrInboxSplice, s.Target)
	}
	if s.Start < 0 || s.Removed < 0 || s.Removed > len(*list)-s.Start {
		return fmt.Errorf("%w: %d messages at %d of %d in %s", ErrInboxSplice, s.Removed, s.Start, len(*list), s.Target)
	}
	for k, m := range s.Inserted {
		if slices.ContainsFunc(s.Inserted[:k], func(n *Message) bool { return n.ID == m.ID }) {
			return fmt.Errorf("%w: message %s is inserted twice", ErrInboxSplice, m.ID)
		}
		if target, i := b.Find(m.ID); i >= 0 && (target != s.Target || i < s.Start || i >= s.Start+s.Removed) {
			return fmt.Errorf("%w: message %s is already pending", ErrInboxSplice, m.ID)
		}
	}
	*list = slices.Replace(*list, s.Start, s.Start+s.Removed, s.Inserted...)
	return nil
}

// Find returns where the message with this ID is pending; i is -1 if it is
// not.
func (b *Inbox) Find(id MessageID) (target Target, i int) {
	for i, m := range b.NextStep {
		if m.ID == id {
			return NextStep, i
		}
	}
	for i, m := range b.NextTurn {
		if m.ID == id {
			return NextTurn, i
		}
	}
	return "", -1
}

// Len returns how many messages target's list holds.
func (b *Inbox) Len(target Target) int {
	if list := b.list(target); list != nil {
		return len(*list)
	}
	return 0
}

// Empty reports whether nothing is pending.
func (b *Inbox) Empty() bool { return len(b.NextTurn) == 0 && len(b.NextStep) == 0 }
