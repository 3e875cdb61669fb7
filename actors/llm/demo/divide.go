package demo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// most is how many helpers the demo asks at most.
const most = 20

// chores are for helpers that the prompt has no work for.
var chores = []string{"list the files", "summarise README.md", "search for TODO"}

// divide gives the wishes to helpers if the prompt asks for some and the agent
// has a tool for it.
func (s *scene) divide() {
	i := slices.IndexFunc(s.wishes, func(w wish) bool { return w.kind == delegate })
	if i < 0 {
		return
	}
	helpers := min(max(s.wishes[i].helpers, 1), most)
	s.wishes = slices.Delete(s.wishes, i, i+1)
	if _, able := s.tools.find(delegate); !able {
		return
	}
	tasks := make([][]string, helpers)
	for n, w := range s.wishes {
		tasks[n%helpers] = append(tasks[n%helpers], w.String())
	}
	s.wishes = nil
	for n, list := range tasks {
		if len(list) == 0 {
			list = []string{chores[n%len(chores)]}
		}
		s.wishes = append(s.wishes, wish{key: fmt.Sprintf("h%d", n), kind: delegate, task: strings.Join(list, " and ")})
	}
}

var numbers = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}

// number returns the number that a word says, 1 if it says none.
func (w word) number() int {
	for n, name := range numbers {
		if w.is(name) {
			return n
		}
	}
	if n, err := strconv.Atoi(w.text); err == nil && n > 0 {
		return n
	}
	return 1
}
