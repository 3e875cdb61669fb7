package toolset

import (
	"fmt"
	"strings"
)

// A headTail keeps the beginning and the end of what is written to it and
// counts the rest. It takes no more memory than it may keep.
type headTail struct {
	head, tail       []byte
	maxHead, maxTail int
	next             int // where the full tail is written next: its oldest byte
	total            int64
}

func newHeadTail(limit int) *headTail { return &headTail{maxHead: limit - limit/2, maxTail: limit / 2} }

// Write keeps what it must of p. It never fails.
func (h *headTail) Write(p []byte) (int, error) {
	n := len(p)
	h.total += int64(n)
	k := min(len(p), h.maxHead-len(h.head))
	h.head = append(h.head, p[:k]...)
	p = p[k:]
	if len(p) > h.maxTail {
		p = p[len(p)-h.maxTail:]
	}
	k = min(len(p), h.maxTail-len(h.tail))
	h.tail = append(h.tail, p[:k]...)
	for p = p[k:]; len(p) > 0; {
		k := copy(h.tail[h.next:], p)
		h.next = (h.next + k) % h.maxTail
		p = p[k:]
	}
	return n, nil
}

func (h *headTail) dropped() int64 { return h.total - int64(len(h.head)+len(h.tail)) }

// String returns what was kept as valid UTF-8, with a note where something was
// dropped.
func (h *headTail) String() string {
	tail := string(h.tail[h.next:]) + string(h.tail[:h.next])
	dropped := h.dropped()
	if dropped == 0 {
		return strings.ToValidUTF8(string(h.head)+tail, "\uFFFD")
	}
	return fmt.Sprintf("%s\n[… %d bytes dropped …]\n%s", strings.ToValidUTF8(string(h.head), ""), dropped, strings.ToValidUTF8(tail, ""))
}
