package jsonl

import (
	"bytes"
	"errors"
)

// Encoding says how the logs of a store are written.
type Encoding int

// Encodings. A store has one: it refuses logs of the other.
const (
	// Zstd writes session.jsonl.zstd, one compressed frame per append.
	Zstd Encoding = iota
	// Raw writes session.jsonl, plain lines.
	Raw
)

// box is how lines lie in a file: in units, each of which was written at once.
type box interface {
	// name returns the name of the file.
	name() string
	// wrap appends the unit that holds lines.
	wrap(dst, lines []byte) []byte
	// unwrap reads the unit that data begins with, which is n bytes long. Of
	// a unit that a crash cut off, which is errTorn, lines is what complete
	// lines can be had of it. Any other error is damage.
	unwrap(data []byte) (lines []byte, n int, err error)
	// complete returns how long the units are that data begins with and holds
	// as a whole; all of it, if something in it is damaged.
	complete(data []byte) int
}

// errTorn says that the end of a file is missing, as after a crash.
var errTorn = errors.New("the last write is not complete")

func boxOf(e Encoding) box {
	if e == Raw {
		return rawBox{}
	}
	return zstdBox{}
}

// rawBox is lines as they are; each is a unit.
type rawBox struct{}

func (rawBox) name() string { return rawName }

func (rawBox) wrap(dst, lines []byte) []byte { return append(dst, lines...) }

func (rawBox) unwrap(data []byte) (lines []byte, n int, err error) {
	n = bytes.IndexByte(data, '\n') + 1
	if n == 0 {
		return nil, 0, errTorn
	}
	return data[:n], n, nil
}

func (rawBox) complete(data []byte) int { return bytes.LastIndexByte(data, '\n') + 1 }

// cutLine splits the first of complete lines off, without its break.
func cutLine(lines []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(lines, []byte{'\n'})
	return line, rest
}
