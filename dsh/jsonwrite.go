package dsh

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
)

// AppendString appends s as a JSON string in the form that the session log
// uses: only what JSON demands is escaped, and bytes that are not UTF-8 become
// U+FFFD.
func AppendString[S ~string](dst []byte, s S) []byte {
	dst = append(dst, '"')
	start := 0 // of what is not copied yet
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(string(s[i:]))
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += size
		case c < ' ' || c == '"' || c == '\\':
			dst = appendEscape(append(dst, s[start:i]...), c)
			i++
			start = i
		default:
			i++
		}
	}
	return append(append(dst, s[start:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// The functions below append what precedes a value, such as `,"index":`, and
// the value. Those named opt append nothing for a zero value.

func appendText[S ~string](dst []byte, key string, s S) []byte {
	return AppendString(append(dst, key...), s)
}

func optText[S ~string](dst []byte, key string, s S) []byte {
	if s == "" {
		return dst
	}
	return appendText(dst, key, s)
}

func appendInt[N ~int | ~int64](dst []byte, key string, n N) []byte {
	return strconv.AppendInt(append(dst, key...), int64(n), 10)
}

func optInt[N ~int | ~int64](dst []byte, key string, n N) []byte {
	if n == 0 {
		return dst
	}
	return appendInt(dst, key, n)
}

func optIntPtr[N ~int | ~int64](dst []byte, key string, n *N) []byte {
	if n == nil {
		return dst
	}
	return appendInt(dst, key, *n)
}

// optFloat writes the shortest form that JavaScript would, too. NaN and the
// infinities, which JSON cannot hold, are left out.
func optFloat(dst []byte, key string, f *float64) []byte {
	if f == nil || math.IsNaN(*f) || math.IsInf(*f, 0) {
		return dst
	}
	dst = append(dst, key...)
	if *f == 0 {
		return append(dst, '0') // not -0
	}
	if abs := math.Abs(*f); abs < 1e-6 || abs >= 1e21 {
		dst = strconv.AppendFloat(dst, *f, 'e', -1, 64)
		if n := len(dst); dst[n-2] == '0' && dst[n-3] == '-' { // e-07 is e-7
			dst = append(dst[:n-2], dst[n-1])
		}
		return dst
	}
	return strconv.AppendFloat(dst, *f, 'f', -1, 64)
}

func optRaw(dst []byte, key string, raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return dst
	}
	return appendRaw(append(dst, key...), raw)
}

// appendRaw appends raw as it is where a log line can hold it. What cannot be
// there is changed: line breaks go, bytes that are not UTF-8 become U+FFFD, -0
// becomes 0, a number without a finite value null, and what is no JSON at all
// a string. Whatever raw holds, the line stays readable.
func appendRaw(dst []byte, raw json.RawMessage) []byte {
	if !json.Valid(raw) {
		return AppendString(dst, string(raw))
	}
	if bytes.ContainsAny(raw, "\n\r") {
		var line bytes.Buffer
		if json.Compact(&line, raw) == nil {
			raw = line.Bytes()
		}
	}
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	for from := 0; ; {
		at, end := nextLossy(raw, from)
		if at < 0 {
			return append(dst, raw[from:]...)
		}
		dst = append(dst, raw[from:at]...)
		if errors.Is(lossy(raw[at:end]), errNotFinite) {
			dst = append(dst, "null"...)
		} else {
			dst = append(dst, '0')
		}
		from = end
	}
}
