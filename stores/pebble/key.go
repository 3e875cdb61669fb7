package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Keys begin with their kind:
//
//	h id              the header, a JSON line
//	o length id       the epoch of the last owner, 8 bytes
//	b length id seq   a batch that begins with event seq, 8 bytes
//
// Numbers are big-endian, so that batches are in order; length has 2 bytes. A
// batch is the count of its events, as a varint, and their lines in the format
// of sessions (see jsonl.AppendLines).
const (
	headerKind = 'h'
	epochKind  = 'o'
	batchKind  = 'b'
)

// checkID returns why an ID cannot be a key.
func checkID(id dsh.SessionID) error {
	switch {
	case id == "":
		return errors.New("the ID is empty")
	case !utf8.ValidString(string(id)):
		return fmt.Errorf("the ID %q is not UTF-8", id)
	case len(id) > math.MaxUint16:
		return fmt.Errorf("the ID has %d bytes, more than %d", len(id), math.MaxUint16)
	}
	return nil
}

func headerKey(id dsh.SessionID) []byte { return append([]byte{headerKind}, id...) }

func epochKey(id dsh.SessionID) []byte { return keyOf(epochKind, id) }

func batchKey(id dsh.SessionID, seq dsh.Seq) []byte {
	return binary.BigEndian.AppendUint64(keyOf(batchKind, id), uint64(seq))
}

func keyOf(kind byte, id dsh.SessionID) []byte {
	key := make([]byte, 0, 1+2+len(id)+8)
	key = binary.BigEndian.AppendUint16(append(key, kind), uint16(len(id)))
	return append(key, id...)
}

// seqOf returns the number of a batch's first event.
func seqOf(key []byte) dsh.Seq {
	return dsh.Seq(binary.BigEndian.Uint64(key[len(key)-8:]))
}

// batch returns a batch as it is stored.
func batch(events []dsh.Event) []byte {
	first, last := &events[0], &events[len(events)-1]
	value := binary.AppendUvarint(nil, uint64(last.Last()-first.Seq+1))
	return jsonl.AppendLines(value, events)
}

// countOf returns how many events a stored batch holds, and their lines.
func countOf(value []byte) (count dsh.Seq, lines []byte, err error) {
	c, n := binary.Uvarint(value)
	if n <= 0 || c == 0 || c > 1<<53 {
		return 0, nil, fmt.Errorf("%w: a batch without a count", jsonl.ErrCorrupt)
	}
	return dsh.Seq(c), value[n:], nil
}

// eventsOf returns the events of a stored batch.
func eventsOf(key, value []byte) ([]dsh.Event, error) {
	first := seqOf(key)
	count, lines, err := countOf(value)
	var events []dsh.Event
	if err == nil {
		events, err = jsonl.ParseLines(lines)
	}
	if err == nil {
		err = numbered(events, first, count)
	}
	if err != nil {
		return nil, fmt.Errorf("the batch at event %d: %w", first, err)
	}
	return events, nil
}

// numbered reports whether events are count events from first on.
func numbered(events []dsh.Event, first, count dsh.Seq) error {
	next := first
	for i := range events {
		if events[i].Seq != next {
			return fmt.Errorf("%w: event %d where %d is due", jsonl.ErrCorrupt, events[i].Seq, next)
		}
		next += events[i].Span()
	}
	if next != first+count {
		return fmt.Errorf("%w: %d events instead of %d", jsonl.ErrCorrupt, next-first, count)
	}
	return nil
}
