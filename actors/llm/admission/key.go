package admission

import (
	"time"

	"github.com/dsh-actor/dsh-actor/actors/llm"
)

const (
	// firstWindow is how many requests may be unanswered at first.
	firstWindow = 16
	// A cool-down that the provider gave no time for lasts leastCool, and twice
	// as long each time that the first answer behind it is a refusal, too.
	leastCool, mostCool = time.Second, time.Minute
	// Of a pace that was refused slack is kept. Each answer adds to it: stride
	// up to where it was refused, less slack, and step beyond, which are a
	// tenth and a hundredth of it a second.
	slack, stride, step = 0.9, 0.1, 0.01
	leastPace           = 0.1
	// tokenBurst is the part of a minute's tokens that may be used at once.
	tokenBurst = 1.0 / 6
)

// key is one key of a provider and what is known of it.
//
// The provider's own limit is learned as a network's is. window bounds the
// requests that wait for their first word: it grows with each that gets one
// and halves with a refusal. pace, once there was a refusal, spaces requests
// by the rate that had been let through.
type key struct {
	provider llm.Provider
	limits   llm.Limits
	requests *bucket // nil: no limit
	tokens   *bucket
	pace     *bucket // nil until the first refusal

	open       int // requests admitted and not ended
	unanswered int // of them
	window     float64
	cool       time.Time // nobody uses the key until then
	epoch      int       // cool-downs so far
	refusals   int       // cool-downs without an answer in between
	since      time.Time // of the answers counted
	answers    int
	met        float64 // the pace that was refused last
}

func newKey(p llm.Provider, l llm.Limits, now time.Time) *key {
	k := &key{provider: p, limits: l, window: firstWindow, since: now}
	if l.RequestsPerMinute > 0 {
		k.requests = newBucket(float64(l.RequestsPerMinute)/60, float64(max(l.Burst, 1)), now)
	}
	if l.TokensPerMinute > 0 {
		k.tokens = newBucket(float64(l.TokensPerMinute)/60, float64(l.TokensPerMinute)*tokenBurst, now)
	}
	return k
}

// ready returns how long until the key takes a request; ok is false if that
// depends on others to end.
func (k *key) ready(now time.Time, tokens int) (wait time.Duration, ok bool) {
	if k.limits.Concurrency > 0 && k.open >= k.limits.Concurrency || float64(k.unanswered) >= k.window {
		return 0, false
	}
	wait = max(0, k.cool.Sub(now))
	for _, b := range []*bucket{k.requests, k.pace} {
		if b != nil {
			wait = max(wait, b.wait(now, 1))
		}
	}
	if k.tokens != nil {
		wait = max(wait, k.tokens.wait(now, float64(tokens)))
	}
	return wait, true
}

func (k *key) admit(now time.Time, t *ticket) {
	k.open++
	k.unanswered++
	for _, b := range []*bucket{k.requests, k.pace} {
		if b != nil {
			b.take(now, 1)
		}
	}
	if k.tokens != nil {
		k.tokens.take(now, float64(t.tokens))
	}
	t.epoch = k.epoch
}

// answered notes the first word of an answer.
func (k *key) answered(now time.Time) {
	k.unanswered--
	k.window++
	k.answers++
	if now.After(k.cool) {
		k.refusals = 0
	}
	if k.pace != nil {
		k.pace.fill(now)
		if k.pace.rate < k.met*slack {
			k.pace.rate += stride
		} else {
			k.pace.rate += step
		}
	}
}

// ended notes the end of a request, refused or not.
func (k *key) ended(now time.Time, t *ticket, o outcome) {
	k.open--
	if !t.answered {
		k.unanswered--
	}
	if k.tokens != nil && o.tokens > 0 {
		k.tokens.take(now, float64(o.tokens-t.tokens))
	}
	if o.refused {
		k.refused(now, t, o.wait)
	}
}

// refused begins a cool-down, or makes the one that began while t was open
// longer: requests that were sent before it prove nothing new.
func (k *key) refused(now time.Time, t *ticket, wait time.Duration) {
	if t.epoch == k.epoch {
		k.learn(now)
		k.epoch++
		k.refusals++
	}
	if wait <= 0 {
		wait = min(leastCool<<min(k.refusals-1, 10), mostCool)
	}
	if until := now.Add(wait); until.After(k.cool) {
		k.cool = until
		k.since = until // what is let through counts from the end
	}
}

// learn takes the rate that was let through for the one to keep to.
func (k *key) learn(now time.Time) {
	k.window = max(1, k.window/2)
	// What was not refused so far most likely will not be.
	rate := float64(k.answers+k.unanswered) / max(1, now.Sub(k.since).Seconds())
	if k.pace != nil {
		rate = min(k.pace.rate, max(rate, k.pace.rate/2))
	}
	k.met = rate
	k.pace = newBucket(max(rate*slack, leastPace), 1, now)
	k.answers = 0
}
