package archive

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// ErrFormat is wrapped by every error of a document that is not right.
var ErrFormat = errors.New("not a session export")

// ErrVersion is wrapped by the error of a document of another version. It may be
// right; this build cannot read it.
var ErrVersion = errors.New("unsupported version of the export format")

// A reader is told of what a document holds, in its order.
type reader interface {
	// header begins a session; its events follow.
	header(h dsh.SessionHeader) error
	// event takes the next event, which takes so many bytes in the document.
	event(ev dsh.Event, size int) error
	// end ends the session.
	end() error
}

// decode reads a document. It returns whether it is one of several sessions.
func decode(r io.Reader, to reader) (several bool, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	if err := sniff(in); err != nil {
		return false, err
	}
	d := &decoder{json: json.NewDecoder(in), to: to}
	if err := d.document(); err != nil {
		return d.several, d.placed(err)
	}
	if _, err := d.json.Token(); !errors.Is(err, io.EOF) {
		return d.several, d.placed(fmt.Errorf("%w: something follows the end of the document", ErrFormat))
	}
	return d.several, nil
}

// sniff looks at the first bytes for what a document is often mistaken for. A
// byte order mark of UTF-8 is passed over.
func sniff(in *bufio.Reader) error {
	first, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("archive: %w", err)
	}
	switch {
	case len(first) == 0:
		return fmt.Errorf("archive: %w: it is empty", ErrFormat)
	case bytes.HasPrefix(first, []byte("\xef\xbb\xbf")):
		_, _ = in.Discard(3) // it was peeked
	case bytes.HasPrefix(first, []byte("\xff\xfe")), bytes.HasPrefix(first, []byte("\xfe\xff")):
		return fmt.Errorf("archive: %w: it is UTF-16; convert it to UTF-8", ErrFormat)
	case bytes.HasPrefix(first, []byte("\x28\xb5\x2f\xfd")):
		return fmt.Errorf("archive: %w: it is compressed with zstd; decompress an export, or put a session log into the store as it is", ErrFormat)
	case bytes.HasPrefix(first, []byte("\x1f\x8b")):
		return fmt.Errorf("archive: %w: it is compressed with gzip; decompress it first", ErrFormat)
	}
	return nil
}

// decoder reads a document token by token, and never more than an event at once.
type decoder struct {
	json    *json.Decoder
	to      reader
	several bool
	id      dsh.SessionID // of the session being read
	next    dsh.Seq       // of its next event
}

// placed says where in the document an error is.
func (d *decoder) placed(err error) error {
	var syntax *json.SyntaxError
	at := d.json.InputOffset()
	switch {
	case errors.As(err, &syntax):
		err = fmt.Errorf("%w: %w", ErrFormat, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("%w: it is cut off", ErrFormat)
	}
	if d.id != "" {
		return fmt.Errorf("archive: session %s, event %d, near byte %d: %w", d.id, d.next, at, err)
	}
	return fmt.Errorf("archive: near byte %d: %w", at, err)
}

func (d *decoder) document() error {
	if err := d.open('{'); err != nil {
		return err
	}
	if err := d.preamble(); err != nil {
		return err
	}
	return d.session(true)
}

// preamble reads the first two members, which say what the rest is.
func (d *decoder) preamble() error {
	var format string
	name, err := d.name()
	switch {
	case err != nil:
		return err
	case name == "type":
		return fmt.Errorf(`%w: it begins like a session log; export the session, or put the log into the store as it is`, ErrFormat)
	case name != "format":
		return fmt.Errorf(`%w: the first member must be "format", not %q`, ErrFormat, name)
	}
	if err := d.json.Decode(&format); err != nil {
		return mistaken(err)
	}
	if format != Format {
		return fmt.Errorf("%w: the format is %q, not %q", ErrFormat, format, Format)
	}
	if name, err = d.name(); err != nil {
		return err
	} else if name != "version" {
		return fmt.Errorf(`%w: the second member must be "version", not %q`, ErrFormat, name)
	}
	var version int
	if err := d.json.Decode(&version); err != nil {
		return mistaken(err)
	}
	if version != Version {
		return fmt.Errorf("%w: it is version %d, this build reads %d", ErrVersion, version, Version)
	}
	return nil
}

// mistaken returns what is wrong with a value of another type.
func mistaken(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("%w: a %s where %s is due", ErrFormat, kind.Value, kind.Type)
	}
	return err
}

// session reads the members of a session, up to the end of its object. The
// outermost object may have several of them in place of its own. Members that are
// not known are passed over.
func (d *decoder) session(outermost bool) error {
	seen := map[string]bool{}
	for d.json.More() {
		name, err := d.name()
		if err != nil {
			return err
		}
		known := name == "session" || name == "events" || outermost && (name == "sessions" || name == "format" || name == "version")
		switch {
		case known && seen[name] || name == "format" || name == "version":
			return fmt.Errorf("%w: there are two members %q", ErrFormat, name)
		case name == "events" && !seen["session"]:
			return fmt.Errorf(`%w: "session" must come before "events"`, ErrFormat)
		case (name == "session" || name == "sessions") && (seen["session"] || seen["sessions"]):
			return fmt.Errorf(`%w: a document has either "session" or "sessions"`, ErrFormat)
		}
		seen[name] = known
		if err := d.member(name, outermost); err != nil {
			return err
		}
	}
	if err := d.close('}'); err != nil {
		return err
	}
	switch {
	case seen["sessions"]:
		return nil
	case !seen["session"]:
		return fmt.Errorf(`%w: it has no "session"`, ErrFormat)
	case !seen["events"]:
		return fmt.Errorf(`%w: it has no "events"`, ErrFormat)
	}
	d.id = ""
	return nil
}

func (d *decoder) member(name string, outermost bool) error {
	switch {
	case name == "session":
		return d.header()
	case name == "events":
		return d.events()
	case name == "sessions" && outermost:
		d.several = true
		return d.sessions()
	}
	return d.skip()
}

// skip passes over a value, however large.
func (d *decoder) skip() error {
	for depth := 0; ; {
		t, err := d.json.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

func (d *decoder) sessions() error {
	if err := d.open('['); err != nil {
		return err
	}
	for d.json.More() {
		if err := d.open('{'); err != nil {
			return err
		}
		if err := d.session(false); err != nil {
			return err
		}
	}
	return d.close(']')
}

func (d *decoder) header() error {
	var raw json.RawMessage
	if err := d.json.Decode(&raw); err != nil {
		return err
	}
	h, err := readHeader(raw)
	if err != nil {
		return fmt.Errorf(`%w: "session": %w`, ErrFormat, err)
	}
	if h.ID == "" {
		return fmt.Errorf(`%w: "session": the id is empty`, ErrFormat)
	}
	d.id, d.next = h.ID, 0
	return d.to.header(h)
}

func (d *decoder) events() error {
	if err := d.open('['); err != nil {
		return err
	}
	for d.json.More() {
		var raw json.RawMessage
		if err := d.json.Decode(&raw); err != nil {
			return err
		}
		var ev dsh.Event
		if err := ev.UnmarshalJSON(raw); err != nil {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
		if err := d.to.event(ev, len(raw)); err != nil {
			return err
		}
		d.next++
	}
	if err := d.close(']'); err != nil {
		return err
	}
	return d.to.end()
}

// open reads the beginning of an object or a list.
func (d *decoder) open(delim json.Delim) error {
	what := map[json.Delim]string{'{': "an object", '[': "a list"}[delim]
	t, err := d.json.Token()
	if err == nil && t != delim {
		err = fmt.Errorf("%w: %s is due", ErrFormat, what)
	}
	return err
}

// close reads the end of one.
func (d *decoder) close(delim json.Delim) error {
	t, err := d.json.Token()
	if err == nil && t != delim {
		err = fmt.Errorf("%w: %s is due", ErrFormat, delim)
	}
	return err
}

// name reads the name of a member.
func (d *decoder) name() (string, error) {
	t, err := d.json.Token()
	if err != nil {
		return "", err
	}
	name, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("%w: the name of a member is due", ErrFormat)
	}
	return name, nil
}
