package dsh

import (
	"errors"
	"fmt"
	"reflect"
)

// ErrSurface is wrapped by every refusal of a surface event.
var ErrSurface = errors.New("invalid surface event")

// A History folds session events into the surface, the ordered list of events
// that the model sees, and the messages derived from it. The zero value is an
// empty history.
//
// Invariants: nodes are in surface order; messages holds the message of each
// node that derives one, in the same order; snapshots returned by
// [History.Messages] are never written again.
type History struct {
	nodes      []node
	messages   []*Message
	generation int
}

// node is one surface event.
type node struct {
	seq     Seq
	kind    nodeKind
	message *Message
}

type nodeKind uint8

const (
	userNode nodeKind = iota
	assistantNode
	resultNode
)

// OnSurface reports whether events of this type are surface events.
func OnSurface(eventType string) bool {
	return eventType == TypeUserMessage || eventType == TypeAssistantMessage || eventType == TypeToolFinished
}

// surfaceNode returns the node that ev would be; ok is false for events that
// are not on the surface.
func surfaceNode(ev *Event) (n node, ok bool) {
	switch d := ev.Data.(type) {
	case UserMessage:
		return node{ev.Seq, userNode, d.Message}, true
	case AssistantMessage:
		return node{ev.Seq, assistantNode, d.Message}, true
	case ToolFinished:
		return node{ev.Seq, resultNode, d.Message}, true
	default:
		return node{}, false
	}
}

// Check returns why ev may not follow what was folded so far, or nil. Every
// error wraps [ErrSurface].
func (h *History) Check(ev *Event) error {
	n, on := surfaceNode(ev)
	switch {
	case !on && ev.Surface.Kind() != SurfaceNone:
		return fmt.Errorf("%w: %s may not have a surfaceOp", ErrSurface, ev.Type())
	case !on && ev.Sources != nil:
		return fmt.Errorf("%w: %s may not have sourceEventSeqs", ErrSurface, ev.Type())
	case !on:
		return nil
	case ev.Surface.Kind() == SurfaceNone:
		return fmt.Errorf("%w: %s needs a surfaceOp", ErrSurface, ev.Type())
	}
	if err := checkSources(ev, n.kind); err != nil {
		return err
	}
	if ev.Surface.Kind() == SurfaceReplace {
		return h.checkReplace(ev, n)
	}
	return nil
}

func checkSources(ev *Event, kind nodeKind) error {
	if ev.Sources == nil {
		return nil
	}
	if ev.Sources.Len() == 0 && kind != assistantNode {
		return fmt.Errorf("%w: %s may not cite an empty list", ErrSurface, ev.Type())
	}
	for i, r := range ev.Sources.Runs() {
		if r.First < 0 || r.Last < r.First || r.Last >= ev.Seq {
			return fmt.Errorf("%w: event %d cites %d, which is not earlier", ErrSurface, ev.Seq, r.Last)
		}
		for _, q := range ev.Sources.Runs()[:i] {
			if q.First <= r.Last && r.First <= q.Last {
				return fmt.Errorf("%w: event %d cites %d twice", ErrSurface, ev.Seq, max(q.First, r.First))
			}
		}
	}
	return nil
}

func (h *History) checkReplace(ev *Event, n node) error {
	from, to, err := h.span(ev.Surface)
	if err != nil {
		return err
	}
	for _, shadowed := range h.nodes[from : to+1] {
		if !ev.Sources.Contains(shadowed.seq) {
			return fmt.Errorf("%w: event %d replaces %d without citing it", ErrSurface, ev.Seq, shadowed.seq)
		}
	}
	if n.kind != resultNode {
		return nil
	}
	if from != to || h.nodes[from].kind != resultNode {
		return fmt.Errorf("%w: a tool/result may replace exactly one tool/result", ErrSurface)
	}
	if !sameButContent(h.nodes[from].message, n.message) {
		return fmt.Errorf("%w: a tool/result may change only the content of the one it replaces", ErrSurface)
	}
	return nil
}

// sameButContent reports whether a and b are results of the same call that
// differ in nothing but the content of the result.
func sameButContent(a, b *Message) bool {
	if a.ID != b.ID || a.Role != b.Role || !reflect.DeepEqual(a.Source, b.Source) ||
		len(a.Content) != 1 || len(b.Content) != 1 {
		return false
	}
	x, okX := a.Content[0].(ToolResult)
	y, okY := b.Content[0].(ToolResult)
	return okX && okY && x.CallID == y.CallID && x.IsError == y.IsError
}

// span returns the surface positions that op replaces.
func (h *History) span(op SurfaceOp) (from, to int, err error) {
	start, end := op.Range()
	from, to = h.position(start), h.position(end)
	switch {
	case from < 0:
		return 0, 0, fmt.Errorf("%w: event %d is not on the surface", ErrSurface, start)
	case to < 0:
		return 0, 0, fmt.Errorf("%w: event %d is not on the surface", ErrSurface, end)
	case to < from:
		return 0, 0, fmt.Errorf("%w: range %d to %d is reversed", ErrSurface, start, end)
	}
	return from, to, nil
}

// position returns where seq stands on the surface, or -1.
func (h *History) position(seq Seq) int {
	for i := len(h.nodes) - 1; i >= 0; i-- {
		if h.nodes[i].seq == seq {
			return i
		}
	}
	return -1
}

// Apply folds ev, which [History.Check] must have accepted (it returns the
// same error otherwise and changes nothing).
func (h *History) Apply(ev *Event) error {
	if err := h.Check(ev); err != nil {
		return err
	}
	n, on := surfaceNode(ev)
	if !on {
		return nil
	}
	if ev.Surface.Kind() == SurfaceReplace {
		h.replace(ev.Surface, n)
		return nil
	}
	h.nodes = append(h.nodes, n)
	if n.derives() {
		h.messages = append(h.messages, n.message)
	}
	return nil
}

// replace puts n where op's range was. Both lists are new: snapshots of the
// old ones stay as they are.
func (h *History) replace(op SurfaceOp, n node) {
	from, to, err := h.span(op)
	if err != nil {
		panic(err) // Check accepted it.
	}
	nodes := make([]node, 0, len(h.nodes)-(to-from))
	nodes = append(append(append(nodes, h.nodes[:from]...), n), h.nodes[to+1:]...)
	messages := make([]*Message, 0, len(nodes))
	for _, n := range nodes {
		if n.derives() {
			messages = append(messages, n.message)
		}
	}
	h.nodes, h.messages = nodes, messages
	h.generation++
}

// derives reports whether the node's message reaches the model.
func (n node) derives() bool {
	return n.kind != assistantNode || len(n.message.Content) > 0
}

// Messages returns what the model sees, as an immutable snapshot. It takes
// the same time however long the history is.
func (h *History) Messages() []*Message {
	return h.messages[:len(h.messages):len(h.messages)]
}

// Surface returns the sequence numbers of the surface in order.
func (h *History) Surface() []Seq {
	seqs := make([]Seq, len(h.nodes))
	for i, n := range h.nodes {
		seqs[i] = n.seq
	}
	return seqs
}

// Generation returns how often a range of the surface was replaced.
func (h *History) Generation() int { return h.generation }

// LastUser returns the newest user message on the surface that match accepts
// and its sequence number; ok is false if there is none.
func (h *History) LastUser(match func(*Message) bool) (m *Message, seq Seq, ok bool) {
	for i := len(h.nodes) - 1; i >= 0; i-- {
		if n := h.nodes[i]; n.kind == userNode && match(n.message) {
			return n.message, n.seq, true
		}
	}
	return nil, 0, false
}
