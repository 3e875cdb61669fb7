package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dsh-actor/dsh-actor/actors/session"
)

// A log is stillborn if its file holds nothing or a part of the header, and
// perhaps zeros. That is what a power failure may leave of a log that was never
// synced: the name was written and the content was not. Nobody was promised
// anything of it, so that for the store there is no such log.

// stillborn reports whether the file at path is a stillborn log.
func stillborn(path string, b box) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && stillbornFile(f, info.Size(), b)
}

// stillbornFile is stillborn for a file of this size. Nearly always its first
// part tells.
func stillbornFile(f io.ReaderAt, size int64, b box) bool {
	first := make([]byte, min(size, headerSize))
	if _, err := f.ReadAt(first, 0); err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	if !isStillborn(b, first) || int64(len(first)) == size {
		return isStillborn(b, first)
	}
	all, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	return err == nil && isStillborn(b, all)
}

// headerBegins is how the header of every log begins that this store wrote.
const headerBegins = `{"type":"session",`

// isStillborn reports whether data is all of a stillborn log.
func isStillborn(b box, data []byte) bool {
	if _, _, err := b.unwrap(data); err == nil {
		return false // zeros at its end are its own
	}
	part := bytes.TrimRight(data, "\x00")
	lines, _, err := b.unwrap(part)
	if len(part) > headerSize || len(part) > 0 && !errors.Is(err, errTorn) {
		return false
	}
	if b == (rawBox{}) {
		lines = part
	}
	n := min(len(lines), len(headerBegins))
	return string(lines[:n]) == headerBegins[:n] && bytes.Count(lines, []byte{'\n'}) <= 1
}

// missing is what is said of a stillborn log to who asks for it.
func missing(path string) error {
	return fmt.Errorf("%w: a crash left nothing in %s, before anything was durable; it makes room for a new one",
		session.ErrNotFound, path)
}
