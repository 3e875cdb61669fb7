package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxFrame bounds what a frame may hold, lest a damaged or hostile one takes
// all memory.
const maxFrame = 2 << 30

// encoder and decoder are shared by all logs of the process: they are large,
// and only a whole frame is ever made or read at once.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(fmt.Sprintf("jsonl: zstd: %v", err)) // the options are constants
		}
		return e
	})
	frameDecoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxFrame))
		if err != nil {
			panic(fmt.Sprintf("jsonl: zstd: %v", err))
		}
		return d
	})
)

// zstdBox is a zstd frame for each batch of lines, and one for the header.
type zstdBox struct{}

func (zstdBox) name() string { return zstdName }

func (zstdBox) wrap(dst, lines []byte) []byte { return encoder().EncodeAll(lines, dst) }

func (zstdBox) unwrap(data []byte) (lines []byte, n int, err error) {
	f, err := walk(data)
	if err == nil {
		if lines, err = frameDecoder().DecodeAll(data[:f.n], nil); err == nil {
			if len(lines) == 0 || lines[len(lines)-1] != '\n' {
				return nil, 0, errors.New("zstd frame that does not end with a line")
			}
			return lines, f.n, nil
		}
		err = fmt.Errorf("zstd frame: %w", err)
	}
	switch part := bytes.TrimRight(data, "\x00"); {
	case len(part) == 0:
		return nil, 0, errTorn
	case len(data)-len(part) >= zeroRun:
		if g, torn := walk(part); errors.Is(torn, errTorn) {
			data, f, err = part, g, torn
		}
	}
	if !errors.Is(err, errTorn) {
		return nil, 0, err
	}
	if f.mendable(data, whole) {
		return nil, 0, errors.New("zstd frame with damaged structure")
	}
	return recovered(&f, data), 0, errTorn
}

func (zstdBox) complete(data []byte) int {
	for at := 0; at < len(data); {
		f, err := walk(data[at:])
		switch {
		case errors.Is(err, errTorn):
			return at
		case err != nil:
			return len(data)
		}
		at += f.n
	}
	return len(data)
}

// zeroRun is how many zeros at the end of a file are not the end of a frame that
// was damaged elsewhere, but what some file systems show after a loss of power,
// where the length of a write was durable and its bytes were not.
const zeroRun = 32

func whole(frame []byte) bool {
	_, err := frameDecoder().DecodeAll(frame, nil)
	return err == nil
}

// recovered returns the complete lines that the complete blocks of a torn
// frame hold.
func recovered(f *frame, data []byte) []byte {
	frame := f.rebuilt(data)
	if frame == nil {
		return nil
	}
	lines, err := frameDecoder().DecodeAll(frame, nil)
	if err != nil {
		return nil // what cannot be read was not whole either
	}
	return lines[:bytes.LastIndexByte(lines, '\n')+1]
}
