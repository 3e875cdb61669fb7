package dsh

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What may be wrong with a member; the path to it stands in front.
var (
	errMissing       = errors.New("missing")
	errUnknownMember = errors.New("unknown member")
	errNegative      = errors.New("must not be negative")
	errNegativeZero  = errors.New("-0 does not survive a rewrite of the log")
	errNotFinite     = errors.New("a number without a finite value")
)

// pathError names the member that an error is about, from the outside in:
// "data.chunk.index: must be an integer".
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return e.path + ": " + e.err.Error() }
func (e *pathError) Unwrap() error { return e.err }

// within puts name in front of the path of err.
func within(name string, err error) error {
	if inner, ok := err.(*pathError); ok { //nolint:errorlint // Only the outermost one is extended.
		if !strings.HasPrefix(inner.path, "[") {
			name += "."
		}
		return &pathError{name + inner.path, inner.err}
	}
	return &pathError{name, err}
}

// A value is one JSON value that is known to be valid, without white space
// around it. It aliases what was read: what is kept must be copied.
type value []byte

// parse returns data as a value if it is valid JSON.
func parse(data []byte) (value, error) {
	if !json.Valid(data) {
		var raw json.RawMessage
		return nil, json.Unmarshal(data, &raw) // says where
	}
	return bytes.Trim(data, " \t\r\n"), nil
}

// unmarshal decodes data into *into, which an error leaves unchanged.
func unmarshal[T any](data []byte, what string, decode func(value) (T, error), into *T) error {
	x, err := decodeAs(data, what, decode)
	if err == nil {
		*into = x
	}
	return err
}

func decodeAs[T any](data []byte, what string, decode func(value) (T, error)) (x T, err error) {
	v, err := parse(data)
	if err == nil {
		x, err = decode(v)
	}
	if err != nil {
		var none T
		return none, fmt.Errorf("dsh: decode %s: %w", what, err)
	}
	return x, nil
}

// decodePtr is decode for where a pointer is kept.
func decodePtr[T any](v value, decode func(value) (T, error)) (*T, error) {
	x, err := decode(v)
	if err != nil {
		return nil, err
	}
	return &x, nil
}

// members calls f with the members of an object, in order, and then reports
// the first of the required ones that was not among them. Names are matched
// exactly; of members with the same name the last one counts.
func (v value) members(f func(name []byte, v value) error, required ...string) error {
	if v[0] != '{' {
		return errors.New("must be an object")
	}
	var seen uint32 // bit i: required[i] was there
	for i := skipSpace(v, 1); v[i] != '}'; {
		end := skipValue(v, i)
		name := unquote(v[i:end])
		i = skipSpace(v, end)
		i = skipSpace(v, i+1) // the colon
		end = skipValue(v, i)
		if err := f(name, v[i:end]); err != nil {
			return within(string(name), err)
		}
		for k, r := range required {
			if string(name) == r {
				seen |= 1 << k
			}
		}
		if i = skipSpace(v, end); v[i] == ',' {
			i = skipSpace(v, i+1)
		}
	}
	for k, r := range required {
		if seen&(1<<k) == 0 {
			return within(r, errMissing)
		}
	}
	return nil
}

// member returns the value of the last member of an object with this name, or
// nil.
func (v value) member(name string) (found value, err error) {
	err = v.members(func(n []byte, v value) error {
		if string(n) == name {
			found = v
		}
		return nil
	})
	return found, err
}

// tag returns the string that a union's discriminating member holds.
func (v value) tag(name string) (string, error) {
	t, err := v.member(name)
	if err != nil {
		return "", err
	}
	if t == nil {
		return "", within(name, errMissing)
	}
	s, err := t.text()
	if err != nil {
		return "", within(name, err)
	}
	return s, nil
}

// elements decodes the elements of an array; the slice is never nil.
func elements[T any](v value, decode func(value) (T, error)) ([]T, error) {
	if v[0] != '[' {
		return nil, errors.New("must be an array")
	}
	list := []T{}
	for i := skipSpace(v, 1); v[i] != ']'; {
		end := skipValue(v, i)
		x, err := decode(v[i:end])
		if err != nil {
			return nil, within("["+strconv.Itoa(len(list))+"]", err)
		}
		list = append(list, x)
		if i = skipSpace(v, end); v[i] == ',' {
			i = skipSpace(v, i+1)
		}
	}
	return list, nil
}

func (v value) text() (string, error) {
	if v[0] != '"' {
		return "", errors.New("must be a string")
	}
	return string(unquote(v)), nil
}

// textOf is text for the string types.
func textOf[S ~string](v value) (S, error) {
	s, err := v.text()
	return S(s), err
}

// unquote returns what a JSON string holds. It aliases v where it can.
func unquote(v value) []byte {
	inner := v[1 : len(v)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return inner
	}
	var s string
	if err := json.Unmarshal(v, &s); err != nil {
		panic(fmt.Sprintf("dsh: unquote %s: %v", v, err)) // v is valid JSON.
	}
	return []byte(s)
}

// maxSafe is the largest integer that survives in every JSON reader.
const maxSafe = 1<<53 - 1

// integer returns a safe integer: at most 2^53-1 either way and not -0. How it
// is written does not matter; 1e3 is one.
func (v value) integer() (int64, error) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafe {
			return 0, errors.New("must be an integer")
		}
		n = int64(f)
	}
	switch {
	case n > maxSafe || n < -maxSafe:
		return 0, errors.New("must be an integer that is safe in JavaScript")
	case n == 0 && v[0] == '-':
		return 0, errNegativeZero
	}
	return n, nil
}

// intOf is integer for the types that hold one.
func intOf[N ~int | ~int64](v value) (N, error) {
	n, err := v.integer()
	return N(n), err
}

// countOf is intOf for numbers that cannot be negative.
func countOf[N ~int | ~int64](v value) (N, error) {
	n, err := v.integer()
	if err == nil && n < 0 {
		err = errNegative
	}
	return N(n), err
}

// millis returns a duration in milliseconds. Other writers log fractions of
// one; they are rounded up.
func (v value) millis() (int64, error) {
	f, err := v.number()
	if err != nil {
		return 0, err
	}
	if f = math.Ceil(f); math.Abs(f) > maxSafe {
		return 0, errors.New("is too large")
	}
	return int64(f), nil
}

func (v value) number() (float64, error) {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return 0, errors.New("must be a number")
	}
	return f, nil
}

func (v value) boolean() (bool, error) {
	switch string(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("must be true or false")
}

// raw returns a copy of the value's text.
func (v value) raw() json.RawMessage { return json.RawMessage(bytes.Clone(v)) }

// lossless reports the first number that a JavaScript reader would not write
// back as it was: -0 or one beyond the finite.
func (v value) lossless() error {
	if at, end := nextLossy(v, 0); at >= 0 {
		return lossy(v[at:end])
	}
	return nil
}

// nextLossy returns where the first lossy number of valid JSON at or behind
// from stands; at is -1 if there is none.
func nextLossy(v []byte, from int) (at, end int) {
	for i := from; i < len(v); {
		switch c := v[i]; {
		case c == '"':
			i = skipString(v, i)
		case c == '-' || c >= '0' && c <= '9':
			end := skipScalar(v, i)
			if lossy(v[i:end]) != nil {
				return i, end
			}
			i = end
		default:
			i++
		}
	}
	return -1, -1
}

// lossy says what a number loses, or nil.
func lossy(number []byte) error {
	const finite = 300 // as many digits are finite without an exponent
	if number[0] != '-' && len(number) < finite && bytes.IndexByte(number, 'e') < 0 && bytes.IndexByte(number, 'E') < 0 {
		return nil
	}
	f, err := strconv.ParseFloat(string(number), 64)
	switch {
	case err != nil:
		return errNotFinite
	case f == 0 && number[0] == '-':
		return errNegativeZero
	}
	return nil
}

// The skip functions take the index of a token of valid JSON and return the
// index behind it.

func skipSpace(v []byte, i int) int {
	for i < len(v) && (v[i] == ' ' || v[i] == '\t' || v[i] == '\n' || v[i] == '\r') {
		i++
	}
	return i
}

func skipValue(v []byte, i int) int {
	switch v[i] {
	case '"':
		return skipString(v, i)
	case '{', '[':
		return skipNested(v, i)
	}
	return skipScalar(v, i)
}

func skipString(v []byte, i int) int {
	for i++; v[i] != '"'; i++ {
		if v[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func skipNested(v []byte, i int) int {
	for depth := 0; ; {
		switch v[i] {
		case '"':
			i = skipString(v, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if i++; depth == 0 {
			return i
		}
	}
}

func skipScalar(v []byte, i int) int {
	for i < len(v) {
		switch v[i] {
		case ',', ':', '}', ']', ' ', '\t', '\n', '\r':
			return i
		}
		i++
	}
	return i
}
