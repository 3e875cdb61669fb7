package jsonl

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The structure of zstd frames. Their borders are found by hand: what a crash
// left of the last one is to be cut off exactly, and its complete blocks are
// to be read although the frame is not whole.

const (
	frameMagic = "\x28\xb5\x2f\xfd"
	// Bits of the byte behind the magic number.
	singleSegment  = 1 << 5
	reservedBits   = 1<<4 | 1<<3
	hasChecksum    = 1 << 2
	checksumSize   = 4
	blockHeader    = 3
	maxBlock       = 128 << 10
	rleBlock       = 1
	reservedBlock  = 3
	smallestWindow = 10 // its binary logarithm
)

// frame is what the walk over one frame found.
type frame struct {
	// n is the length of the frame, 0 if it is torn.
	n int
	// blocks is the offset of each block's header, with that of the block
	// that the end of the file cuts off; ends is the end of each complete one.
	blocks, ends []int
	descriptor   byte
	window       byte
	content      uint64
}

// walk finds the end of the frame that data begins with, or where it is torn.
func walk(data []byte) (f frame, err error) {
	if m := min(len(data), len(frameMagic)); string(data[:m]) != frameMagic[:m] {
		return f, errors.New("no zstd frame")
	}
	at := len(frameMagic)
	if len(data) <= at {
		return f, errTorn
	}
	f.descriptor = data[at]
	at++
	switch {
	case f.descriptor&reservedBits != 0:
		return f, errors.New("zstd frame with reserved bits")
	case f.descriptor&hasChecksum == 0:
		return f, errors.New("zstd frame without a checksum")
	}
	single := f.descriptor&singleSegment != 0
	sizeBytes := []int{0, 2, 4, 8}[f.descriptor>>6]
	if single && sizeBytes == 0 {
		sizeBytes = 1
	}
	windowBytes := 1
	if single {
		windowBytes = 0
	}
	dictBytes := []int{0, 1, 2, 4}[f.descriptor&3]
	if len(data) < at+windowBytes+dictBytes+sizeBytes {
		return f, errTorn
	}
	if !single {
		f.window = data[at]
	}
	at += windowBytes + dictBytes
	f.content = contentSize(data[at : at+sizeBytes])
	return f, f.walkBlocks(data, at+sizeBytes)
}

func contentSize(field []byte) uint64 {
	var n [8]byte
	copy(n[:], field)
	size := binary.LittleEndian.Uint64(n[:])
	if len(field) == 2 {
		size += 256
	}
	return size
}

func (f *frame) walkBlocks(data []byte, at int) error {
	for last := false; !last; {
		f.blocks = append(f.blocks, at)
		if len(data) < at+blockHeader {
			return errTorn
		}
		header := int(data[at]) | int(data[at+1])<<8 | int(data[at+2])<<16
		last = header&1 != 0
		size, kind := header>>3, header>>1&3
		switch {
		case kind == reservedBlock:
			return errors.New("zstd block of a reserved type")
		case size > maxBlock:
			return fmt.Errorf("zstd block of %d bytes", size)
		case kind == rleBlock:
			size = 1
		}
		if len(data) < at+blockHeader+size {
			return errTorn
		}
		at += blockHeader + size
		f.ends = append(f.ends, at)
	}
	if len(data) < at+checksumSize {
		return errTorn
	}
	f.n = at + checksumSize
	return nil
}

// rebuilt returns a whole frame with the complete blocks of the torn frame f
// of data, or nil if it has none. A frame without checksum and content size is
// one that a decoder accepts.
func (f *frame) rebuilt(data []byte) []byte {
	if len(f.ends) == 0 {
		return nil
	}
	window := f.window
	if f.descriptor&singleSegment != 0 { // then the content is the window
		for log := smallestWindow; log < 41 && f.content > 1<<log; log++ {
			window += 1 << 3
		}
	}
	out := append([]byte(frameMagic), 0, window)
	for i, end := range f.ends {
		at := len(out)
		out = append(out, data[f.blocks[i]:end]...)
		out[at] &^= 1 // not the last block
	}
	return append(out, 1, 0, 0) // an empty one is
}

// mendable reports whether changing one byte of the structure of a torn frame
// makes it whole, checksum and all. Then it was not cut off by a crash: it is
// a whole frame that was damaged, and what follows it, too, is hidden.
func (f *frame) mendable(data []byte, whole func([]byte) bool) bool {
	trial := append([]byte(nil), data...)
	try := func(at int, walk func() (frame, error)) bool {
		for change := 1; change < 256 && at < len(trial); change++ {
			trial[at] = data[at] ^ byte(change)
			g, err := walk()
			if err != nil {
				continue
			}
			rest := trial[g.n:]
			if m := min(len(rest), len(frameMagic)); string(rest[:m]) == frameMagic[:m] && whole(trial[:g.n]) {
				return true
			}
		}
		if at < len(trial) {
			trial[at] = data[at]
		}
		return false
	}
	if try(len(frameMagic), func() (frame, error) { return walk(trial) }) {
		return true
	}
	for _, block := range f.blocks {
		for at := block; at < block+blockHeader; at++ {
			if try(at, func() (g frame, err error) { return g, g.walkBlocks(trial, block) }) {
				return true
			}
		}
	}
	return false
}
