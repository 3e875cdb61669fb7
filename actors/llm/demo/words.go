package demo

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// A word is one of a prompt: without the punctuation around it, or, if it was
// quoted, with everything between the quotes.
type word struct {
	text   string
	lower  string
	quoted bool
	ends   bool // a sentence or a part of one ends behind it
	final  bool // a sentence ends behind it
}

var quotes = map[rune]rune{'`': '`', '"': '"', '“': '”', '\'': '\''}

// split splits a prompt into words.
func split(prompt string) []word {
	var words []word
	rest := []rune(prompt)
	for len(rest) > 0 {
		if unicode.IsSpace(rest[0]) {
			rest = rest[1:]
			continue
		}
		if end := quotes[rest[0]]; end != 0 {
			if n := slices.Index(rest[1:], end); n > 0 {
				text := string(rest[1 : n+1])
				rest = rest[n+2:]
				words = append(words, word{text: text, lower: strings.ToLower(text), quoted: true, ends: stops(rest)})
				continue
			}
		}
		n := slices.IndexFunc(rest, unicode.IsSpace)
		if n < 0 {
			n = len(rest)
		}
		raw := string(rest[:n])
		rest = rest[n:]
		text := strings.TrimLeft(strings.TrimRight(raw, ",.;:!?)]}'\"`"), "([{'\"`")
		if text == "" && strings.Trim(raw, ".") == "" {
			text = raw // the directory itself, or the one above
		}
		if text != "" {
			w := word{text: text, lower: strings.ToLower(text)}
			if text != raw {
				w.ends = strings.ContainsAny(raw[len(raw)-1:], ",.;:!?")
				w.final = strings.ContainsAny(raw[len(raw)-1:], ".!?")
			}
			words = append(words, w)
		}
	}
	return words
}

func stops(rest []rune) bool { return len(rest) > 0 && strings.ContainsRune(",.;:!?", rest[0]) }

// wellKnown are files without an extension.
var wellKnown = []string{"readme", "makefile", "dockerfile", "license", "changelog", "contributing", "authors", "todo"}

// isPath reports whether a word looks like a file or a directory. Commands and
// texts in quotes do not.
func (w word) isPath() bool {
	if strings.ContainsAny(w.text, " \n\t<>|$=(){}*?[]") || strings.Contains(w.text, "://") || w.is("e.g", "i.e") {
		return false
	}
	if w.text == "." || w.text == ".." || strings.Contains(w.text, "/") {
		return w.lower != "and/or" && w.text != "/"
	}
	if slices.Contains(wellKnown, w.lower) {
		return w.quoted || w.text == strings.ToUpper(w.text) || w.text[0] >= 'A' && w.text[0] <= 'Z'
	}
	ext := path.Ext(w.text)
	return len(ext) > 1 && len(ext) <= 6 && len(w.text) > 2 && !strings.ContainsFunc(ext[1:], notAlnum) && !allDigits(ext[1:])
}

// isGlob reports whether a word is a file pattern.
func (w word) isGlob() bool {
	return strings.ContainsAny(w.text, "*?[") && !strings.ContainsAny(w.text, " ()|\\^$") && strings.ContainsAny(w.text, "./*")
}

func notAlnum(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

func allDigits(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsDigit(r) })
}

// is reports whether the word is one of these, unquoted.
func (w word) is(names ...string) bool { return !w.quoted && slices.Contains(names, w.lower) }
