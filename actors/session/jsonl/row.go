package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// members is a JSON object, its values unread. As in JavaScript the last of
// two members with one name counts, and names are matched exactly.
type members map[string]json.RawMessage

// only reports whether the object has the required members and no others but
// the optional ones.
func (m members) only(required []string, optional ...string) error {
	n := len(required)
	for _, name := range required {
		if _, ok := m[name]; !ok {
			return fmt.Errorf("%s: missing", name)
		}
	}
	for _, name := range optional {
		if _, ok := m[name]; ok {
			n++
		}
	}
	if len(m) != n {
		return errors.New("unknown member")
	}
	return nil
}

// integer reads a safe integer: |n| at most 2^53-1, and not -0.
func integer(raw json.RawMessage) (int64, error) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafe || raw[0] == '"' {
			return 0, fmt.Errorf("%.40s is no integer", raw)
		}
		n = int64(f)
	}
	if n < -maxSafe || n > maxSafe || n == 0 && raw[0] == '-' {
		return 0, fmt.Errorf("%.40s is no safe integer", raw)
	}
	return n, nil
}

// text reads a string.
func text(raw json.RawMessage) (s string, err error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", fmt.Errorf("%.40s is no string", raw)
	}
	return s, json.Unmarshal(raw, &s)
}

// array reads the elements of an array.
func array[T any](raw json.RawMessage, read func(json.RawMessage) (T, error)) ([]T, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil || len(raw) == 0 || raw[0] != '[' {
		return nil, errors.New("no array")
	}
	list := make([]T, len(elements))
	for i, e := range elements {
		x, err := read(e)
		if err != nil {
			return nil, err
		}
		list[i] = x
	}
	return list, nil
}

// row is a chunk row.
type row struct {
	sharedPart
	first dsh.Seq
	times []int64
	texts []string
}

// isRow reports whether a line looks like a row as writers begin one.
func isRow(line []byte) bool {
	const begin = `{"type":"`
	if !bytes.HasPrefix(line, []byte(begin)) {
		return false
	}
	rest := line[len(begin):]
	return bytes.HasPrefix(rest, []byte(textRow+`"`)) || bytes.HasPrefix(rest, []byte(reasoningRow+`"`)) ||
		bytes.HasPrefix(rest, []byte(toolCallRow+`"`))
}

// decodeRow reads a chunk row; ok is false if the line is something else. A
// row is right as a whole or not at all.
func decodeRow(line []byte) (r row, ok bool, err error) {
	var m, data members
	if json.Unmarshal(line, &m) != nil {
		return r, false, nil
	}
	r.kind, err = text(m["type"])
	if err != nil || r.kind != textRow && r.kind != reasoningRow && r.kind != toolCallRow {
		return r, false, nil
	}
	if err = m.only([]string{"type", "seq0", "time0", "data"}); err == nil {
		if err = json.Unmarshal(m["data"], &data); err == nil {
			err = r.read(m, data)
		}
	}
	if err != nil {
		err = fmt.Errorf("malformed %s row: %w", r.kind, err)
	}
	return r, true, err
}

func (r *row) read(m, data members) (err error) {
	texts := "texts"
	if r.kind == toolCallRow {
		texts = "args"
		err = data.only([]string{"turn", "step", "index", "dt", "id", "args"}, "name")
	} else {
		err = data.only([]string{"turn", "step", "index", "dt", "texts"})
	}
	if err != nil {
		return err
	}
	var seq0, time0 int64
	for _, number := range []struct {
		raw  json.RawMessage
		into func(int64)
	}{
		{m["seq0"], func(n int64) { seq0 = n }},
		{m["time0"], func(n int64) { time0 = n }},
		{data["turn"], func(n int64) { r.turn = int(n) }},
		{data["step"], func(n int64) { r.step = int(n) }},
		{data["index"], func(n int64) { r.index = int(n) }},
	} {
		n, err := integer(number.raw)
		if err != nil {
			return err
		}
		number.into(n)
	}
	if r.kind == toolCallRow {
		if err := r.readCall(data); err != nil {
			return err
		}
	}
	if r.texts, err = array(data[texts], text); err != nil {
		return fmt.Errorf("%s: %w", texts, err)
	}
	gaps, err := array(data["dt"], integer)
	if err != nil {
		return fmt.Errorf("dt: %w", err)
	}
	r.first = dsh.Seq(seq0)
	switch {
	case len(r.texts) == 0:
		return errors.New("empty")
	case len(gaps) != len(r.texts)-1:
		return fmt.Errorf("%d time gaps between %d members", len(gaps), len(r.texts))
	case seq0 < 0 || seq0+int64(len(r.texts))-1 > maxSafe:
		return errors.New("sequence numbers out of range")
	}
	return r.clock(time0, gaps)
}

func (r *row) readCall(data members) error {
	id, err := text(data["id"])
	if err != nil {
		return fmt.Errorf("id: %w", err)
	}
	r.id = dsh.CallID(id)
	if raw, ok := data["name"]; ok {
		r.named = true
		if r.name, err = text(raw); err != nil {
			return fmt.Errorf("name: %w", err)
		}
	}
	return nil
}

// clock adds the gaps up.
func (r *row) clock(time int64, gaps []int64) error {
	r.times = append(make([]int64, 0, len(gaps)+1), time)
	for _, gap := range gaps {
		if time += gap; time < -maxSafe || time > maxSafe {
			return errors.New("times out of range")
		}
		r.times = append(r.times, time)
	}
	return nil
}
