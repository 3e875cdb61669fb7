package demo

import (
	"fmt"
	"slices"
	"strings"
)

// A kind is what a wish wants.
type kind int

const (
	list kind = iota
	read
	search
	todo
	run
	write
	delegate
	survey // list, then read what is telling
)

// A wish is one thing that a prompt asks for. Keys are unique within an
// exchange and stay when more is asked for.
type wish struct {
	key     string
	kind    kind
	path    string
	glob    string
	pattern string
	command string
	// content is what to write; computed says that it is what the other
	// wishes found instead.
	content  string
	computed bool
	// helpers is how many sub-agents to delegate to, task what one of them
	// is asked for.
	helpers int
	task    string
	// summary asks for more than the beginning of a file.
	summary bool
}

// understand returns what the exchange asks for.
func understand(t *talk) []wish {
	var wishes []wish
	for i, prompt := range t.prompts {
		p := &parser{words: split(prompt), before: t.before.calls}
		found := p.parse()
		if len(found) == 0 && p.resume && len(t.before.prompts) > 0 {
			old := *t
			old.prompts, old.before.prompts = t.before.prompts, nil
			found = understand(&old)
		}
		for _, w := range found {
			w.key = fmt.Sprintf("w%d", len(wishes))
			if i > 0 && slices.ContainsFunc(wishes, w.same) {
				continue
			}
			wishes = append(wishes, w)
		}
	}
	return wishes
}

func (w wish) same(v wish) bool {
	w.key, v.key = "", ""
	return w == v
}

// parser finds wishes in the words of one prompt.
type parser struct {
	words  []word
	before []call // of earlier exchanges, for "it"
	wishes []wish
	resume bool // the prompt asks for the last one once more
	last   word // before the one at hand
}

func (p *parser) parse() []wish {
	for len(p.words) > 0 {
		before := p.last
		w := p.next()
		p.last = w
		switch {
		case w.is("helper", "helpers", "subagent", "subagents", "sub-agent", "sub-agents", "children"):
			p.add(wish{kind: delegate, helpers: before.number()})
		case w.is("run", "execute"):
			p.run()
		case w.is("list", "ls", "dir"):
			p.list()
		case w.is("read", "open", "cat", "view", "show", "print", "display", "count"):
			p.read(false)
		case w.is("summarise", "summarize", "summary", "explain", "describe", "review", "overview"):
			p.read(true)
		case w.is("search", "grep", "find"):
			p.search()
		case w.is("look") && p.peek().is("for"):
			p.search()
		case w.is("write", "save", "create", "put", "store"):
			p.write()
		case w.is("todo", "todos", "todo-list", "plan"):
			p.add(wish{kind: todo})
		case w.is("files", "directory", "folder"):
			if !p.has(list) && !p.has(survey) {
				p.add(wish{kind: list})
			}
		case w.is("again", "continue", "resume") || w.is("go") && p.peek().is("on", "ahead"):
			p.resume = true
		case w.isPath():
			p.add(wish{kind: read, path: w.text, summary: true})
		}
	}
	return p.wishes
}

func (p *parser) next() word {
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

// peek returns the next word, the zero word at the end.
func (p *parser) peek() word {
	if len(p.words) == 0 {
		return word{}
	}
	return p.words[0]
}

// skip passes over words that say nothing here.
func (p *parser) skip(names ...string) {
	for p.peek().is(names...) {
		p.next()
	}
}

func (p *parser) has(k kind) bool {
	return slices.ContainsFunc(p.wishes, func(w wish) bool { return w.kind == k })
}

// add adds a wish unless it was made before.
func (p *parser) add(w wish) {
	if !slices.ContainsFunc(p.wishes, w.same) {
		p.wishes = append(p.wishes, w)
	}
}

// run takes a command in quotes: what is not quoted is a sentence.
func (p *parser) run() {
	p.skip("the", "this", "command", "commands", "shell", "following")
	for p.peek().quoted {
		w := p.next()
		p.add(wish{kind: run, command: w.text})
		if !w.ends {
			p.skip("and", "then")
		}
	}
}

// place reports whether the next word names a place although it does not look
// like one, as in "in docs".
func (p *parser) place(before word) bool {
	return before.is("in", "under", "below", "inside", "within") && !before.ends && p.peek().text != "" &&
		!p.peek().is("the", "all", "every", "my", "our", "this", "that", "here", "current", "it", "files", "go", "directory", "folder")
}

func (p *parser) list() {
	l := wish{kind: list}
	var before word
	for len(p.words) > 0 {
		w := p.peek()
		switch {
		case p.place(before) && !w.isGlob():
			l.path = w.text
		case w.is("the", "all", "my", "our", "every", "of", "in", "under", "below", "inside", "at", "me",
			"files", "file", "directory", "directories", "folder", "content", "contents", "entries", "here", "this", "current", "what", "is"):
		case w.isGlob():
			l.glob = w.text
		case w.is("go", "python", "markdown", "text", "json", "yaml") && !p.has(list):
			l.glob = map[string]string{
				"go": "*.go", "python": "*.py", "markdown": "*.md", "text": "*.txt", "json": "*.json", "yaml": "*.yaml",
			}[w.lower]
		case w.isPath():
			l.path = w.text
		default:
			p.add(l)
			return
		}
		before = p.next()
		if w.ends {
			break
		}
	}
	p.add(l)
}

// read takes the files that follow, or the one that "it" stands for.
func (p *parser) read(summary bool) {
	found := false
	for len(p.words) > 0 {
		w := p.peek()
		switch {
		case w.isPath():
			p.add(wish{kind: read, path: w.text, summary: summary})
			found = true
		case w.is("it", "that", "again"):
			if file := lastFile(p.before); file != "" && !found {
				p.add(wish{kind: read, path: file, summary: summary})
				found = true
			}
		case w.is("first", "second", "third", "last"):
			if file := nthFile(p.before, w.lower); file != "" && !found {
				p.add(wish{kind: read, path: file, summary: summary})
				found = true
			}
		case w.is("project", "repository", "repo", "codebase", "code", "package", "workspace") && !found:
			p.add(wish{kind: survey})
			found = true
		case w.is("files", "directory", "folder") && !found:
			p.next()
			p.list()
			return
		case w.is("the", "file", "a", "an", "of", "in", "me", "and", "lines", "line", "words", "content", "contents",
			"this", "what", "how", "many", "one", "please", "is", "to", "from", "at", "short", "whole", "are", "there", "code"):
		default:
			return
		}
		// A new part of a sentence may be another file.
		if p.next(); w.ends && !p.peek().isPath() && !p.peek().is("and") {
			return
		}
	}
}

func (p *parser) search() {
	p.skip("for", "the", "word", "text", "pattern", "regex", "expression", "string", "all", "every", "any",
		"occurrence", "occurrences", "uses", "of", "me", "where", "out", "lines", "with")
	if p.peek().is("files", "file") {
		p.list()
		return
	}
	if len(p.words) == 0 {
		return
	}
	first := p.next()
	s := wish{kind: search, pattern: first.text}
	var before word
	for !first.ends && len(p.words) > 0 {
		w := p.peek()
		switch {
		case p.place(before) && !w.isGlob():
			s.path = w.text
		case w.isGlob():
			s.glob = w.text
		case w.is("go") && s.glob == "":
			s.glob = "*.go"
		case w.isPath():
			s.path = w.text
		case w.is("in", "under", "inside", "within", "through", "the", "all", "every", "files", "file", "directory", "folder"):
		default:
			p.add(s)
			return
		}
		before = p.next()
		if w.ends {
			break
		}
	}
	p.add(s)
}

// found are words for what the other wishes bring.
var found = []string{
	"it", "this", "that", "them", "summary", "result", "results", "list", "listing", "output", "findings",
	"answer", "report", "overview", "notes", "everything",
}

// write takes a text and a file in either order. Without a file there is
// nothing to write to, and no wish.
func (p *parser) write() {
	w := wish{kind: write}
	var text, sources []string
	behind := false // the words behind "with" are the text
	named := false  // the last word said that a file follows
	for len(p.words) > 0 {
		next := p.peek()
		switch {
		case behind:
			text = append(text, next.text)
		case next.quoted && !next.isPath(), next.quoted && !named:
			text = append(text, next.text)
		case next.isPath() && (named || w.path == "" && !slices.Contains(text, "of")):
			w.path = next.text
		case next.isPath():
			sources = append(sources, next.text)
		case next.is("with", "containing", "saying", "says") && w.path != "":
			behind = true
		case next.is("to", "into", "in", "file", "named", "called", "as"):
			named = true
			p.next()
			continue
		case next.is("then", "and") && w.path != "":
			p.finish(w, text, sources)
			return
		default:
			text = append(text, next.text)
		}
		named = false
		if p.next(); (next.final || next.ends && !behind) && w.path != "" && !p.peek().is("with", "containing", "saying") {
			break
		}
	}
	p.finish(w, text, sources)
}

func (p *parser) finish(w wish, text, sources []string) {
	if w.path == "" {
		return
	}
	for _, s := range sources {
		p.add(wish{kind: read, path: s, summary: true})
	}
	words := slices.DeleteFunc(slices.Clone(text), func(s string) bool {
		return slices.Contains([]string{"a", "an", "the", "new", "your", "my", "content", "text", "short", "of", "all", "that"}, strings.ToLower(s))
	})
	switch {
	case len(words) == 0 && len(text) == 0, len(words) > 0 && slices.Contains(found, strings.ToLower(words[0])), len(sources) > 0:
		w.computed = true
	case len(words) == 0:
		w.computed = true
	default:
		w.content = strings.Join(trimmed(text), " ")
	}
	p.add(w)
}

// trimmed drops what leads to a text rather than being part of it.
func trimmed(text []string) []string {
	for len(text) > 1 && slices.Contains([]string{"the", "text", "words", "content", "a", "file", "that"}, strings.ToLower(text[0])) {
		text = text[1:]
	}
	return text
}
