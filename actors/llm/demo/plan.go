package demo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// What the demo says of itself.
const (
	// Introduction opens the first answer of every session.
	Introduction = "This is the scripted demo of dsh-actor, without a language model: it looks for words in your prompt and calls real tools. " +
		"For a real model set DEEPSEEK_API_KEY or OPENAI_API_KEY."
	abilities = "Ask me to list files, read or summarise a file, search for a word, run `a command`, " +
		"write a text or a summary to a file, or plan; several of these in one prompt are fine."
)

const idPrefix = "demo-"

// A scene is what an answer is made from.
type scene struct {
	talk     *talk
	tools    outfit
	pos      dsh.Pos
	wishes   []wish
	fallback bool // no wish was understood
}

// reply returns the answer to a request.
func reply(req *dsh.Request) answer {
	s := &scene{talk: listen(req.Messages), tools: req.Header.Tools, pos: req.Pos}
	s.wishes = understand(s.talk)
	s.divide()
	if len(s.wishes) == 0 {
		s.fallback = true
		s.wishes = []wish{{key: "w0", kind: list}}
	}
	s.expand()
	text, calls := s.step()
	if len(calls) == 0 {
		text = s.conclude()
	}
	if !s.talk.spoken {
		text = strings.TrimSpace(Introduction + "\n\n" + text)
	}
	return answer{text: text, calls: calls}
}

// expand adds what follows from results: the telling files of a survey, and
// the end of a plan.
func (s *scene) expand() {
	var more []wish
	for _, w := range s.wishes {
		if w.kind != survey {
			continue
		}
		if c, ok := s.talk.done(w.key); ok && c.answered && !c.failed {
			for i, file := range telling(c.result) {
				more = append(more, wish{key: fmt.Sprintf("%sr%d", w.key, i), kind: read, path: file, summary: true})
			}
		}
	}
	s.wishes = append(s.wishes, more...)
}

// order is when kinds of wishes have their turn: what only reads comes first,
// at once, then what may depend on it.
var order = map[kind]int{todo: 0, list: 1, read: 1, search: 1, survey: 1, run: 2, write: 3, delegate: 1}

// step returns the calls of this step: those of the first order of which
// something is still to be done. None means that all is done.
func (s *scene) step() (text string, calls []dsh.ToolCall) {
	for stage := range 4 {
		var doing []string
		for _, w := range s.wishes {
			if order[w.kind] != stage {
				continue
			}
			if _, done := s.talk.done(w.key); done {
				continue
			}
			if c, ok := s.call(w); ok {
				calls = append(calls, c)
				doing = append(doing, w.String())
			}
		}
		if len(calls) > 0 {
			return s.announce(doing), calls
		}
	}
	if c, ok := s.closePlan(); ok {
		return "All of the plan was tried; I will tick it off.", []dsh.ToolCall{c}
	}
	return "", nil
}

func (s *scene) announce(doing []string) string {
	if s.fallback {
		return "I found no wish in the prompt that I know, so I will " + sentence(doing) + "."
	}
	if len(s.talk.calls) == 0 {
		return "I will " + sentence(doing) + "."
	}
	return "Next I will " + sentence(doing) + "."
}

// call returns the tool call for a wish; ok is false if no tool fulfils it.
func (s *scene) call(w wish) (c dsh.ToolCall, ok bool) {
	in, ok := s.tools.find(w.kind)
	if !ok {
		return c, false
	}
	args := in.arguments()
	switch w.kind {
	case list, survey:
		args.set(in.path, w.path)
		args.set(in.glob, w.glob)
	case read:
		args.set(in.path, w.path)
	case search:
		args.set(in.pattern, expression(w.pattern))
		args.set(in.path, w.path)
		args.set(in.glob, w.glob)
	case run:
		args.set(in.text, w.command)
	case write:
		content := w.content
		if w.computed {
			content = s.findings()
		}
		args.set(in.path, w.path)
		args.set(in.text, content+"\n")
	case todo:
		args.set(in.text, s.items(false))
	case delegate:
		args.set(in.pattern, w.task)
		args.set(in.text, "Please "+w.task+".")
	}
	raw, ok := args.json()
	return dsh.ToolCall{ID: s.id(w.key), Name: in.name, Arguments: raw}, ok
}

func (s *scene) id(key string) dsh.CallID {
	return dsh.CallID(fmt.Sprintf("%s%d-%d-%s", idPrefix, s.pos.Turn, s.pos.Step, key))
}

// expression returns a pattern as a regular expression.
func expression(pattern string) string {
	if _, err := regexp.Compile(pattern); err != nil {
		return regexp.QuoteMeta(pattern)
	}
	return pattern
}

// item is one line of a plan.
type item struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

// items returns the plan: the other wishes, or what any task consists of.
func (s *scene) items(after bool) []item {
	var items []item
	for _, w := range s.wishes {
		if w.kind == todo || strings.Contains(w.key, "r") {
			continue
		}
		status := "pending"
		if c, done := s.talk.done(w.key); after && done && !c.failed {
			status = "completed"
		}
		items = append(items, item{w.String(), status})
	}
	if len(items) == 0 {
		task := oneLine(s.talk.prompts[len(s.talk.prompts)-1], 60)
		items = []item{{"understand the task: " + task, "pending"}, {"do it", "pending"}, {"check the result", "pending"}}
	}
	if !after {
		items[0].Status = "in_progress"
	}
	return items
}

// closePlan returns the call that ends a plan which had other wishes.
func (s *scene) closePlan() (c dsh.ToolCall, ok bool) {
	i := slices.IndexFunc(s.wishes, func(w wish) bool { return w.kind == todo })
	if i < 0 || len(s.wishes) == 1 {
		return c, false
	}
	key := s.wishes[i].key
	_, begun := s.talk.done(key)
	_, ended := s.talk.done(key + "z")
	in, has := s.tools.find(todo)
	if !begun || ended || !has {
		return c, false
	}
	args := in.arguments()
	args.set(in.text, s.items(true))
	raw, ok := args.json()
	return dsh.ToolCall{ID: s.id(key + "z"), Name: in.name, Arguments: raw}, ok
}

// String says what the wish is, as in "I will …".
func (w wish) String() string {
	where := ""
	if w.path != "" && w.path != "." {
		where = " in " + w.path
	}
	switch w.kind {
	case list:
		if w.glob != "" {
			return "list the files like " + w.glob + where
		}
		return "list the files" + where
	case survey:
		return "look around in the working directory"
	case read:
		return "read " + w.path
	case search:
		return "search for " + w.pattern + where
	case run:
		return "run `" + w.command + "`"
	case write:
		return "write " + w.path
	case todo:
		return "write down a plan"
	case delegate:
		return "ask a helper to " + w.task
	}
	return "do nothing"
}

// sentence joins what is done.
func sentence(parts []string) string {
	switch n := len(parts); n {
	case 0:
		return "do nothing"
	case 1:
		return parts[0]
	default:
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
}
