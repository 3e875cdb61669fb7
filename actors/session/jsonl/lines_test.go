package jsonl_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dsh-actor/dsh-actor/actors/session/jsonl"
	"github.com/dsh-actor/dsh-actor/actors/session/sessiontest"
	"github.com/dsh-actor/dsh-actor/dsh"
)

// Lines give back the events they were made of, and what is not such lines is
// an error.
func TestLines(t *testing.T) {
	want := sessiontest.Turn(1, 7)
	lines := jsonl.AppendLines([]byte("x"), want)
	if lines[0] != 'x' {
		t.Fatalf("not appended: %.20q", lines)
	}
	lines = lines[1:]
	got, err := jsonl.ParseLines(lines)
	if err != nil {
		t.Fatal(err)
	}
	if again := jsonl.AppendLines(nil, got); !bytes.Equal(again, lines) {
		t.Errorf("got\n%s\nwant\n%s", again, lines)
	}
	if got, err := jsonl.ParseLines(nil); err != nil || len(got) != 0 {
		t.Errorf("no lines are %d events (%v)", len(got), err)
	}
	for name, c := range map[string]struct {
		lines []byte
		want  error
	}{
		"torn":      {lines[:len(lines)-10], jsonl.ErrCorrupt},
		"no JSON":   {append(bytes.Clone(lines), "{\n"...), jsonl.ErrCorrupt},
		"an empty":  {append([]byte("\n"), lines...), jsonl.ErrCorrupt},
		"a header":  {[]byte(`{"version":0,"id":"a","createdAt":1}` + "\n"), jsonl.ErrCorrupt},
		"a foreign": {[]byte(`{"seq":0,"time":1,"type":"new/thing","data":{}}` + "\n"), dsh.ErrUnknownEvent},
	} {
		if got, err := jsonl.ParseLines(c.lines); !errors.Is(err, c.want) || got != nil {
			t.Errorf("%s: %d events, %v", name, len(got), err)
		}
	}
}
