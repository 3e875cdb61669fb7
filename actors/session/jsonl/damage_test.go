package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// framed is a log of several frames: the sample's lines, a few in each.
func framed(t testing.TB) []byte {
	a := sample(t, sampleA)
	n := len(cutLines(a, 1))
	out := zstdBox{}.wrap(nil, a[:n])
	for rest := a[n:]; len(rest) > 0; {
		n := len(cutLines(rest, min(7, bytes.Count(rest, []byte{'\n'}))))
		out = zstdBox{}.wrap(out, rest[:n])
		rest = rest[n:]
	}
	return out
}

// No flip of a byte in a compressed log gives other events than it had: it is
// an error or makes no difference.
func TestFlippedBytes(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 5
	}
	for name, data := range map[string][]byte{"by others": sample(t, sampleAZstd), "of several frames": framed(t)} {
		t.Run(name, func(t *testing.T) {
			_, scan, err := load("a", zstdBox{}, data)
			if err != nil {
				t.Fatal(err)
			}
			want := jsonOf(scan.out.all())
			refused := 0
			for i := 0; i < len(data); i += step {
				for _, flip := range []byte{0xff, 1, 0x80, 1 << (i % 8), byte(rand.IntN(255) + 1)} {
					flipped := bytes.Clone(data)
					flipped[i] ^= flip
					_, scan, err := load("a", zstdBox{}, flipped)
					if err != nil {
						refused++
						continue
					}
					if got := jsonOf(scan.out.all()); !slices.Equal(got, want) {
						t.Fatalf("byte %d of %d ^ %#x: %d events, %v", i, len(data), flip, len(got), scan.problem)
					}
				}
			}
			if refused == 0 {
				t.Error("no flip was found")
			}
		})
	}
}

// What the complete blocks of a torn frame hold is kept, line by line.
func TestTornFrame(t *testing.T) {
	a := sample(t, sampleA)
	header := cutLines(a, 1)
	events := turns(100, 4000)
	lines := appendLines(nil, events)
	head := zstdBox{}.wrap(nil, header)
	data := zstdBox{}.wrap(bytes.Clone(head), lines)
	f, err := walk(data[len(head):])
	if err != nil || len(f.blocks) < 3 {
		t.Fatalf("%d blocks, %v", len(f.blocks), err)
	}
	all := jsonOf(events)
	for _, cut := range []int{1, 4, 5, 100, f.n - f.ends[len(f.ends)-2], f.n - f.ends[0] - 1, f.n - f.ends[0], f.n - f.ends[0] + 1, f.n - 1} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			torn := data[:len(data)-cut]
			s, path := place(t, Zstd, torn)
			var told Repair
			s.opts.Repaired = func(r Repair) { told = r }
			whole := 0 // blocks
			for _, end := range f.ends {
				if end <= f.n-cut {
					whole++
				}
			}
			atLeast := bytes.Count(lines[:min(len(lines), whole*maxBlock)], []byte{'\n'})
			if told := resume(t, s, path); told == "" {
				t.Fatal("empty")
			}
			if told.Recovered < atLeast {
				t.Errorf("recovered %d events, %d lines were whole", told.Recovered, atLeast)
			}
			_, scan, err := load(path, s.box, fileOf(t, path))
			if err != nil || scan.problem != nil {
				t.Fatal(err, scan.problem)
			}
			got := jsonOf(scan.out.all())
			if n := told.Recovered; !slices.Equal(got[:n], all[:n]) {
				t.Error("recovered something else")
			}
		})
	}
}

// turns returns whole turns with a text of so many bytes each.
func turns(n, text int) []dsh.Event {
	var events []dsh.Event
	add := func(d dsh.Fact) {
		events = append(events, dsh.Event{Seq: dsh.Seq(len(events)), Time: int64(len(events)), Data: d})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for turn := range n {
		add(dsh.TurnStart{Turn: turn + 1})
		var b strings.Builder
		for b.Len() < text {
			fmt.Fprintf(&b, "%x", random.Uint64())
		}
		add(dsh.Opaque{Name: "todo/write", Raw: dsh.AppendString(nil, b.String())})
		add(dsh.TurnEnd{Turn: turn + 1, Reason: dsh.Ending{Kind: dsh.EndCompleted}})
	}
	return events
}

func TestFrameStructure(t *testing.T) {
	good := zstdBox{}.wrap(nil, []byte("hello\n"))
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"checksum":        {flip(good, len(good)-1, 1), "CRC"},
		"magic":           {flip(good, 0, 1), "no zstd frame"},
		"reserved bit":    {flip(good, 4, 1<<3), "reserved bits"},
		"unused bit":      {flip(good, 4, 1<<4), "reserved bits"},
		"no checksum":     {flip(good, 4, 1<<2), "without a checksum"},
		"reserved block":  {flip(good, 6, 3<<1), "reserved type"},
		"no line":         {zstdBox{}.wrap(nil, []byte("hello")), "does not end with a line"},
		"empty":           {zstdBox{}.wrap(nil, nil), ""},
		"foreign":         {[]byte("{}"), "no zstd frame"},
		"skippable frame": {[]byte("\x50\x2a\x4d\x18\x00\x00\x00\x00"), "no zstd frame"},
	} {
		_, _, err := zstdBox{}.unwrap(c.data)
		if len(c.data) > 0 && (err == nil || errors.Is(err, errTorn) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, zeros := range []int{1, 4, 5000} {
		if _, _, err := (zstdBox{}).unwrap(make([]byte, zeros)); !errors.Is(err, errTorn) {
			t.Errorf("%d zeros: %v", zeros, err)
		}
	}
	for n := range good {
		if _, _, err := (zstdBox{}).unwrap(good[:n]); !errors.Is(err, errTorn) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func flip(data []byte, i int, bits byte) []byte {
	data = bytes.Clone(data)
	data[i] ^= bits
	return data
}
