package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// readEvents writes what a reader returns, one event per element and the error
// last.
func readEvents(r io.Reader) []string {
	var out []string
	sse := newSSEReader(r)
	for {
		ev, err := sse.next()
		switch {
		case err != nil:
			return append(out, err.Error())
		case ev.done:
			return append(out, "done")
		case ev.stray:
			out = append(out, "stray "+string(ev.data))
		default:
			out = append(out, strings.TrimLeft(ev.name+" ", " ")+string(ev.data))
		}
	}
}

func TestSSEReader(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
	}{
		{"events", "data: {}\n\ndata:{}\n\n", []string{"{}", "{}", "EOF"}},
		{"one leading space", "data:  {}\n\n", []string{" {}", "EOF"}},
		{"several lines", "data: {\ndata: \"a\":1\ndata: }\n\n", []string{"{\n\"a\":1\n}", "EOF"}},
		{"other fields", "id: 1\nretry: 9\nevent: e\ndata: {}\n\n", []string{"e {}", "EOF"}},
		{"an event's name ends with it", "event: e\n\ndata: {}\n\n", []string{"{}", "EOF"}},
		{"comments", ": a\n:\n\n:b\ndata: {}\n: c\n\n", []string{"{}", "EOF"}},
		{"line ends", "data: 1\r\n\r\ndata: 2\r\rdata: 3\n\r\n", []string{"1", "2", "3", "EOF"}},
		{"CR at the end", "data: {}\r", []string{"{}", "EOF"}},
		{"byte order mark", "\xef\xbb\xbfdata: {}\n\n", []string{"{}", "EOF"}},
		{"byte order mark alone in its line", "\xef\xbb\xbf", []string{"EOF"}},
		{"empty data", "data\n\ndata:\n\ndata: \n\n", []string{"EOF"}},
		{"done without an empty line", "data: {}\n\ndata: [DONE]\nmore", []string{"{}", "done"}},
		{"done without a line end", "data: {}\ndata: [DONE]", []string{"{}", "done"}},
		{"no empty lines", "data: {\"a\":1}\ndata: {\"a\":2}\n", []string{`{"a":1}`, `{"a":2}`, "EOF"}},
		{"no line end", "data: {}", []string{"{}", "EOF"}},
		{"half a line", "data: {\"a", []string{errMidEvent.Error()}},
		{"half an event", "data: {\n", []string{errMidEvent.Error()}},
		{"stray lines", "<html>\n{\"a\":1}\n hi", []string{"stray <html>", `stray {"a":1}`, "stray  hi", "EOF"}},
		{"nothing", "", []string{"EOF"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for kind, r := range map[string]io.Reader{
				"at once":  strings.NewReader(tt.in),
				"by byte":  iotest.OneByteReader(strings.NewReader(tt.in)),
				"with EOF": iotest.DataErrReader(strings.NewReader(tt.in)),
			} {
				if got := readEvents(r); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
					t.Errorf("%s: %q, want %q", kind, got, tt.want)
				}
			}
		})
	}
}

// The reader's own error ends the events, whatever was read before.
func TestSSEReaderError(t *testing.T) {
	broken := errors.New("broken")
	got := readEvents(io.MultiReader(strings.NewReader("data: 1\n\ndata: {}\n"), iotest.ErrReader(broken)))
	if fmt.Sprint(got) != "[1 broken]" {
		t.Errorf("%q", got)
	}
	got = readEvents(io.MultiReader(strings.NewReader("data: {}\n"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if fmt.Sprint(got) != "[{} unexpected EOF]" {
		t.Errorf("%q", got)
	}
}

func TestEventTooLong(t *testing.T) {
	line := "data: " + strings.Repeat("a", maxEvent/2)
	for name, in := range map[string]string{
		"line":  line + strings.Repeat("b", maxEvent),
		"event": line + "\n" + line + "\n" + line + "\n",
	} {
		if got := readEvents(strings.NewReader(in)); len(got) != 1 || got[0] != errEventTooLong.Error() {
			t.Errorf("%s: %d events, last %.50q", name, len(got), got[len(got)-1])
		}
	}
}

// bodyLines reads a whole body as go-openai does.
func bodyLines(in io.Reader) (string, error) {
	b := newEventBody(io.NopCloser(in), func() {})
	out, err := io.ReadAll(b)
	if err == nil && !bytes.HasSuffix(out, []byte("data: [DONE]\n")) {
		return string(out), io.ErrNoProgress
	}
	return string(out), err
}

// What reaches go-openai is lines of whole events, split anyhow, and the end
// of the input is only ever [DONE].
func FuzzSSEReader(f *testing.F) {
	f.Add("data: {}\n\ndata: [DONE]\n\n")
	f.Add("\xef\xbb\xbf: hi\r\nretry: 1\r\nevent: x\r\ndata: {\r\ndata: }\r\n\r\n")
	f.Add("{\"error\":{\"message\":\"m\"}}")
	f.Add("event: error\ndata: busy\n\n")
	f.Add("<html>\n</html>\n")
	f.Add("data: {\"error\":null}\rdata: {}\r\rdata: [DONE]")
	f.Add("{\"choices\":[{\"message\":{\"content\":\"a\"}}]}")
	f.Fuzz(func(t *testing.T, in string) {
		lines, err := bodyLines(strings.NewReader(in))
		if errors.Is(err, io.ErrNoProgress) {
			t.Fatal("the body ended without [DONE]")
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(lines, "\n"), "\n") {
			if line != "" && !strings.HasPrefix(line, "data: ") || strings.HasPrefix(line, `data: {"error":`) {
				t.Errorf("line %q", line)
			}
		}
		slow, slowErr := bodyLines(iotest.OneByteReader(strings.NewReader(in)))
		if slow != lines || fmt.Sprint(slowErr) != fmt.Sprint(err) {
			t.Errorf("by byte: %q, %v; at once: %q, %v", slow, slowErr, lines, err)
		}
	})
}

// Whatever the chunks are, folding them keeps the promises of a stream, and
// each call has an ID of its own.
func FuzzChunks(f *testing.F) {
	for _, c := range sample1 {
		f.Add(c, finished("stop"))
	}
	f.Add(callDelta(`{"id":"a","function":{"name":"x","arguments":{"a":1}}}`), callDelta(`{"id":"a","function":{"name":"y","arguments":"{}"}}`))
	f.Add(delta(`{"content":[{"type":"thinking","thinking":[{"text":"a"}]},"b"]}`), finished("length"))
	f.Add(`{"choices":[{"delta":7,"index":"0"}],"usage":{"prompt_tokens":-1e400}}`, `{"choices":{}}`)
	f.Add(delta(`{"content":"<think>a"}`), delta(`{"content":"</think>b","function_call":{"name":"x"}}`))
	f.Fuzz(func(t *testing.T, first, second string) {
		a := newAnswer(&Options{SplitThink: true}, request().Header)
		var chunks []dsh.Chunk
		for _, raw := range []string{first, second, finished("length")} {
			c, err := decodeChunk([]byte(raw))
			if err != nil {
				if json.Valid([]byte(raw)) && strings.HasPrefix(strings.TrimSpace(raw), "{") {
					t.Fatalf("%s: %v", raw, err)
				}
				continue
			}
			chunks = append(chunks, a.add(&c)...)
		}
		ends, err := a.end()
		if err != nil {
			t.Fatal(err)
		}
		checkShape(t, append(chunks, ends...))
		ids := map[dsh.CallID]bool{"": true}
		for _, s := range a.calls.slots {
			if ids[s.id] {
				t.Errorf("the ID %q is taken", s.id)
			}
			ids[s.id] = true
		}
	})
}
