package conformance

import (
	"fmt"

	"github.com/dsh-actor/dsh-actor/replay"
)

// handWritten are scenarios that begin with a log which no loop would write.
var handWritten = map[string]string{
	"repair-literal-log":      "begins at turn 4, with an answer that cites nothing",
	"resume-literal-balanced": "begins at turn 7",
	"resume-bad-inbox":        "has a splice that does not fit",
}

// replayed replays every log, which must have no finding.
func (r *Recording) replayed(scenario string) (problems []error) {
	if handWritten[scenario] != "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.agents {
		h := a.Header
		if a.Origin == "fork" && !h.HasSeed {
			h.SeedLength = max(a.firstLive, 0)
		}
		for _, found := range replay.Run(h, a.events).Findings {
			problems = append(problems, fmt.Errorf("the log of %s does not replay: %v", a.Key, found))
		}
	}
	return problems
}
