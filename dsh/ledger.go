package dsh

import "slices"

// A RouteUsage is what the requests to one model add up to.
type RouteUsage struct {
	Provider, Model string
	// Requests counts attempts, of which Failed made no answer.
	Requests, Failed int
	// Usage sums what was told of them. An attempt that failed costs, too; one
	// whose count never came adds nothing.
	Usage Usage
}

// A Ledger folds a session's events into what its requests used, by route:
// models have prices of their own. The zero value has seen none.
type Ledger struct {
	routes  []RouteUsage
	at      RouteUsage // names the route of the next request
	counted *Usage     // of the attempt
	open    bool       // the attempt has said something and has not ended
}

// Apply folds ev; events that say nothing of requests change nothing.
func (l *Ledger) Apply(ev *Event) {
	switch d := ev.Data.(type) {
	case RequestHeader:
		l.at.Provider, l.at.Model = d.Header.Config.Provider, d.Header.Config.Model
	case AssistantChunk:
		l.chunk(d.Chunk)
	case ChunkRun:
		for _, c := range d.Chunks {
			l.chunk(c)
		}
	case AssistantMessage:
		if l.open || l.counted != nil || d.Interrupted {
			l.settle(false) // there was no finish
		}
	case RetryScheduled, StepEnd:
		if l.open || l.counted != nil {
			l.settle(true)
		}
	default: // says nothing of requests
	}
}

func (l *Ledger) chunk(c Chunk) {
	l.open = true
	switch c := c.(type) {
	case Usage:
		l.counted = &c // the last one wins
	case Finish:
		l.settle(c.Reason.Kind == FinishError || c.Reason.Kind == FinishAborted)
	default:
	}
}

// settle ends an attempt.
func (l *Ledger) settle(failed bool) {
	sum := RouteUsage{Provider: l.at.Provider, Model: l.at.Model, Requests: 1}
	if failed {
		sum.Failed = 1
	}
	if l.counted != nil {
		sum.Usage = *l.counted
	}
	l.open, l.counted = false, nil
	l.Add(sum)
}

// Add adds what another ledger says of a route.
func (l *Ledger) Add(r RouteUsage) {
	i := slices.IndexFunc(l.routes, func(have RouteUsage) bool {
		return have.Provider == r.Provider && have.Model == r.Model
	})
	if i < 0 {
		l.routes = append(l.routes, r)
		return
	}
	have := &l.routes[i]
	have.Requests += r.Requests
	have.Failed += r.Failed
	have.Usage = have.Usage.Add(r.Usage)
}

// Routes returns the sums, in the order in which the routes were first used.
func (l *Ledger) Routes() []RouteUsage { return slices.Clone(l.routes) }

// Total returns the sum over all routes.
func (l *Ledger) Total() (requests int, usage Usage) {
	for _, r := range l.routes {
		requests += r.Requests
		usage = usage.Add(r.Usage)
	}
	return requests, usage
}

// CacheHitRatio returns which part of the prompts came from a cache; ok is
// false if no count says anything of caches.
func (u Usage) CacheHitRatio() (ratio float64, ok bool) {
	if u.CacheReadTokens == nil {
		return 0, false
	}
	whole := u.InputTokens + *u.CacheReadTokens
	if u.CacheWriteTokens != nil {
		whole += *u.CacheWriteTokens
	}
	if whole == 0 {
		return 0, false
	}
	return float64(*u.CacheReadTokens) / float64(whole), true
}
