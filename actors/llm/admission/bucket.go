package admission

import "time"

// bucket is a token bucket. It may be taken from below zero, by what is only
// counted afterwards.
type bucket struct {
	rate  float64 // per second
	most  float64
	level float64
	at    time.Time
}

func newBucket(rate, most float64, now time.Time) *bucket {
	return &bucket{rate: rate, most: most, level: most, at: now}
}

func (b *bucket) fill(now time.Time) {
	b.level = min(b.most, b.level+now.Sub(b.at).Seconds()*b.rate)
	b.at = now
}

// wait returns how long until n fits. What is more than the bucket holds waits
// for a full one.
func (b *bucket) wait(now time.Time, n float64) time.Duration {
	b.fill(now)
	missing := min(n, b.most) - b.level
	if missing <= 1e-9 {
		return 0
	}
	return time.Duration(missing/b.rate*float64(time.Second)) + 1
}

func (b *bucket) take(now time.Time, n float64) {
	b.fill(now)
	b.level = min(b.most, b.level-n)
}
