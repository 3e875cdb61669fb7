package openai

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// calls are the tool calls of one answer in the order in which they appeared.
//
// Servers agree on nothing here, so which call a delta belongs to is decided
// by what they do: an index may be missing, start anywhere or be the same for
// all calls; an ID may be missing, empty, repeated or the same for all calls;
// a name may be repeated. The rules are those of find and slot.extend.
type calls struct {
	slots []*slot
	delta int // counts the lists of deltas, see next
}

// slot is one tool call.
type slot struct {
	block     int
	id        dsh.CallID
	name      string
	arguments []byte
	extra     json.RawMessage

	index   count  // the server's, if it told one
	wireID  string // the server's; empty if it told none
	touched int    // the list of deltas that last added to it
}

// next begins another list of deltas. Within one list, each name is a call.
func (c *calls) next() { c.delta++ }

// find returns the call that d belongs to, a fresh one if it begins another.
func (c *calls) find(d *wireDeltaCall) (s *slot, fresh bool) {
	s = c.lookup(d)
	if s == nil || c.begins(s, d) {
		s = &slot{index: d.Index, wireID: d.ID.text, id: c.freeID(d.ID.text)}
		c.slots = append(c.slots, s)
		fresh = true
	}
	s.touched = c.delta
	return s, fresh
}

// lookup returns the newest call that d's index and ID name, or nil. Without
// an ID it is the newest of the index; without either the newest of all. An
// unknown ID names no call, also where its index is taken, unless that call
// came without an ID and is not complete. A call without an index fits any.
func (c *calls) lookup(d *wireDeltaCall) *slot {
	var unnamed *slot
	for i := len(c.slots) - 1; i >= 0; i-- {
		s := c.slots[i]
		if d.Index.told && s.index.told && s.index != d.Index {
			continue
		}
		switch {
		case d.ID.text == "" || s.wireID == d.ID.text:
			return s
		case d.Index.told && s.wireID == "" && unnamed == nil:
			unnamed = s
		}
	}
	if unnamed != nil && !isObject(unnamed.arguments) {
		return unnamed
	}
	return nil
}

// begins reports whether d, though it fits s, begins another call: it has a
// name, and s was already given one by the same list of deltas, or s is
// complete and d has another name or arguments of its own. A complete call
// that comes once more is the same call.
func (c *calls) begins(s *slot, d *wireDeltaCall) bool {
	name, arguments := d.Function.Name.text, string(d.Function.Arguments)
	switch {
	case name == "":
		return false
	case s.touched == c.delta:
		return true
	case !isObject(s.arguments):
		return !d.Index.told && d.ID.text == "" && len(s.arguments) > 0 && name != s.name
	}
	return name != s.name || strings.HasPrefix(arguments, "{") && arguments != string(s.arguments)
}

// freeID returns the ID for a fresh call: the server's, or one made up where
// it told none or gave it to an earlier call of this answer.
func (c *calls) freeID(wire string) dsh.CallID {
	id := dsh.CallID(wire)
	for _, s := range c.slots {
		if s.id == id {
			id = ""
		}
	}
	if id == "" {
		return dsh.CallID("call_" + rand.Text())
	}
	return id
}

// extend adds d to the call and returns what is new: the name where it became
// known or longer, and the piece of the arguments.
func (s *slot) extend(d *wireDeltaCall) (name *string, arguments string) {
	before := s.name
	s.addName(d.Function.Name.text)
	if s.name != before {
		now := s.name
		name = &now
	}
	arguments = string(d.Function.Arguments)
	if arguments == string(s.arguments) && isObject(s.arguments) {
		return name, "" // a last chunk that repeats the whole call
	}
	s.arguments = append(s.arguments, arguments...)
	return name, arguments
}

// addName takes a name that comes whole, again, or in pieces. Once there are
// arguments the name is complete.
func (s *slot) addName(piece string) {
	switch {
	case piece == "" || piece == s.name:
	case s.name == "" || strings.HasPrefix(piece, s.name) && len(s.arguments) == 0:
		s.name = piece
	case len(bytes.TrimSpace(s.arguments)) == 0:
		s.name += piece
	}
}
