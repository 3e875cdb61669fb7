package runtime_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// seeds plays a law with many seeds, each in a bubble: DSH_ACTOR_SEEDS=n says how
// many, DSH_ACTOR_SEED=n plays one.
func seeds(t *testing.T, count uint64, play func(t *testing.T, seed uint64)) {
	t.Helper()
	first := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("DSH_ACTOR_SEEDS"), 10, 64); err == nil {
		count = n
	}
	if testing.Short() {
		count = min(count, 20)
	}
	if n, err := strconv.ParseUint(os.Getenv("DSH_ACTOR_SEED"), 10, 64); err == nil {
		first, count = n, 1
	}
	for seed := first; seed < first+count && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) { play(t, seed) })
		})
	}
}
