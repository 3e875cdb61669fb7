package jsonl

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// AppendLines appends events as lines of the format, each with its line break.
// A store of another kind that keeps them can be turned into files without
// looking at them.
func AppendLines(dst []byte, events []dsh.Event) []byte { return appendLines(dst, events) }

// ParseLines returns the events of lines that AppendLines made, packed. It keeps
// nothing of lines and is strict: what is not right as a whole is [ErrCorrupt],
// and an event that this build does not know is dsh.ErrUnknownEvent.
func ParseLines(lines []byte) ([]dsh.Event, error) {
	var (
		d       decoder
		out     gatherer
		refused error
	)
	for n := 1; len(lines) > 0; n++ {
		var line []byte
		line, lines = cutLine(lines)
		err := d.line(line, func(ev dsh.Event) {
			if refused == nil {
				refused = dsh.CheckKnown(&ev)
			}
			out.add(ev)
		})
		if err != nil {
			return nil, fmt.Errorf("line %d: %w: %w", n, ErrCorrupt, err)
		}
		if refused != nil {
			return nil, fmt.Errorf("line %d: %w", n, refused)
		}
	}
	return out.all(), nil
}
