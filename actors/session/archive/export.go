package archive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dsh-actor/dsh-actor/actors/session"
	"github.com/dsh-actor/dsh-actor/dsh"
)

const (
	// Format is what a document says that it is.
	Format = "dsh-actor/session"
	// Version is the version of the documents that are written, and the only one
	// that is read. Within a version members are only added.
	Version = 1
)

// readLimit is about how many events are taken from a log at once. A store may
// have to read more than that each time, if it wrote more at once.
const readLimit = 16 << 10

// Export writes a session as a document of its own.
func Export(ctx context.Context, w io.Writer, log session.Log) error {
	e := newEncoder(w)
	e.begin()
	e.session(ctx, log)
	e.text("}\n")
	return e.end()
}

// ExportAll writes several sessions as one document, in order. Each log is opened
// when its turn comes and closed behind it.
func ExportAll(
	ctx context.Context, w io.Writer, ids []dsh.SessionID, open func(context.Context, dsh.SessionID) (session.Log, error),
) error {
	e := newEncoder(w)
	e.begin()
	e.text("\"sessions\":[")
	for i, id := range ids {
		if i > 0 {
			e.text(",")
		}
		e.text("\n{")
		e.member(ctx, id, open)
		e.text("}")
	}
	e.text("\n]}\n")
	return e.end()
}

// encoder writes a document until something fails.
type encoder struct {
	w   *bufio.Writer
	buf []byte
	err error
}

func newEncoder(w io.Writer) *encoder { return &encoder{w: bufio.NewWriterSize(w, 64<<10)} }

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

func (e *encoder) text(s string) {
	if e.err == nil {
		_, err := e.w.WriteString(s)
		e.fail(err)
	}
}

func (e *encoder) begin() { e.text(fmt.Sprintf("{\"format\":%q,\"version\":%d,\n", Format, Version)) }

func (e *encoder) end() error {
	if e.err == nil {
		e.err = e.w.Flush()
	}
	if e.err != nil {
		return fmt.Errorf("archive: export: %w", e.err)
	}
	return nil
}

// member writes one of several sessions.
func (e *encoder) member(
	ctx context.Context, id dsh.SessionID, open func(context.Context, dsh.SessionID) (session.Log, error),
) {
	if e.err != nil {
		return
	}
	log, err := open(ctx, id)
	if err != nil {
		e.fail(err)
		return
	}
	e.session(ctx, log)
	if err := log.Close(); err != nil {
		e.fail(err)
	}
}

// session writes the members of a session.
func (e *encoder) session(ctx context.Context, log session.Log) {
	h := log.Header()
	e.text("\"session\":")
	e.text(string(headerJSON(&h)))
	e.text(",\n\"events\":[")
	var next dsh.Seq
	for e.err == nil {
		events, err := log.Read(ctx, next, readLimit)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			e.fail(err)
			return
		}
		if len(events) == 0 {
			break
		}
		for ev := range dsh.Expand(events) {
			if ev.Seq >= next {
				e.event(&ev)
				next = ev.Seq + 1
			}
		}
	}
	e.text("\n]")
}

func (e *encoder) event(ev *dsh.Event) {
	if e.err != nil {
		return
	}
	e.buf = e.buf[:0]
	if ev.Seq > 0 {
		e.buf = append(e.buf, ',')
	}
	e.buf = ev.AppendJSON(append(e.buf, '\n'))
	_, err := e.w.Write(e.buf)
	e.fail(err)
}

// stored is what the header of a log has and that of a document has not: it is
// about the storage.
var stored = []byte(fmt.Sprintf(`{"type":"session","version":%d,`, dsh.FormatVersion))

// headerJSON returns the header as a document holds it.
func headerJSON(h *dsh.SessionHeader) []byte {
	v := *h
	v.Version = dsh.FormatVersion
	members, ok := bytes.CutPrefix(v.AppendJSON(nil), stored)
	if !ok {
		panic("archive: the header of a log does not begin with its version")
	}
	return append([]byte{'{'}, members...)
}

// readHeader reads what headerJSON wrote.
func readHeader(object []byte) (h dsh.SessionHeader, err error) {
	object = bytes.TrimSpace(object)
	if len(object) < 2 || object[0] != '{' {
		return h, errors.New("it must be an object")
	}
	members := bytes.TrimSpace(object[1 : len(object)-1])
	line := append([]byte{'{'}, members...)
	if len(members) > 0 {
		line = append(line, ',')
	}
	line = append(append(line, bytes.TrimRight(stored[1:], ",")...), '}') // the last one of a name counts
	err = h.UnmarshalJSON(line)
	return h, err
}
