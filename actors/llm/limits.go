package llm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Limits are what one key of a provider may be asked for. Zero values are no
// limit of ours; the provider's own is learned from its refusals all the same.
type Limits struct {
	// Concurrency bounds the requests that are open at once.
	Concurrency int
	// RequestsPerMinute and TokensPerMinute are spread evenly over the minute.
	// Tokens are estimated beforehand and corrected by the usage.
	RequestsPerMinute int
	TokensPerMinute   int
	// Burst is how many requests may start at once after a pause, out of
	// RequestsPerMinute; 0 means 1.
	Burst int
}

// Check returns every problem of l.
func (l Limits) Check() error {
	var errs []error
	for _, f := range []struct {
		name string
		n    int
	}{
		{"Concurrency", l.Concurrency},
		{"RequestsPerMinute", l.RequestsPerMinute},
		{"TokensPerMinute", l.TokensPerMinute},
		{"Burst", l.Burst},
	} {
		if f.n < 0 {
			errs = append(errs, fmt.Errorf("%s is %d: it must not be negative", f.name, f.n))
		}
	}
	return errors.Join(errs...)
}

// Keys are providers of one endpoint that differ in the key they send. A
// runtime admits requests to the least busy one that is not cooling down; used
// alone, they take turns.
type Keys struct {
	providers []Provider
	next      atomic.Uint64
}

var _ Provider = (*Keys)(nil)

// NewKeys returns the providers as one. There must be one at least.
func NewKeys(providers ...Provider) *Keys {
	if len(providers) == 0 {
		panic("llm: keys without a provider")
	}
	return &Keys{providers: providers}
}

// Providers returns them in order.
func (k *Keys) Providers() []Provider { return k.providers }

// Model implements [Provider]; all of them serve the same models.
func (k *Keys) Model(name string) Model { return k.providers[0].Model(name) }

// Stream implements [Provider].
func (k *Keys) Stream(ctx context.Context, req *dsh.Request) iter.Seq2[dsh.Chunk, error] {
	return func(yield func(dsh.Chunk, error) bool) {
		n := k.next.Add(1) - 1
		k.providers[n%uint64(len(k.providers))].Stream(ctx, req)(yield)
	}
}
