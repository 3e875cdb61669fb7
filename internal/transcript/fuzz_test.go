package transcript_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
	"github.com/dsh-actor/dsh-actor/internal/transcript"
)

// escape matches what a Printer itself writes to a terminal.
var escape = regexp.MustCompile("\x1b\\[(0|1|2|31|32|33)m")

// checkSafe looks for what a terminal must not see.
func checkSafe(t *testing.T, text string) {
	t.Helper()
	for i, r := range text {
		if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 {
			t.Fatalf("control character %U at byte %d of %q", r, i, text)
		}
	}
}

// Whatever can be decoded can be told, in any order, and safely.
func FuzzTranscript(f *testing.F) {
	for _, name := range []string{"turn.jsonl", "closers.jsonl"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "dsh", "testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, int64(0), 0, uint8(0))
		lines := bytes.SplitAfter(data, []byte{'\n'})
		for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
			lines[i], lines[j] = lines[j], lines[i]
		}
		f.Add(bytes.Join(lines, nil), int64(3), 40, uint8(3))
	}
	_, events := story()
	var data []byte
	for ev := range dsh.Expand(events) {
		data = append(ev.AppendJSON(data), '\n')
	}
	f.Add(data, int64(4), 60, uint8(1))
	f.Add([]byte(`{"type":"tool/result","seq":0,"time":-1,"data":{"turn":-1,"step":0,"message":{"content":[],"source":{"kind":"tool","callId":""},"role":"user"}}}`), int64(0), 1, uint8(2))
	f.Add([]byte(`{"type":"user/message","seq":0,"time":0,"data":{"content":[{"type":"text","text":"\u001b]0;\u0007\r\n\u009b\u2028"},{"type":"tool-result","toolCallId":"","content":[{"type":"image"}]}],"source":{"kind":"\u0000"},"role":"user"},"surfaceOp":"append"}`), int64(0), 7, uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, seed int64, width int, flags uint8) {
		h := dsh.SessionHeader{ID: "\x1b[1m", CWD: "/a\nb", SeedLength: dsh.Seq(seed), Origin: "\x07"}
		opts := transcript.Options{
			Width: width % 500, Colour: flags&1 != 0, Full: flags&2 != 0, Turn: int(flags >> 4), From: dsh.Seq(flags >> 3 & 1),
		}
		var out strings.Builder
		p := transcript.NewPrinter(&out, &h, opts)
		s := transcript.NewSummary(&h)
		if err := p.Session(&h); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			var ev dsh.Event
			if ev.UnmarshalJSON(line) != nil {
				continue
			}
			s.Add(&ev)
			if err := p.Event(&ev); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.End(); err != nil {
			t.Fatal(err)
		}
		_, _ = s.Usage()
		_ = s.Outcome().String()
		if s.Pending() < 0 || strings.Contains(s.Title, "\n") {
			t.Errorf("summary %+v", s)
		}
		text := out.String()
		if opts.Colour {
			text = escape.ReplaceAllString(text, "")
		}
		checkSafe(t, text)
	})
}
