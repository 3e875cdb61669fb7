package dsh

import (
	"errors"
	"fmt"
)

// The JSON form is that of the DeepSeek Harness session log, format 0. Writing
// appends to a buffer, in the log's order of members and without reflection;
// members that are absent are left out, never null. Reading is strict about
// the envelope of an event and about the members that this package knows, and
// ignores others in payloads. What only passes through is kept raw.

// AppendJSON appends the event as one line of a log, without a line break. The
// event must not be a [ChunkRun]: see [Expand].
func (e *Event) AppendJSON(dst []byte) []byte {
	dst = appendText(dst, `{"type":`, e.Type())
	dst = appendInt(dst, `,"seq":`, e.Seq)
	dst = appendInt(dst, `,"time":`, e.Time)
	dst = appendFact(append(dst, `,"data":`...), e.Data)
	if e.Sources != nil {
		dst = e.Sources.appendJSON(append(dst, `,"sourceEventSeqs":`...))
	}
	switch e.Surface.Kind() {
	case SurfaceAppend:
		dst = append(dst, `,"surfaceOp":"append"`...)
	case SurfaceReplace:
		start, end := e.Surface.Range()
		dst = appendInt(dst, `,"surfaceOp":{"op":"replace","start":`, start)
		dst = append(appendInt(dst, `,"end":`, end), '}')
	case SurfaceNone:
	}
	if e.Ignorable {
		dst = append(dst, `,"ignorable":true`...)
	}
	return append(dst, '}')
}

// MarshalJSON returns the event as [Event.AppendJSON] writes it.
func (e Event) MarshalJSON() ([]byte, error) {
	if _, packed := e.Data.(ChunkRun); packed {
		return nil, fmt.Errorf("dsh: encode event %d: it packs several, expand it first", e.Seq)
	}
	return e.AppendJSON(nil), nil
}

// UnmarshalJSON reads one event. A type that this package does not look into
// becomes an [Opaque]; whether it may be there is for [CheckKnown] to say.
// Whether the event may follow others is for [History.Check].
func (e *Event) UnmarshalJSON(line []byte) error {
	return unmarshal(line, "event", decodeEvent, e)
}

func decodeEvent(v value) (ev Event, err error) {
	var name string
	var data value
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "type":
			if name, err = v.text(); name == "" && err == nil {
				err = errors.New("must not be empty")
			}
		case "seq":
			ev.Seq, err = countOf[Seq](v)
		case "time":
			ev.Time, err = v.integer()
		case "data":
			data, err = v, v.lossless()
		case "sourceEventSeqs":
			ev.Sources, err = decodeSources(v)
		case "surfaceOp":
			ev.Surface, err = decodeSurfaceOp(v)
		case "ignorable":
			if ev.Ignorable = string(v) == "true"; !ev.Ignorable {
				err = errors.New("must be true or absent")
			}
		default:
			err = errUnknownMember
		}
		return err
	}, "type", "seq", "time", "data")
	if err != nil {
		return ev, err
	}
	if ev.Data, err = decodeFact(name, data); err != nil {
		return ev, fmt.Errorf("%s: %w", name, within("data", err))
	}
	return ev, nil
}

// decodeSurfaceOp reads "append" or exactly {"op":"replace","start","end"}.
func decodeSurfaceOp(v value) (op SurfaceOp, err error) {
	if v[0] != '{' {
		if s, err := v.text(); err != nil || s != "append" {
			return op, errors.New(`must be "append" or a replace`)
		}
		return Append, nil
	}
	var start, end Seq
	err = v.members(func(key []byte, v value) (err error) {
		switch string(key) {
		case "op":
			if s, err := v.text(); err != nil || s != "replace" {
				return errors.New(`must be "replace"`)
			}
		case "start":
			start, err = countOf[Seq](v)
		case "end":
			end, err = countOf[Seq](v)
		default:
			err = errUnknownMember
		}
		return err
	}, "op", "start", "end")
	return Replace(start, end), err
}

func (s *Sources) appendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i, r := range s.runs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendInt(dst, "", r.First)
		for seq := r.First + 1; seq <= r.Last; seq++ {
			dst = appendInt(dst, ",", seq)
		}
	}
	return append(dst, ']')
}

// MarshalJSON returns the list of the cited numbers.
func (s Sources) MarshalJSON() ([]byte, error) { return s.appendJSON(nil), nil }

// UnmarshalJSON reads a list of sequence numbers.
func (s *Sources) UnmarshalJSON(data []byte) error {
	return unmarshal(data, "sources", func(v value) (Sources, error) {
		read, err := decodeSources(v)
		if err != nil {
			return Sources{}, err
		}
		return *read, nil
	}, s)
}

func decodeSources(v value) (*Sources, error) {
	seqs, err := elements(v, countOf[Seq])
	if err != nil {
		return nil, err
	}
	return Cite(seqs...), nil
}
