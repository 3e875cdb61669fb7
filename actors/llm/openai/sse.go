package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// maxEvent bounds one event and one line of it, in bytes.
const maxEvent = 16 << 20

var (
	errEventTooLong = errors.New("an event is too long")
	errMidEvent     = errors.New("the connection closed in the middle of an event")
	doneMark        = []byte("[DONE]")
	byteOrderMark   = []byte("\xef\xbb\xbf")
)

// event is one server-sent event. Its data is valid until the next one is
// read.
type event struct {
	name string
	data []byte
	// done marks [DONE].
	done bool
	// stray marks a line that belongs to no event stream: a proxy's page or
	// an error as plain JSON. data is the line.
	stray bool
}

// sseReader reads server-sent events as the standard defines them: any line
// end, comments, fields in any order, data over several lines, a byte order
// mark. It forgives what servers do wrong: events without an empty line
// between them, and a last one without any line end, if their data is whole.
type sseReader struct {
	src    *bufio.Reader
	line   []byte // of the line being read
	skipLF bool   // the last line ended with CR
	begun  bool   // the byte order mark was looked for
	seen   bool   // a line that is not blank was read

	name  string
	data  []byte // of the event being read
	spare []byte // of the event last returned
	lines int    // of data
	err   error  // met already

	broken bool // the end came in the middle of an event and was none of the server's
}

func newSSEReader(r io.Reader) *sseReader {
	return &sseReader{src: bufio.NewReaderSize(r, 16<<10)}
}

// next returns the next event, or the error of the reader below.
func (r *sseReader) next() (event, error) {
	for r.err == nil {
		if r.lines == 1 && isDone(r.data) {
			return event{done: true}, nil
		}
		line, err := r.readLine()
		r.err = err
		if err == nil || len(line) > 0 && isEOF(err) {
			if ev, ok := r.take(line); ok {
				return ev, nil
			}
		}
	}
	return r.rest()
}

// rest returns the event that no empty line ended, if it is whole.
func (r *sseReader) rest() (event, error) {
	if r.lines == 0 || !isEOF(r.err) {
		return event{}, r.err
	}
	ev, ok := r.dispatch()
	switch {
	case !ok:
		return event{}, r.err
	case isDone(ev.data):
		return event{done: true}, nil
	case !json.Valid(ev.data):
		r.broken = r.broken || errors.Is(r.err, io.ErrUnexpectedEOF)
		r.err = errMidEvent
		return event{}, r.err
	}
	return ev, nil
}

// take adds one line; ok says that it completed an event.
func (r *sseReader) take(line []byte) (ev event, ok bool) {
	if len(line) == 0 {
		return r.dispatch()
	}
	r.seen = true
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "": // a comment
	case "data":
		return r.takeData(value)
	case "event":
		r.name = string(value)
	case "id", "retry":
	default:
		return event{data: line, stray: true}, true
	}
	return event{}, false
}

func (r *sseReader) takeData(value []byte) (ev event, ok bool) {
	if r.lines == 1 && json.Valid(r.data) {
		ev, ok = r.dispatch() // the empty line is missing
	}
	if len(r.data)+len(value) > maxEvent {
		r.err = errEventTooLong
		return event{}, false
	}
	if r.lines > 0 {
		r.data = append(r.data, '\n')
	}
	r.lines++
	r.data = append(r.data, value...)
	return ev, ok
}

// dispatch ends the event being read; ok is false if it has no data.
func (r *sseReader) dispatch() (ev event, ok bool) {
	ev = event{name: r.name, data: r.data}
	ok = len(bytes.TrimSpace(r.data)) > 0
	r.data, r.spare = r.spare[:0], r.data
	r.name, r.lines = "", 0
	return ev, ok
}

// readLine returns the next line without its end. At the end of the input it
// returns what there is and the error. The line is valid until the next call.
func (r *sseReader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		if _, err := r.src.Peek(1); err != nil {
			return r.trimMark(r.line), err
		}
		chunk, _ := r.src.Peek(r.src.Buffered())
		if r.skipLF {
			r.skipLF = false
			if chunk[0] == '\n' {
				r.discard(1)
				continue
			}
		}
		end := bytes.IndexAny(chunk, "\r\n")
		if end < 0 {
			r.line = append(r.line, chunk...)
			r.discard(len(chunk))
			if len(r.line) > maxEvent {
				return nil, errEventTooLong
			}
			continue
		}
		r.line = append(r.line, chunk[:end]...)
		r.skipLF = chunk[end] == '\r'
		r.discard(end + 1)
		return r.trimMark(r.line), nil
	}
}

func (r *sseReader) trimMark(line []byte) []byte {
	if r.begun {
		return line
	}
	r.begun = true
	return bytes.TrimPrefix(line, byteOrderMark)
}

// discard drops n bytes that are buffered.
func (r *sseReader) discard(n int) { _, _ = r.src.Discard(n) }

func isDone(data []byte) bool { return bytes.Equal(bytes.TrimSpace(data), doneMark) }

// isEOF reports whether err is the end of the connection, announced or not.
func isEOF(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
